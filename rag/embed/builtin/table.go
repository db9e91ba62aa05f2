package builtin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// table is a model as it lies in its file, little-endian:
//
//	"TSE1" | u32 dims | u32 words | u32 buckets | u32 bits (8 or 4) | u32 vocabulary bytes
//	vocabulary: words times { u8 bytes shared with the word before | u8 n | n bytes }, in the order of the bytes
//	scales:     (words+buckets) times float32
//	rows:       (words+buckets) times dims int8; with 4 bits dims/2 bytes: element j in the low half of byte j,
//	            element j+dims/2 in the high half, each plus 8
//
// The first rows are the words', the others those of hashed n-grams. It never changes once read.
type table struct {
	dims, words, buckets, bits int
	stride                     int // bytes of a row
	ids                        map[string]int32
	scales                     []float32
	rows                       []byte
}

const (
	magic      = "TSE1"
	headerSize = 24
	maxDims    = 4096
	maxRows    = 1 << 24
)

var errVocabulary = errors.New("the vocabulary is broken")

// readTable reads a model. It keeps file, without a copy of the rows; file must not change any more.
func readTable(file []byte) (*table, error) {
	if len(file) < headerSize || string(file[:len(magic)]) != magic {
		return nil, fmt.Errorf("no %s header", magic)
	}
	field := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(file[len(magic)+4*i:])) }
	dims, words, buckets, bits, vocabulary := field(0), field(1), field(2), field(3), field(4)
	if (bits != 8 && bits != 4) || dims == 0 || dims%4 != 0 || dims > maxDims || buckets == 0 || words+buckets > maxRows {
		return nil, fmt.Errorf("header out of range: %d dimensions of %d bits, %d words, %d buckets", dims, bits, words, buckets)
	}
	stride, rows := dims*bits/8, words+buckets
	if want := headerSize + vocabulary + rows*(4+stride); uint64(len(file)) != want {
		return nil, fmt.Errorf("%d bytes long, its header says %d", len(file), want)
	}
	t := &table{
		dims: int(dims), words: int(words), buckets: int(buckets), bits: int(bits), stride: int(stride),
		scales: make([]float32, rows),
	}
	rest := file[headerSize:]
	if err := t.readVocabulary(rest[:vocabulary]); err != nil {
		return nil, err
	}
	rest = rest[vocabulary:]
	for i := range t.scales {
		t.scales[i] = math.Float32frombits(binary.LittleEndian.Uint32(rest[4*i:]))
	}
	t.rows = rest[4*rows:]
	return t, nil
}

func (t *table) readVocabulary(b []byte) error {
	// A word takes two bytes at least: a header that promises more must not size the map.
	if 2*t.words > len(b) {
		return errVocabulary
	}
	t.ids = make(map[string]int32, t.words)
	var word []byte
	for i := range t.words {
		if len(b) < 2 {
			return errVocabulary
		}
		shared, n := int(b[0]), int(b[1])
		if b = b[2:]; shared > len(word) || n > len(b) || shared+n > maxWordBytes {
			return errVocabulary
		}
		word = append(word[:shared], b[:n]...)
		b = b[n:]
		t.ids[string(word)] = int32(i)
	}
	if len(b) > 0 || len(t.ids) != t.words {
		return errVocabulary
	}
	return nil
}

// add adds weight times a row to sum, which has t.dims elements.
func (t *table) add(sum []float32, row int, weight float32) {
	weight *= t.scales[row]
	packed := t.rows[row*t.stride : (row+1)*t.stride]
	if t.bits == 8 {
		sum = sum[:len(packed)]
		for j, c := range packed {
			sum[j] += weight * float32(int8(c))
		}
		return
	}
	var values [16]float32 // of the 16 halves of a byte, so that the loop neither converts nor multiplies
	for i := range values {
		values[i] = weight * float32(i-8)
	}
	low, high := sum[:len(packed)], sum[len(packed):][:len(packed)]
	for j, c := range packed {
		low[j] += values[c&15]
		high[j] += values[c>>4]
	}
}
