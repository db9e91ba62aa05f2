package ledger_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

// Every merge is commutative, associative and idempotent. The rows are drawn from small domains, so that they
// collide, and need not be rows that the protocol makes.

func checkMerge[R any](t *testing.T, rows *rapid.Generator[*R], merge func(a, b *R) *R) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := rows.Draw(t, "a"), rows.Draw(t, "b"), rows.Draw(t, "c")
		same(t, "idempotent", merge(a, a), a)
		same(t, "commutative", merge(a, b), merge(b, a))
		same(t, "associative", merge(merge(a, b), c), merge(a, merge(b, c)))
		same(t, "absorbing", merge(merge(a, b), b), merge(a, b))
		if merge(a, nil) != a || merge(nil, a) != a || merge(nil, nil) != nil {
			t.Fatal("a row that is not there changes one that is")
		}
	})
}

func same[R any](t *rapid.T, what string, a, b *R) {
	t.Helper()
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("not %s:\n%+v\n%+v", what, a, b)
	}
}

func small(t *rapid.T, what string) int { return rapid.IntRange(0, 3).Draw(t, what) }

func someVersion(t *rapid.T) rag.Version { return rag.Version(1 + small(t, "version")) }

func someRevision(t *rapid.T) rag.Revision {
	return rag.Revision{Version: someVersion(t), Generation: rapid.IntRange(0, 1).Draw(t, "generation")}
}

func someTime(t *rapid.T) time.Time { return noon.Add(time.Duration(small(t, "time")) * time.Minute) }

func someText(t *rapid.T) string { return rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "text") }

func someFailure(t *rapid.T) *rag.Failure {
	if rapid.Bool().Draw(t, "no failure") {
		return nil
	}
	return &rag.Failure{Stage: someText(t), Class: rag.Class(someText(t)), Reason: someText(t), Message: someText(t)}
}

func someMap[K comparable, V any](t *rapid.T, key func(*rapid.T) K, value func(*rapid.T) V) map[K]V {
	return rapid.MapOfN(rapid.Custom(key), rapid.Custom(value), 0, 4).Draw(t, "map")
}

func TestMergeChunkerRow(t *testing.T) {
	checkMerge(t, rapid.Custom(func(t *rapid.T) *ledger.ChunkerRow {
		row := &ledger.ChunkerRow{Latest: someVersion(t), Forgotten: rag.Version(small(t, "forgotten")),
			Forwarded: someMap(t, func(t *rapid.T) int32 { return int32(small(t, "partition")) }, someVersion),
			Messages: someMap(t, someText, func(t *rapid.T) ledger.Submission {
				return ledger.Submission{Version: someVersion(t), Hash: hash(someText(t)), At: someTime(t)}
			})}
		for id, m := range row.Messages {
			if m.Version <= row.Forgotten {
				delete(row.Messages, id)
			}
		}
		return row
	}), ledger.MergeChunkerRow)
}

func TestMergeDocumentRow(t *testing.T) {
	work := func(t *rapid.T) ledger.Work {
		return ledger.Work{MessageID: someText(t), Partition: int32(small(t, "partition")), Count: small(t, "count"),
			Confirmed: ledger.Bitmap{}.With(small(t, "from"), small(t, "to")), Attempt: small(t, "attempt"), ContentIdentity: hash(someText(t)),
			Warnings: []string{someText(t)}, RetryCause: someVersion(t), RetryDue: someTime(t), Failure: someFailure(t),
			FirstFailed: someTime(t), At: someTime(t)}
	}
	final := func(t *rapid.T) ledger.Final {
		return ledger.Final{Revision: someRevision(t), Partition: int32(small(t, "partition")), Status: rag.Status(someText(t)),
			Attempt: small(t, "attempt"), Cause: someVersion(t), Count: small(t, "count"), Failure: someFailure(t),
			Warnings: []string{someText(t)}, FirstFailed: someTime(t), At: someTime(t)}
	}
	removal := func(t *rapid.T) rag.Removal {
		return rag.Removal{Exact: rapid.Bool().Draw(t, "exact"), Revision: someRevision(t)}
	}
	checkMerge(t, rapid.Custom(func(t *rapid.T) *ledger.DocumentRow {
		return &ledger.DocumentRow{Applied: rag.Version(rapid.IntRange(1, 2).Draw(t, "applied")), Fence: someVersion(t), Floor: someVersion(t), Heard: someVersion(t),
			Served: ledger.Served{Revision: someRevision(t), Count: small(t, "count"), ContentIdentity: hash(someText(t)), At: someTime(t)},
			Work:   someMap(t, someRevision, work), Finals: someMap(t, someText, final), Due: someMap(t, removal, someTime)}
	}), ledger.MergeDocumentRow)
}

func TestOfTwoDocumentRowsTheLongerPrefixWins(t *testing.T) {
	old := progress(manifest(rev(1, 0), 1))
	long := progressAfter(old, receipt(rev(1, 0), 0, 1))
	if m := ledger.MergeDocumentRow(old, long); m != long {
		t.Errorf("merged %+v", m)
	}
}

func TestADueRemovalKeepsTheLaterTime(t *testing.T) {
	apply := func(clock time.Time) *ledger.DocumentRow {
		return ledger.ApplyProgress(nil, verdict(rev(1, 0), rag.StatusDead, 0), 1, clock, settings)
	}
	early, late := apply(noon), apply(noon.Add(time.Hour))
	if m := ledger.MergeDocumentRow(late, early); !m.Due[exactly(rev(1, 0))].Equal(late.Due[exactly(rev(1, 0))]) {
		t.Errorf("merged %+v", m.Due)
	}
}

func TestMergeTrackerRow(t *testing.T) {
	statuses := []rag.Status{rag.StatusAccepted, rag.StatusChunked, rag.StatusRetrying, rag.StatusIndexed, rag.StatusDead}
	some := rapid.Custom(func(t *rapid.T) *ledger.TrackerRow {
		var row *ledger.TrackerRow
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			row = ledger.ApplyEvent(row, rag.Event{Subject: rag.Subject{DocumentID: someText(t), MessageID: someText(t), Revision: someRevision(t), Attempt: small(t, "attempt")},
				Stage: someText(t), Status: rapid.SampledFrom(statuses).Draw(t, "status"), At: someTime(t), Chunks: small(t, "chunks"), Failure: someFailure(t)})
		}
		return row
	})
	checkMerge(t, some, ledger.MergeTrackerRow)
	rapid.Check(t, func(t *rapid.T) {
		a, b := some.Draw(t, "a"), some.Draw(t, "b")
		for _, m := range []*ledger.TrackerRow{a, b} {
			c := ledger.MergeTrackerRow(a, b)
			if c.Revision.Less(m.Revision) || c.Revision == m.Revision && c.Status.Rank() < m.Status.Rank() {
				t.Fatalf("the status went back from %v %s to %v %s", m.Revision, m.Status, c.Revision, c.Status)
			}
		}
	})
}

// Bounded timelines merge as if they were cut at the end only.
func TestMergeOfBoundedTimelines(t *testing.T) {
	some := rapid.Custom(func(t *rapid.T) *ledger.TrackerRow {
		var row *ledger.TrackerRow
		from := rapid.IntRange(0, 60).Draw(t, "from")
		for g := range rapid.IntRange(1, 100).Draw(t, "lines") {
			row = ledger.ApplyEvent(row, event(rev(1, from+g), 0, rag.StatusDead, time.Duration(small(t, "at"))))
		}
		return row
	})
	checkMerge(t, some, ledger.MergeTrackerRow)
}

func TestMergeLetterRow(t *testing.T) {
	states := []rag.LetterState{rag.LetterWaiting, rag.LetterScheduled, rag.LetterSent, rag.LetterReplaying, rag.LetterResolved, rag.LetterSuperseded, rag.LetterDiscarded}
	checkMerge(t, rapid.Custom(func(t *rapid.T) *ledger.LetterRow {
		row := &ledger.LetterRow{ID: someText(t), Subject: rag.Subject{DocumentID: someText(t), MessageID: someText(t), Revision: someRevision(t), Attempt: small(t, "attempt"), Partition: int32(small(t, "partition"))},
			State: rapid.SampledFrom(states).Draw(t, "state"), Due: someTime(t), Cause: someVersion(t), CauseTopic: someText(t),
			Position: rag.Position{Topic: someText(t), Epoch: small(t, "epoch"), Partition: int32(small(t, "partition")), Offset: int64(small(t, "offset"))},
			Attempts: small(t, "attempts"), FirstFailed: someTime(t), LastFailed: someTime(t), Lost: someText(t), Reason: someText(t),
			Original: rag.Raw{Key: someBytes(t), Value: someBytes(t), Headers: []rag.Header{{Key: someBytes(t), Value: someBytes(t)}}, Timestamp: someTime(t)}}
		if f := someFailure(t); f != nil {
			row.Failure = *f
		}
		return row
	}), ledger.MergeLetterRow)
}

func someBytes(t *rapid.T) []byte {
	return rapid.SampledFrom([][]byte{nil, {}, {1}}).Draw(t, "bytes")
}

func TestABitmapIsBounded(t *testing.T) {
	if b := (ledger.Bitmap{}).With(-1<<60, 1<<60); b.Len() != ledger.MaxChunks {
		t.Errorf("%d indexes", b.Len())
	}
}

func TestBitmap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b ledger.Bitmap
		set := map[int]bool{}
		for range rapid.IntRange(0, 5).Draw(t, "ranges") {
			from := rapid.IntRange(-10, 200).Draw(t, "from")
			to := rapid.IntRange(from-2, from+130).Draw(t, "to")
			before := b.Len()
			next := b.With(from, to)
			if b.Len() != before {
				t.Fatal("the bitmap was changed")
			}
			b = next
			for i := max(from, 0); i < to; i++ {
				set[i] = true
			}
		}
		full := true
		for i := range 400 {
			if full = full && (i == 0 || set[i-1]); b.Has(i) != set[i] || i > 0 && b.Full(i) != full {
				t.Fatalf("at %d: has %v, want %v; full %v, want %v", i, b.Has(i), set[i], b.Full(i), full)
			}
		}
		if b.Len() != len(set) || b.Full(0) || b.Full(-1) {
			t.Fatalf("%d indexes, want %d", b.Len(), len(set))
		}
	})
}
