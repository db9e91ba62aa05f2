package ledger

import "math/bits"

// Bitmap is a set of chunk indexes. It is immutable: With returns a new one.
type Bitmap []uint64

// Has reports whether i is in the set.
func (b Bitmap) Has(i int) bool { return i>>6 < len(b) && b[i>>6]&(1<<(i&63)) != 0 }

// With returns the set with [from, to) added.
func (b Bitmap) With(from, to int) Bitmap {
	n := max(len(b), (to+63)>>6)
	c := make(Bitmap, n)
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

// Full reports whether the set is exactly [0, n).
func (b Bitmap) Full(n int) bool {
	return n > 0 && b.Len() == n && (n>>6 >= len(b) || b[n>>6]>>(n&63) == 0)
}
