package processors

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
)

// chunkKey is the key of a chunk record, and of the row that caches its vector: equal texts meet in one partition, where they
// are embedded once.
func chunkKey(model, settings, text string) string {
	h := rag.CacheKey(model, settings, text)
	return fmt.Sprintf("%x", h[:16])
}

// MergeCachedVector merges two rows of the embedder. Rows of one key come from the same model, settings and text; where a
// service answers twice with slightly different numbers, any one will do as long as everybody takes the same.
func MergeCachedVector(a, b *wire.CachedVector) *wire.CachedVector {
	if slices.CompareFunc(a.Values, b.Values, func(x, y float32) int { return cmp.Compare(x, y) }) >= 0 {
		return a
	}
	return b
}
