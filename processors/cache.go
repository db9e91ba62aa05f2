package processors

import (
	"cmp"
	"slices"

	"github.com/waymarkhq/waymark/rag/wire"
)

// MergeCachedVector merges two rows of the embedder. Rows of one key come from the same model, settings and text; where a
// service answers twice with slightly different numbers, any one will do as long as everybody takes the same.
func MergeCachedVector(a, b *wire.CachedVector) *wire.CachedVector {
	if slices.CompareFunc(a.Values, b.Values, func(x, y float32) int { return cmp.Compare(x, y) }) >= 0 {
		return a
	}
	return b
}
