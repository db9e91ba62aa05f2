package split

import (
	"math/rand/v2"
	"testing"
)

// After an edit of a hundredth in the middle of a megabyte, few chunks have a text that is not there already. Equal texts have
// equal keys in the embedder's cache, so that this is the share that is embedded again.
func TestAnEditOfOnePerCentChangesFewChunks(t *testing.T) {
	const size = 1 << 20
	write := writings["prose"]
	before := write(rand.New(rand.NewPCG(1, 1)), size)
	from := border(before, size/2)
	after := before[:from] + write(rand.New(rand.NewPCG(2, 2)), size/100) + before[border(before, from+size/100):]
	for _, o := range variants(DefaultTokens, DefaultOverlap) {
		known := map[string]bool{}
		for _, p := range mustSplit(t, o, before, nil) {
			known[before[p.Start:p.End]] = true
		}
		pieces, fresh := mustSplit(t, o, after, nil), 0
		for _, p := range pieces {
			if !known[after[p.Start:p.End]] {
				fresh++
			}
		}
		share := float64(fresh) / float64(len(pieces))
		t.Logf("%s, parents of %d: %d of %d chunks are new (%.1f %%)", o.Mode, o.Parent, fresh, len(pieces), 100*share)
		if fresh == 0 || share > .05 {
			t.Errorf("%s, parents of %d: %.1f %% of the chunks are new", o.Mode, o.Parent, 100*share)
		}
	}
}
