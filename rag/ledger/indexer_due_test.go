package ledger_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

// manyDue is a row that serves a revision and has n removals due, of revisions around it, at times drawn by at.
func manyDue(n int, served rag.Version, at func(i int) time.Time) *ledger.DocumentRow {
	row := &ledger.DocumentRow{Applied: 6, Fence: served, Heard: served, Due: map[rag.Removal]time.Time{},
		Served: ledger.Served{Revision: rev(served, 0), Count: 1}, Finals: map[string]ledger.Final{"m": {Revision: rev(served, 0), Status: rag.StatusIndexed}}}
	for i := range n {
		row.Due[rag.Removal{Exact: i%3 != 0 || rag.Version(i/3) > served, Revision: rev(rag.Version(i/3), i%3)}] = at(i)
	}
	return row
}

// However many removals are due, and whatever comes next: a row holds so many, each revision below the one that is served is
// removed by one of them, not before it was due, and something is removed no later than it would have been.
func TestDueRemovalsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := ledger.MaxDue + rapid.IntRange(1, 30).Draw(t, "too many")
		served := rag.Version(rapid.IntRange(1, n/2).Draw(t, "served"))
		spread := rapid.IntRange(1, 40).Draw(t, "seconds")
		row := manyDue(n, served, func(i int) time.Time { return noon.Add(time.Duration(i*7919%spread) * time.Second) })
		p := rapid.SampledFrom([]rag.Progress{
			verdict(rev(served+1, 0), rag.StatusDead, 0), receipt(rev(served-1, 0), 0, 1), verdict(rev(served+1, 0), rag.StatusUnchanged, 0), manifest(rev(served+1, 0), 2),
		}).Draw(t, "next")
		p.MessageID = "next"
		next := ledger.ApplyProgress(row, p, 7, noon, settings)
		if len(next.Due) > ledger.MaxDue {
			t.Fatalf("%d removals are due", len(next.Due))
		}
		// What stands for a removal and runs no earlier finds everything that it would have found.
		var wide []rag.Removal
		for r := range next.Due {
			if !r.Exact {
				wide = append(wide, r)
			}
		}
		for was, due := range row.Due {
			at, covered := next.Due[was]
			covered = covered && !at.Before(due)
			for _, r := range wide {
				covered = covered || !next.Due[r].Before(due) && (r.Removes(was.Revision) || !was.Exact && r == was)
			}
			if !covered && was.Revision.Less(rev(served, 0)) {
				t.Fatalf("nothing stands for %+v, due %s", was, due)
			}
		}
		below := func(r *ledger.DocumentRow) (first time.Time) {
			for removal, at := range r.Due {
				if !removal.Exact && (first.IsZero() || at.Before(first)) {
					first = at
				}
			}
			return first
		}
		if before, after := below(row), below(next); after.After(before) {
			t.Fatalf("the first removal of everything below a version was due %s and is %s", before, after)
		}
	})
}

// Versions that ended above the one that is served are not below anything: the lowest are passed by.
func TestDueRemovalsAboveWhatIsServed(t *testing.T) {
	row := &ledger.DocumentRow{Applied: 6, Heard: 1, Fence: 1, Served: ledger.Served{Revision: rev(1, 0), Count: 1}, Due: map[rag.Removal]time.Time{}}
	for i := range ledger.MaxDue {
		row.Due[exactly(rev(rag.Version(i+2), 0))] = noon
	}
	last := rev(rag.Version(ledger.MaxDue+2), 0)
	p := verdict(last, rag.StatusDead, 0)
	p.MessageID = "next"
	next := ledger.ApplyProgress(row, p, 7, noon, settings)
	if _, ok := next.Due[exactly(last)]; len(next.Due) != ledger.MaxDue || !ok {
		t.Errorf("%d removals are due, that of the last version: %v", len(next.Due), ok)
	}
	if _, ok := next.Due[exactly(rev(2, 0))]; ok {
		t.Error("the lowest one was not the one to be passed by")
	}
	if next = ledger.ApplyProgress(next, manifest(rev(last.Version+1, 0), 1), 8, noon, settings); len(next.Work) != 1 {
		t.Fatalf("%d in work", len(next.Work))
	}
	next = ledger.ApplyProgress(next, receipt(rev(last.Version+1, 0), 0, 1), 9, noon, settings)
	if at, ok := next.Due[below(rev(last.Version+1, 0))]; !ok || !at.Equal(noon.Add(settings.RemovalDelay)) || len(next.Due) > 3 {
		t.Errorf("the next version that is served does not remove them: %d are due, %s", len(next.Due), at)
	}
}
