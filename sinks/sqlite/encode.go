package sqlite

import (
	"encoding/binary"
	"math"

	"github.com/waymarkhq/waymark/rag"
)

// encodeVector is the form of sqlite-vec: float32, little endian.
func encodeVector(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// encodeMetadata writes each pair after its length; a pair may hold any character.
func encodeMetadata(m rag.Metadata) []byte {
	b := []byte{}
	for _, pair := range m {
		b = binary.AppendUvarint(b, uint64(len(pair)))
		b = append(b, pair...)
	}
	return b
}

// decodeMetadata reads what encodeMetadata wrote, and of anything else the beginning that makes sense.
func decodeMetadata(b []byte) rag.Metadata {
	var m rag.Metadata
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			break
		}
		b = b[size:]
		m = append(m, string(b[:n]))
		b = b[n:]
	}
	return m
}
