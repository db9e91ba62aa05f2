package ledger

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/waymarkhq/waymark/rag"
)

// Total orders of what rows hold. A merge takes the higher of two values that differ, whatever they are, so that it is
// commutative and associative even for rows that the protocol never makes.

// either is the row that is there.
func either[R any](a, b *R) *R {
	if a == nil {
		return b
	}
	return a
}

// cloneMap copies m; the copy can be written to.
func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}

// sortedBy lists the keys of m in the order of their values; equal values by key.
func sortedBy[V any](m map[string]V, compare func(a, b V) int) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(compare(m[a], m[b]), cmp.Compare(a, b)) })
}

func sortedRevisions[V any](m map[rag.Revision]V) []rag.Revision {
	return slices.SortedFunc(maps.Keys(m), compareRevisions)
}

// highest takes b's values over into a where they are higher or a has none.
func highest[K comparable, V any](a, b map[K]V, compare func(a, b V) int) {
	for k, v := range b {
		if old, ok := a[k]; !ok || compare(old, v) < 0 {
			a[k] = v
		}
	}
}

func compareRevisions(a, b rag.Revision) int {
	return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Generation, b.Generation))
}

func compareFailures(a, b *rag.Failure) int {
	if a == nil || b == nil {
		return compareBools(a != nil, b != nil)
	}
	return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Reason, b.Reason),
		cmp.Compare(a.Message, b.Message))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func compareServed(a, b Served) int {
	return cmp.Or(compareRevisions(a.Revision, b.Revision), cmp.Compare(a.Count, b.Count),
		bytes.Compare(a.ContentIdentity[:], b.ContentIdentity[:]), a.At.Compare(b.At))
}

func compareWork(a, b Work) int {
	return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.RetryCause, b.RetryCause), cmp.Compare(a.Count, b.Count),
		cmp.Compare(a.Confirmed.Len(), b.Confirmed.Len()), slices.Compare(a.Confirmed, b.Confirmed),
		a.RetryDue.Compare(b.RetryDue), a.At.Compare(b.At), a.FirstFailed.Compare(b.FirstFailed),
		cmp.Compare(a.MessageID, b.MessageID), cmp.Compare(a.Partition, b.Partition),
		bytes.Compare(a.ContentIdentity[:], b.ContentIdentity[:]), slices.Compare(a.Warnings, b.Warnings),
		compareFailures(a.Failure, b.Failure))
}

func compareFinals(a, b Final) int {
	return cmp.Or(compareRevisions(a.Revision, b.Revision), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Cause, b.Cause),
		cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Count, b.Count), a.At.Compare(b.At),
		a.FirstFailed.Compare(b.FirstFailed), cmp.Compare(a.Partition, b.Partition), slices.Compare(a.Warnings, b.Warnings),
		compareFailures(a.Failure, b.Failure))
}
