package ledger_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

func TestRetries(t *testing.T) {
	v1 := rev(1, 0)
	first := verdict(v1, rag.StatusRetrying, 0)
	second := verdict(v1, rag.StatusRetrying, 1)
	second.At = noon.Add(time.Minute)
	last := verdict(v1, rag.StatusRetrying, 2)
	last.Failure = &rag.Failure{Stage: "indexer", Class: rag.ClassTransient, Reason: "the last"}
	t.Run("a transient failure schedules the next attempt", func(t *testing.T) {
		w := progress(manifest(v1, 2), first).Work[v1]
		if w.Attempt != 1 || w.RetryCause != 2 || !w.RetryDue.Equal(noon.Add(time.Second)) || !w.FirstFailed.Equal(noon) || w.Count != 2 {
			t.Errorf("work %+v", w)
		}
	})
	t.Run("each failing chunk says so, one retry follows", func(t *testing.T) {
		row := progress(manifest(v1, 2), first)
		again := progressAfter(row, first)
		if again.Work[v1].RetryCause != row.Work[v1].RetryCause || again.Work[v1].Attempt != 1 {
			t.Errorf("work %+v", again.Work[v1])
		}
	})
	t.Run("the next failure waits longer and keeps the time of the first", func(t *testing.T) {
		w := progress(manifest(v1, 2), first, second).Work[v1]
		if w.Attempt != 2 || w.RetryCause != 3 || !w.RetryDue.Equal(second.At.Add(2*time.Second)) || !w.FirstFailed.Equal(noon) {
			t.Errorf("work %+v", w)
		}
	})
	t.Run("when the attempts are spent it is dead, with the last failure", func(t *testing.T) {
		row := progress(manifest(v1, 2), first, second, last)
		wantFinal(t, row, v1, rag.StatusDead)
		wantDue(t, row, exactly(v1))
		f := row.Finals["m1"]
		if f.Attempt != 2 || *f.Failure != *last.Failure || !f.FirstFailed.Equal(noon) || f.Cause != 4 {
			t.Errorf("final %+v", f)
		}
	})
	t.Run("a confirmed chunk stays confirmed over a retry", func(t *testing.T) {
		again := manifest(v1, 2)
		again.Attempt = 1
		row := progress(manifest(v1, 2), receipt(v1, 0, 1), first, again)
		if !ledger.Confirmed(row, v1, 0) || ledger.Confirmed(row, v1, 1) || ledger.Confirmed(row, v1, -1) || ledger.Confirmed(nil, v1, 0) {
			t.Errorf("work %+v", row.Work[v1])
		}
		row = progressAfter(row, receipt(v1, 1, 2))
		wantFinal(t, row, v1, rag.StatusIndexed)
	})
	t.Run("a final of an earlier attempt closes the letter of the retry", func(t *testing.T) {
		row := progress(manifest(v1, 2), first, receipt(v1, 0, 2))
		words := ledger.Say("d", row, row.Applied)
		if w := words[len(words)-1]; w.Status != rag.StatusIndexed || w.Letter != ledger.LetterClose || w.Subject.Attempt != 1 {
			t.Errorf("said %+v", words)
		}
	})
	t.Run("a record without a time takes now", func(t *testing.T) {
		p := verdict(v1, rag.StatusRetrying, 0)
		p.At = time.Time{}
		if w := progress(p).Work[v1]; !w.RetryDue.Equal(noon.Add(time.Second)) {
			t.Errorf("work %+v", w)
		}
	})
	t.Run("three attempts unless set", func(t *testing.T) {
		row := ledger.ApplyProgress(nil, verdict(v1, rag.StatusRetrying, 1), 1, noon, ledger.Settings{})
		if row.Work[v1].Attempt != 2 || !row.Work[v1].RetryDue.Equal(noon) {
			t.Errorf("row %+v", row)
		}
		wantFinal(t, ledger.ApplyProgress(row, last, 2, noon, ledger.Settings{}), v1, rag.StatusDead)
	})
}

func TestAFinalOnceSaidIsRepeatedNeverChanged(t *testing.T) {
	v1 := rev(1, 0)
	dead := progress(verdict(v1, rag.StatusDead, 0))
	for name, p := range map[string]rag.Progress{"manifest": manifest(v1, 1), "delete": deletion(v1), "retry": verdict(v1, rag.StatusRetrying, 0),
		"unchanged": verdict(v1, rag.StatusUnchanged, 0), "receipt": receipt(v1, 0, 1)} {
		row := progressAfter(dead, p)
		if f := row.Finals["m1"]; f.Status != rag.StatusDead || f.Cause != 1 || len(row.Work) > 0 || row.Fence > 0 {
			t.Errorf("after a %s: %+v", name, row)
		}
		if words := ledger.Say("d", row, row.Applied); len(words) > 0 {
			t.Errorf("a %s says %+v", name, words)
		}
	}
	replayed := progressAfter(dead, manifest(rev(1, 1), 1), receipt(rev(1, 1), 0, 1))
	wantFinal(t, replayed, rev(1, 1), rag.StatusIndexed)
}

func TestARecordIsAppliedOnce(t *testing.T) {
	row := progress(manifest(rev(1, 0), 1), receipt(rev(1, 0), 0, 1))
	for at := range row.Applied + 1 {
		if got := ledger.ApplyProgress(row, verdict(rev(2, 0), rag.StatusDead, 0), at, noon, settings); got != row {
			t.Errorf("the record at %d was applied again", at)
		}
	}
}

func TestApplyProgressDoesNotChangeItsRow(t *testing.T) {
	row := progress(manifest(rev(1, 0), 65), receipt(rev(1, 0), 0, 2))
	work := row.Work[rev(1, 0)]
	confirmed := slices.Clone(work.Confirmed)
	progressAfter(row, receipt(rev(1, 0), 2, 65), deletion(rev(2, 0)))
	if len(row.Work) != 1 || len(row.Finals) != 0 || len(row.Due) != 0 || !slices.Equal(row.Work[rev(1, 0)].Confirmed, confirmed) {
		t.Errorf("the row was changed: %+v", row)
	}
}

func TestUnknownWordsOnlyCountAsApplied(t *testing.T) {
	row := progress(about(99, rev(1, 0), 0), verdict(rev(1, 0), "odd", 0), rag.Progress{})
	if row.Applied != 3 || len(row.Work)+len(row.Finals)+len(row.Due) > 0 {
		t.Errorf("row %+v", row)
	}
}

func TestFinalsAreForgotten(t *testing.T) {
	one := ledger.Keep{For: time.Minute, Count: 1}
	later := noon.Add(time.Hour)
	ended := func(vs ...rag.Version) (row *ledger.DocumentRow) {
		for _, v := range vs {
			row = progressAfter(row, deletion(rev(v, 0)))
		}
		return row
	}
	for name, c := range map[string]struct {
		row       *ledger.DocumentRow
		committed rag.Version
		now       time.Time
		left      []string
		floor     rag.Version
	}{
		"what is below the fence, old and beyond the count": {ended(1, 2, 3), 9, later, []string{"m3"}, 2},
		"not what is young":                    {ended(1, 2, 3), 9, noon, []string{"m1", "m2", "m3"}, 0},
		"not one whose cause is not committed": {ended(1, 2, 3), 2, later, []string{"m2", "m3"}, 1},
		"not one above the fence, while an earlier one may be to come": {progressAfter(ended(1), verdict(rev(2, 0), rag.StatusDead, 0), verdict(rev(3, 0), rag.StatusDead, 0)),
			9, later, []string{"m2", "m3"}, 1},
		"one above the fence, when the chunker has spoken of it": {progressAfter(nil, verdict(rev(1, 0), rag.StatusDead, 0), manifest(rev(2, 0), 1),
			verdict(rev(2, 0), rag.StatusDead, 0), verdict(rev(3, 0), rag.StatusDead, 0)), 9, later, []string{"m3"}, 2},
		"one above the fence that died at the chunker": {progressAfter(nil, unreadable(rev(1, 0)), unreadable(rev(2, 0)), unreadable(rev(3, 0))),
			9, later, []string{"m3"}, 2},
		"a replayed one after months": {progressAfter(progress(verdict(rev(1, 0), rag.StatusDead, 0), deletion(rev(1, 1))), deletion(rev(2, 0))),
			9, noon.Add(91 * 24 * time.Hour), []string{"m2"}, 1},
		"not a replayed one": {progressAfter(progress(verdict(rev(1, 0), rag.StatusDead, 0), deletion(rev(1, 1))), deletion(rev(2, 0)), deletion(rev(3, 0))),
			9, later, []string{"m1", "m3"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(c.row.Finals)
			got := ledger.ForgetFinals(c.row, c.committed, c.now, one)
			if left := slices.Sorted(maps.Keys(got.Finals)); !slices.Equal(left, c.left) || got.Floor != c.floor {
				t.Errorf("left %v and floor %d, want %v and %d", left, got.Floor, c.left, c.floor)
			}
			if len(c.row.Finals) != before {
				t.Error("the row was changed")
			}
		})
	}
	t.Run("at or below the floor nothing is said any more", func(t *testing.T) {
		row := ledger.ForgetFinals(ended(1, 2, 3), 9, later, one)
		for _, p := range []rag.Progress{manifest(rev(1, 0), 1), verdict(rev(2, 0), rag.StatusDead, 0), deletion(rev(1, 0))} {
			if after := progressAfter(row, p); len(after.Finals) != 1 || len(ledger.Say("d", after, after.Applied)) > 0 {
				t.Errorf("after %+v: %+v", p, after)
			}
		}
	})
	t.Run("a replay at or below the floor is superseded", func(t *testing.T) {
		row := ledger.ForgetFinals(ended(1, 2, 3), 9, later, one)
		wantFinal(t, progressAfter(row, manifest(rev(1, 1), 1)), rev(1, 1), rag.StatusSuperseded)
	})
	t.Run("above the fence neither", func(t *testing.T) {
		row := ledger.ForgetFinals(progress(unreadable(rev(1, 0)), unreadable(rev(2, 0)), unreadable(rev(3, 0))), 9, later, one)
		for _, p := range []rag.Progress{manifest(rev(1, 0), 1), verdict(rev(2, 0), rag.StatusDead, 0), deletion(rev(1, 0))} {
			if after := progressAfter(row, p); len(after.Finals) != 1 || len(after.Work) > 0 || len(ledger.Say("d", after, after.Applied)) > 0 {
				t.Errorf("after %+v: %+v", p, after)
			}
		}
		if ledger.FenceAllows(row, "m2", rev(2, 0)) {
			t.Error("its chunks may be written")
		}
		clear(row.Due) // they have run
		stray := progressAfter(row, receipt(rev(2, 0), 0, 1))
		if r, _, ok := ledger.FirstDue(stray); !ok || r != (rag.Removal{Exact: true, Revision: rev(2, 0)}) || len(stray.Work) > 0 {
			t.Errorf("what a zombie wrote is not removed: %+v", stray)
		}
		if again := progressAfter(row, manifest(rev(2, 1), 1)); len(again.Work) != 1 || !ledger.FenceAllows(again, "m2", rev(2, 1)) {
			t.Errorf("a replay does not run: %+v", again)
		}
	})
	t.Run("what is kept beyond the count says less", func(t *testing.T) {
		row := progress(unreadable(rev(1, 0)), unreadable(rev(2, 0)), unreadable(rev(3, 0)))
		got := ledger.ForgetFinals(row, 2, noon, one)
		for id, words := range map[string]bool{"m1": false, "m2": true, "m3": true} { // m2's cause is not committed
			if f := got.Finals[id].Failure; f.Reason != rag.ReasonBrokenFile || (f.Message != "") != words {
				t.Errorf("%s: %+v", id, f)
			}
		}
		if row.Finals["m1"].Failure.Message == "" {
			t.Error("the row was changed")
		}
	})
	t.Run("of rows that forgot differently the longer memory wins", func(t *testing.T) {
		all := ended(1, 2, 3)
		few := ledger.ForgetFinals(all, 9, later, one)
		if m := ledger.MergeDocumentRow(few, all); len(m.Finals) != 3 || m.Floor != 0 {
			t.Errorf("merged %+v", m)
		}
	})
}

// unreadable is the chunker's verdict on a document that cannot be read.
func unreadable(r rag.Revision) rag.Progress {
	p := about(rag.ProgressVerdict, r, 0)
	p.Status, p.Failure = rag.StatusDead, &rag.Failure{Stage: rag.StageChunker, Class: rag.ClassMessage, Reason: rag.ReasonBrokenFile, Message: "it is broken"}
	return p
}

// A document that dies for ever has a row that stays small.
func TestRowOfADocumentThatAlwaysDies(t *testing.T) {
	var row *ledger.DocumentRow
	at := noon
	for v := rag.Version(1); v <= 3000; v++ {
		p := unreadable(rev(v, 0))
		p.MessageID, p.At, at = fmt.Sprint("m", v), at, at.Add(time.Hour)
		row = ledger.ApplyProgress(row, p, v, at, settings)
		row = ledger.ForgetFinals(row, v, at, ledger.DefaultKeep)
		delete(row.Due, rag.Removal{Exact: true, Revision: rev(v, 0)}) // it has run
		if len(ledger.Say("d", row, v)) != 1 {
			t.Fatalf("version %d has no end: %+v", v, row.Finals[p.MessageID])
		}
	}
	if len(row.Finals) > ledger.DefaultKeep.Count+1 {
		t.Errorf("the row has %d finals", len(row.Finals))
	}
}

// Where too many versions wait, the earliest ends with a reason of its own: the row must fit into a record.
func TestTooManyVersionsInWork(t *testing.T) {
	row := &ledger.DocumentRow{Work: map[rag.Revision]ledger.Work{}}
	for v := rag.Version(1); v <= ledger.MaxInWork; v++ {
		row.Work[rev(v, 0)] = ledger.Work{MessageID: fmt.Sprint("m", v), Count: 1}
	}
	p := manifest(rev(ledger.MaxInWork+1, 0), 1)
	p.MessageID = "one too many"
	row = ledger.ApplyProgress(row, p, 7, noon, settings)
	if len(row.Work) != ledger.MaxInWork || row.Work[p.Revision].Count != 1 {
		t.Errorf("%d versions in work, the new one: %+v", len(row.Work), row.Work[p.Revision])
	}
	again := rag.Revision{Version: 9_000}
	p = verdict(again, rag.StatusRetrying, 0)
	p.MessageID, p.Failure.Message = "m9000", "a sentence"
	if w := ledger.ApplyProgress(row, p, 8, noon, settings).Work[again]; w.Failure.Reason != "hiccup" || w.Failure.Message != "" || p.Failure.Message == "" {
		t.Errorf("with so many in work a failure is kept as %+v", w.Failure)
	}
	words := ledger.Say("d", row, 7)
	if len(words) != 1 || words[0].Subject.MessageID != "m1" || words[0].Letter != ledger.LetterDead || words[0].Failure.Reason != rag.ReasonTooManyVersions {
		t.Errorf("said %+v", words)
	}
	if r, _, ok := ledger.FirstDue(row); !ok || r != (rag.Removal{Exact: true, Revision: rev(1, 0)}) {
		t.Errorf("what it wrote is not removed: %+v", r)
	}
}

// Where the versions in work are few but large, bytes decide: the row must fit into a record.
func TestTooManyBytesInWork(t *testing.T) {
	warnings := slices.Repeat([]string{strings.Repeat("w", 512)}, 32)
	full := ledger.Bitmap{}.With(0, 249_000)
	inWork := func(n rag.Version, w ledger.Work) *ledger.DocumentRow {
		row := &ledger.DocumentRow{Work: map[rag.Revision]ledger.Work{}}
		for v := rag.Version(1); v <= n; v++ {
			w.MessageID, w.Count = fmt.Sprint("m", v), 250_000
			row.Work[rev(v, 0)] = w
		}
		return row
	}
	apply := func(row *ledger.DocumentRow, p rag.Progress) *ledger.DocumentRow {
		p.MessageID = fmt.Sprint("m", p.Revision.Version)
		next := ledger.ApplyProgress(row, p, 7, noon, settings)
		if again := ledger.ApplyProgress(row, p, 7, noon, settings); !reflect.DeepEqual(next, again) {
			t.Error("the same record makes two rows of one")
		}
		return next
	}
	t.Run("the earliest lose their warnings, and stay", func(t *testing.T) {
		row := apply(inWork(999, ledger.Work{Warnings: warnings}), func() rag.Progress {
			p := manifest(rev(1000, 0), 1)
			p.Warnings = warnings
			return p
		}())
		with, first := 0, rag.Version(0)
		for v := rag.Version(1000); v > 0; v-- {
			if len(row.Work[rev(v, 0)].Warnings) > 0 {
				with, first = with+1, v
			}
		}
		if len(row.Work) != 1000 || len(row.Finals) != 0 || with < 300 || with > 400 || int(first) != 1000-with+1 {
			t.Errorf("%d in work, %d with warnings from %d on, %d ends", len(row.Work), with, first, len(row.Finals))
		}
	})
	t.Run("then the earliest end, as a receipt grows one", func(t *testing.T) {
		row := inWork(202, ledger.Work{Confirmed: full, Warnings: warnings})
		row.Work[rev(202, 0)] = ledger.Work{MessageID: "m202", Count: 250_000}
		if row = apply(row, receipt(rev(202, 0), 249_000, 249_001)); len(row.Work) != 201 || row.Work[rev(202, 0)].Confirmed.Len() != 1 {
			t.Errorf("%d versions in work", len(row.Work))
		}
		words := ledger.Say("d", row, 7)
		if len(words) != 1 || words[0].Subject.MessageID != "m1" || words[0].Letter != ledger.LetterDead || words[0].Failure.Reason != rag.ReasonTooManyVersions {
			t.Errorf("said %+v", words)
		}
		if r, _, ok := ledger.FirstDue(row); !ok || r != (rag.Removal{Exact: true, Revision: rev(1, 0)}) {
			t.Errorf("what it wrote is not removed: %+v", r)
		}
	})
	t.Run("few are left alone", func(t *testing.T) {
		row := apply(inWork(50, ledger.Work{Confirmed: full, Warnings: warnings}), manifest(rev(51, 0), 1))
		if len(row.Work) != 51 || len(row.Work[rev(1, 0)].Warnings) != 32 {
			t.Errorf("%d versions in work", len(row.Work))
		}
	})
}

// Ends are bounded by bytes as well: the earliest lose their warnings, then their sentences; what they decide stays.
func TestTooManyBytesInFinals(t *testing.T) {
	warnings := slices.Repeat([]string{strings.Repeat("w", 512)}, 32)
	row := &ledger.DocumentRow{Finals: map[string]ledger.Final{}}
	for v := rag.Version(1); v <= 9000; v++ {
		row.Finals[fmt.Sprint("m", v)] = ledger.Final{Revision: rev(v, 0), Status: rag.StatusDead, Cause: v, Warnings: warnings,
			Failure: &rag.Failure{Stage: "indexer", Reason: "hiccup", Message: strings.Repeat("s", 1<<10)}}
	}
	p := verdict(rev(1, 1), rag.StatusDead, 0)
	p.MessageID, p.Failure.Message = "m1", "why"
	row = ledger.ApplyProgress(row, p, 10_000, noon, settings)
	if f := row.Finals["m2"]; len(row.Finals) != 9000 || len(f.Warnings) > 0 || f.Failure.Message != "" || f.Failure.Reason != "hiccup" {
		t.Errorf("%d ends, an early one: %d warnings, %+v", len(row.Finals), len(f.Warnings), f.Failure)
	}
	if f := row.Finals["m9000"]; f.Failure.Message == "" {
		t.Error("the last has no sentence")
	}
	if words := ledger.Say("d", row, 10_000); len(words) != 1 || words[0].Failure.Message != "why" {
		t.Errorf("said %+v", words)
	}
}
