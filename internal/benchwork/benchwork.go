// Package benchwork is the work that benchmarks give to the engine and to the bare libraries beside it: read a row, write it,
// send one record on.
package benchwork

import "encoding/binary"

// Raw is the stage codec of bytes. For goka there is codec.Bytes.
type Raw struct{}

// Encode returns b.
func (Raw) Encode(b []byte) ([]byte, error) { return b, nil }

// Decode returns b.
func (Raw) Decode(b []byte) ([]byte, error) { return b, nil }

// Later is a merge of rows that begin with a number: the higher one wins.
func Later(a, b *[]byte) *[]byte {
	if binary.BigEndian.Uint64(*b) > binary.BigEndian.Uint64(*a) {
		return b
	}
	return a
}

// NextRow is the row of 64 bytes that follows row, nil for none, upon a value of at least 32 bytes.
func NextRow(row, value []byte) []byte {
	next := make([]byte, 64)
	if row != nil {
		copy(next, row)
	}
	binary.BigEndian.PutUint64(next, binary.BigEndian.Uint64(next)+1)
	copy(next[8:], value[:32])
	return next
}
