package ledger

import (
	"cmp"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

// ForgetFinals returns the row without the finals that are both beyond k.Count and older than k.For, lowest revision
// first. Never forgotten are those at or above the fence (a late record would say a second one), those of replays, and
// those whose cause is not committed yet (not below committed, a position of the progress topic): it may come again.
// It returns row itself when there is nothing to forget.
func ForgetFinals(row *DocumentRow, committed rag.Version, now time.Time, k Keep) *DocumentRow {
	if row == nil || len(row.Finals) <= k.Count {
		return row
	}
	next, excess := row, len(row.Finals)-k.Count
	for _, id := range sortedBy(row.Finals, func(a, b Final) int { return compareRevisions(a.Revision, b.Revision) }) {
		f := row.Finals[id]
		if f.Revision.Generation > 0 {
			continue
		}
		if excess == 0 || f.Cause >= committed || f.Revision.Version >= row.Fence || !k.old(f.At, now) {
			break
		}
		if next == row {
			next = row.clone()
		}
		delete(next.Finals, id)
		next.Floor = max(next.Floor, f.Revision.Version)
		excess--
	}
	return next
}

// FirstDue is the removal that may run first, with its time; of those with the same time the one with the lower revision,
// and of these the exact one.
func FirstDue(row *DocumentRow) (rag.Removal, time.Time, bool) {
	var (
		first rag.Removal
		at    time.Time
		found bool
	)
	if row == nil {
		return first, at, false
	}
	for r, due := range row.Due {
		if !found || cmp.Or(due.Compare(at), compareRevisions(r.Revision, first.Revision), compareBools(!r.Exact, !first.Exact)) < 0 {
			first, at, found = r, due, true
		}
	}
	return first, at, found
}

// MergeDocumentRow joins two rows; it is commutative, associative and idempotent. A row is a function of a prefix of one
// log, so the longer prefix wins. Rows of the same prefix differ only by the clocks of their owners: due removals by
// the later time, finals by what was forgotten.
func MergeDocumentRow(a, b *DocumentRow) *DocumentRow {
	if a == nil || b == nil {
		return either(a, b)
	}
	if a.Applied != b.Applied {
		if a.Applied > b.Applied {
			return a
		}
		return b
	}
	c := a.clone()
	c.Fence, c.Floor = max(a.Fence, b.Fence), min(a.Floor, b.Floor)
	if compareServed(a.Served, b.Served) < 0 {
		c.Served = b.Served
	}
	highest(c.Work, b.Work, compareWork)
	highest(c.Finals, b.Finals, compareFinals)
	highest(c.Due, b.Due, time.Time.Compare)
	return c
}
