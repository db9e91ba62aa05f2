package ledger

import (
	"cmp"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

// replaysKept is how long the last word on a replayed version is kept. What could make it late, a record of it in any
// topic, is gone after a month; a replay that is new looks just like one.
const replaysKept = 90 * 24 * time.Hour

// ForgetFinals returns the row without the finals that are both beyond k.Count and older than k.For, lowest revision
// first. Kept are, whatever their age, those whose cause is not committed yet (not below committed, a position of the
// progress topic): it may come again; and those at or above the fence as long as an earlier version may still be to come:
// it would be taken for a late one. Replays are kept for three months. Of what is kept beyond k.Count the words go, which
// nobody reads any more. It returns row itself when there is nothing to forget.
func ForgetFinals(row *DocumentRow, committed rag.Version, now time.Time, k Keep) *DocumentRow {
	if row == nil || len(row.Finals) <= k.Count {
		return row
	}
	next, forgetting := row, true
	change := func() *DocumentRow {
		if next == row {
			next = row.clone()
		}
		return next
	}
	ids := sortedBy(row.Finals, func(a, b Final) int { return compareRevisions(a.Revision, b.Revision) })
	for _, id := range ids[:len(ids)-k.Count] {
		f := row.Finals[id]
		replay := f.Revision.Generation > 0 && now.Sub(f.At).Abs() <= replaysKept
		if !replay {
			forgetting = forgetting && f.Cause < committed && k.old(f.At, now) && row.settled(f.Revision.Version)
		}
		switch {
		case !replay && forgetting:
			delete(change().Finals, id)
			next.Floor = max(next.Floor, f.Revision.Version)
		case f.Cause < committed && f.wordy():
			change().Finals[id] = f.inShort()
		}
	}
	return next
}

// settled: neither the version nor one before it is still to come for the first time.
func (r *DocumentRow) settled(v rag.Version) bool { return v < r.Fence || v <= r.Heard }

// wordy: there is more to it than what it decides.
func (f Final) wordy() bool {
	return len(f.Warnings) > 0 || f.Failure != nil && f.Failure.Message != ""
}

func (f Final) inShort() Final {
	f.Warnings = nil
	f.Failure = inShort(f.Failure)
	return f
}

// inShort is a failure without its sentence.
func inShort(f *rag.Failure) *rag.Failure {
	if f == nil {
		return nil
	}
	short := *f
	short.Message = ""
	return &short
}

// FirstDue is the removal that may run first, with its time; of those with the same time the one with the lower revision,
// and of these the exact one.
func FirstDue(row *DocumentRow) (rag.Removal, time.Time, bool) {
	if row == nil {
		return rag.Removal{}, time.Time{}, false
	}
	return firstDue(row.Due, func(rag.Removal) bool { return true })
}

// firstDue is the first of those that count.
func firstDue(due map[rag.Removal]time.Time, counts func(rag.Removal) bool) (first rag.Removal, at time.Time, found bool) {
	for r, t := range due {
		if !counts(r) {
			continue
		}
		if !found || cmp.Or(t.Compare(at), compareRevisions(r.Revision, first.Revision), compareBools(!r.Exact, !first.Exact)) < 0 {
			first, at, found = r, t, true
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
	c.Fence, c.Floor, c.Heard = max(a.Fence, b.Fence), min(a.Floor, b.Floor), min(a.Heard, b.Heard)
	if compareServed(a.Served, b.Served) < 0 {
		c.Served = b.Served
	}
	highest(c.Work, b.Work, compareWork)
	highest(c.Finals, b.Finals, compareFinals)
	highest(c.Due, b.Due, time.Time.Compare)
	return c
}
