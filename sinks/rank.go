package sinks

import (
	"context"

	"github.com/waymarkhq/waymark/rag"
)

// TextWeight is the share of the text score in hybrid search. Ranks are not used: on paraphrases, chunks that share
// nothing but frequent words with the question would push out the right ones.
const TextWeight = 0.15

// Fuse is the score of hybrid search: cosine + TextWeight × BM25 / the best BM25 of this query. best is 0 where no
// chunk matches the text.
func Fuse(cosine, bm25, best float64) float64 {
	if best <= 0 {
		return cosine
	}
	return cosine + TextWeight*bm25/best
}

// Keeps tells whether a chunk may be among the hits of q.
func (q Query) Keeps(documentID string, rev rag.Revision) bool {
	return q.Served == nil || q.Served(documentID, rev)
}

// Limits are those for Widen where a store answers at most max candidates at once: 2n+16, and 8 times as many each
// time. A stale version of everything costs one more round; only a store that serves next to nothing costs several.
func Limits(n, max int) []int {
	const growth = 8
	var limits []int
	for limit := 2*n + 16; limit < max; limit *= growth {
		limits = append(limits, limit)
	}
	return append(limits, max)
}

// Widen returns the first n candidates that keep passes, or all of them if there are fewer, so that a candidate that
// is filtered out after the search costs no place. fetch gives each of the limit best candidates of the store, best
// first, until each returns false, and fewer only if there are no more; it is asked for every one of limits, in order,
// until there are n. The last limit bounds the work.
func Widen[T any](ctx context.Context, n int, limits []int, fetch func(ctx context.Context, limit int, each func(T) bool) error, keep func(T) bool) ([]T, error) {
	var kept []T
	for _, limit := range limits {
		kept = kept[:0]
		seen := 0
		err := fetch(ctx, limit, func(c T) bool {
			seen++
			if keep(c) {
				kept = append(kept, c)
			}
			return len(kept) < n
		})
		if err != nil {
			return nil, err
		}
		if len(kept) == n || seen < limit {
			break
		}
	}
	return kept, nil
}
