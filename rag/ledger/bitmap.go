package ledger

import "math/bits"

// MaxChunks is the highest number of chunks that a version may have. It bounds the bitmap of a row: an index beyond it
// is ignored.
const MaxChunks = 1 << 20

// Bitmap is a set of chunk indexes from 0 to MaxChunks-1. It is immutable: With returns a new one.
type Bitmap []uint64

// Has reports whether i is in the set.
func (b Bitmap) Has(i int) bool { return i >= 0 && i>>6 < len(b) && b[i>>6]&(1<<(i&63)) != 0 }

// With returns the set with [from, to) added; what lies outside of [0, MaxChunks) is left out.
func (b Bitmap) With(from, to int) Bitmap {
	from, to = max(from, 0), min(to, MaxChunks)
	if from >= to {
		return b
	}
	c := make(Bitmap, max(len(b), (to+63)>>6))
	copy(c, b)
	for i := from; i < to; i++ {
		c[i>>6] |= 1 << (i & 63)
	}
	return c
}

// Len is the number of indexes in the set.
func (b Bitmap) Len() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Full reports whether [0, n) is in the set. n must be above 0.
func (b Bitmap) Full(n int) bool {
	if n <= 0 || n > len(b)<<6 {
		return false
	}
	for _, w := range b[:n>>6] {
		if w != ^uint64(0) {
			return false
		}
	}
	rest := uint64(1)<<(n&63) - 1
	return rest == 0 || b[n>>6]&rest == rest
}
