package ledger_test

import (
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func hash(s string) rag.Hash { return rag.ContentIdentity(rag.Hash{}, s) }

// record is a put of content in the documents topic.
func record(id string, v rag.Version, content string) ledger.Incoming {
	return ledger.Incoming{MessageID: id, ForeignID: rag.Position{Topic: "documents", Offset: v.Offset()}.String(),
		Hash: hash(content), Identity: hash("identity of " + content), Version: v, At: noon}
}

func forwardedFrom(in ledger.Incoming, partition int32, offset int64) ledger.Incoming {
	in.Origin = &ledger.Origin{Partition: partition, Offset: offset}
	in.ForeignID = rag.Position{Topic: "documents", Partition: partition, Offset: offset}.String()
	return in
}

// chunked is the chunker's row after the records.
func chunked(t *testing.T, ins ...ledger.Incoming) *ledger.ChunkerRow {
	t.Helper()
	var row *ledger.ChunkerRow
	for _, in := range ins {
		if d := ledger.DecideDocument(row, nil, in); d.Row != nil {
			row = d.Row
		}
	}
	return row
}

// serving is a document row that serves the content as version v.
func serving(v rag.Version, content string) *ledger.DocumentRow {
	return &ledger.DocumentRow{Fence: v, Served: ledger.Served{Revision: rag.Revision{Version: v}, Count: 2, ContentIdentity: hash("identity of " + content)}}
}

func fenced(row *ledger.DocumentRow, v rag.Version) *ledger.DocumentRow {
	row.Fence = v
	return row
}

func TestWhatADocumentRecordMeans(t *testing.T) {
	a1, b2 := record("m1", 1, "A"), record("m2", 2, "B")
	deleted := record("m3", 3, "")
	deleted.Delete, deleted.Identity = true, rag.Hash{}
	fromElsewhere := forwardedFrom(record("m2", 2, "B"), 7, 40)
	for name, c := range map[string]struct {
		row        *ledger.ChunkerRow
		join       *ledger.DocumentRow
		in         ledger.Incoming
		want       ledger.ChunkerAction
		redelivery bool
		id         string
		base       rag.Version
		noRow      bool
	}{
		"nothing known is processed": {in: a1, want: ledger.ActProcess, id: "m1"},
		"this very position is a redelivery: everything again": {
			row: chunked(t, a1, b2), in: a1, want: ledger.ActProcess, redelivery: true, id: "m1"},
		"the same submission at another position is a duplicate": {
			row: chunked(t, a1), in: record("m1", 5, "A"), want: ledger.ActDuplicate, id: "m1", noRow: true},
		"the same id with another submission dies under the foreign form": {
			row: chunked(t, a1), in: record("m1", 5, "B"), want: ledger.ActReused, id: "documents@0-0-4"},
		"a reused id again": {
			row: chunked(t, a1, record("m1", 5, "B")), in: record("m1", 5, "B"), want: ledger.ActReused, redelivery: true, id: "documents@0-0-4"},
		"a reused id again, when the first use was forgotten": {
			row: ledger.ForgetMessages(chunked(t, a1, record("m1", 5, "B")), 5, noon.Add(time.Hour), ledger.Keep{Count: 1}),
			in:  record("m1", 5, "B"), want: ledger.ActReused, redelivery: true, id: "documents@0-0-4"},
		"an unknown id at or below the latest accepted version is old": {
			row: chunked(t, b2), in: record("m1", 2, "A"), want: ledger.ActOld, id: "m1", noRow: true},
		"an id that was forgotten and used again makes its first record old": {
			row: chunked(t, record("m1", 5, "B")), in: a1, want: ledger.ActOld, id: "m1", noRow: true},
		"an unknown id forwarded from a position seen before is old": {
			row: ledger.ForgetMessages(chunked(t, fromElsewhere, record("m3", 3, "C")), 3, noon.Add(time.Hour), ledger.Keep{Count: 1}),
			in:  forwardedFrom(record("m2", 9, "B"), 7, 40), want: ledger.ActOld, id: "m2", noRow: true},
		"a position of another origin partition is another one": {
			row: chunked(t, fromElsewhere), in: forwardedFrom(record("m4", 9, "B"), 8, 40), want: ledger.ActProcess, id: "m4"},
		"an origin of the epoch before says nothing": {
			row: chunked(t, fromElsewhere), in: forwardedFrom(record("m4", version(t, 1, 0), "B"), 7, 3), want: ledger.ActProcess, id: "m4"},
		"a duplicate that was forwarded is noted as forwarded": {
			row: chunked(t, a1), in: forwardedFrom(record("m1", 5, "A"), 7, 3), want: ledger.ActDuplicate, id: "m1"},
		"a reused id that was forwarded twice dies once": {
			row: chunked(t, a1, forwardedFrom(record("m1", 5, "B"), 7, 3)), in: forwardedFrom(record("m1", 6, "B"), 7, 3),
			want: ledger.ActDuplicate, id: "m1", noRow: true},
		"the served content again is unchanged": {
			row: chunked(t, a1), join: serving(1, "A"), in: record("m2", 2, "A"), want: ledger.ActUnchanged, id: "m2", base: 1},
		"unchanged again": {
			row: chunked(t, a1, record("m2", 2, "A")), join: serving(1, "A"), in: record("m2", 2, "A"),
			want: ledger.ActUnchanged, redelivery: true, id: "m2", base: 1},
		"unchanged against what is served, though the fence is higher": {
			row: chunked(t, a1, record("m2", 2, "A")), join: fenced(serving(1, "A"), 2), in: record("m3", 3, "A"), want: ledger.ActUnchanged, id: "m3", base: 1},
		"the version that is served is not unchanged against itself": {
			row: chunked(t, a1), join: serving(1, "A"), in: a1, want: ledger.ActProcess, redelivery: true, id: "m1"},
		"another content is not unchanged": {
			row: chunked(t, a1), join: serving(1, "A"), in: b2, want: ledger.ActProcess, id: "m2"},
		"the content of a version not served yet is not unchanged": {
			row: chunked(t, a1, b2), join: serving(1, "A"), in: record("m3", 3, "B"), want: ledger.ActProcess, id: "m3"},
		"a version accepted above the fence forbids unchanged": {
			row: chunked(t, a1, b2), join: serving(1, "A"), in: record("m3", 3, "A"), want: ledger.ActProcess, id: "m3"},
		"a dead version above the fence counts as accepted": {
			row: chunked(t, a1, record("m1", 2, "B")), join: serving(1, "A"), in: record("m3", 3, "A"), want: ledger.ActProcess, id: "m3"},
		"on a redelivery another version above the fence forbids unchanged": {
			row: chunked(t, a1, b2, record("m3", 3, "A")), join: serving(1, "A"), in: record("m3", 3, "A"),
			want: ledger.ActProcess, redelivery: true, id: "m3"},
		"a deleted document serves nothing that could be unchanged": {
			row: chunked(t, a1, deleted), join: &ledger.DocumentRow{Fence: 3, Served: ledger.Served{Revision: rag.Revision{Version: 3}}},
			in: record("m4", 4, "A"), want: ledger.ActProcess, id: "m4"},
		"a delete is never unchanged": {
			row: chunked(t, a1), join: &ledger.DocumentRow{Fence: 1, Served: ledger.Served{Revision: rag.Revision{Version: 1}, Count: 2}},
			in: deleted, want: ledger.ActProcess, id: "m3"},
		"below the fence it is superseded": {
			row: chunked(t, a1, b2), join: serving(2, "B"), in: a1, want: ledger.ActSuperseded, redelivery: true, id: "m1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := ledger.DecideDocument(c.row, c.join, c.in)
			if d.Action != c.want || d.Redelivery != c.redelivery || d.MessageID != c.id || d.Base != c.base {
				t.Errorf("got %s (redelivery %v) of %q against %d, want %s (%v) of %q against %d",
					d.Action, d.Redelivery, d.MessageID, d.Base, c.want, c.redelivery, c.id, c.base)
			}
			if (d.Row == nil) != c.noRow {
				t.Errorf("row to write: %+v", d.Row)
			}
			if d.Row == nil || c.want == ledger.ActDuplicate {
				return
			}
			if m := d.Row.Messages[c.id]; m.Version != c.in.Version || m.Hash != c.in.Hash || d.Row.Latest < c.in.Version {
				t.Errorf("the record is not in its row: %+v", d.Row)
			}
		})
	}
}

func version(t *testing.T, epoch int, offset int64) rag.Version {
	t.Helper()
	v, err := rag.NewVersion(epoch, offset)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDecideDocumentDoesNotChangeItsInputs(t *testing.T) {
	row := &ledger.ChunkerRow{Latest: 1, Messages: map[string]ledger.Submission{"m1": {Version: 1, Hash: hash("A")}}}
	ledger.DecideDocument(row, nil, forwardedFrom(record("m2", 2, "B"), 3, 4))
	if row.Latest != 1 || len(row.Messages) != 1 || row.Forwarded != nil {
		t.Errorf("the row was changed: %+v", row)
	}
}

func TestAReplayBelowTheFenceIsSuperseded(t *testing.T) {
	for v, want := range map[rag.Version]bool{1: true, 2: false, 3: false} {
		if got := ledger.ReplaySuperseded(serving(2, "A"), rag.Revision{Version: v, Generation: 1}); got != want {
			t.Errorf("version %d against fence 2: superseded %v", v, got)
		}
	}
	if ledger.ReplaySuperseded(nil, rag.Revision{Version: 1}) {
		t.Error("superseded without a document row")
	}
}

func TestMessageIDsAreForgotten(t *testing.T) {
	row := chunked(t, record("m1", 1, "A"), record("m2", 2, "B"), record("m3", 3, "C"), record("m4", 4, "D"))
	later := noon.Add(time.Hour)
	for name, c := range map[string]struct {
		committed rag.Version
		now       time.Time
		keep      ledger.Keep
		left      []string
	}{
		"what is old and beyond the count":                {9, later, ledger.Keep{For: time.Minute, Count: 2}, []string{"m3", "m4"}},
		"what is beyond the count, whatever its age":      {9, noon, ledger.Keep{For: -1, Count: 2}, []string{"m3", "m4"}},
		"not what is young":                               {9, later, ledger.Keep{For: time.Hour, Count: 2}, []string{"m1", "m2", "m3", "m4"}},
		"not what is among the last":                      {9, later, ledger.Keep{Count: 4}, []string{"m1", "m2", "m3", "m4"}},
		"not what is not committed":                       {2, later, ledger.Keep{Count: 2}, []string{"m2", "m3", "m4"}},
		"what claims to be from the future is old, too":   {9, noon.Add(-time.Hour), ledger.Keep{For: time.Minute, Count: 2}, []string{"m3", "m4"}},
		"nothing, where nothing is known to be committed": {0, later, ledger.Keep{}, []string{"m1", "m2", "m3", "m4"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ledger.ForgetMessages(row, c.committed, c.now, c.keep)
			if len(got.Messages) != len(c.left) {
				t.Fatalf("left %v, want %v", got.Messages, c.left)
			}
			for _, id := range c.left {
				if _, ok := got.Messages[id]; !ok {
					t.Errorf("%s was forgotten", id)
				}
			}
			if len(row.Messages) != 4 {
				t.Fatal("the row was changed")
			}
			if m := ledger.MergeChunkerRow(got, row); len(m.Messages) != len(c.left) {
				t.Errorf("an older row brings forgotten ids back: %v", m.Messages)
			}
		})
	}
}

func TestDefaultKeepIsThePromise(t *testing.T) {
	if ledger.DefaultKeep != (ledger.Keep{For: 7 * 24 * time.Hour, Count: 256}) {
		t.Errorf("%+v", ledger.DefaultKeep)
	}
}
