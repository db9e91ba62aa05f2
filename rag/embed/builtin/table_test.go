package builtin

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"sort"
	"testing"
)

// TestVersionNamesTheTable: stores and caches hold vectors under the model's version. Whoever changes model.bin raises
// Version, and then adds the new sum here.
func TestVersionNamesTheTable(t *testing.T) {
	sums := map[int]string{1: "2391b4f8005f2c4cc5808184110b25b6426cf15bd3ce404407bdfa30fbcfb770"}
	sum := sha256.Sum256(modelFile)
	if got := hex.EncodeToString(sum[:]); got != sums[Version] {
		t.Fatalf("model.bin has SHA-256 %s, version %d is %q", got, Version, sums[Version])
	}
	table, err := readTable(modelFile)
	if err != nil {
		t.Fatal(err)
	}
	if table.dims != Dimensions {
		t.Fatalf("model.bin has %d dimensions, the constant says %d", table.dims, Dimensions)
	}
}

// tableFile writes a small model whose rows count up.
func tableFile(dims, bits, buckets int, words ...string) []byte {
	sort.Strings(words)
	var vocabulary []byte
	before := ""
	for _, w := range words {
		shared := 0
		for shared < min(len(before), len(w)) && before[shared] == w[shared] {
			shared++
		}
		vocabulary = append(append(vocabulary, byte(shared), byte(len(w)-shared)), w[shared:]...)
		before = w
	}
	b := []byte(magic)
	for _, n := range []int{dims, len(words), buckets, bits, len(vocabulary)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(b, vocabulary...)
	rows := len(words) + buckets
	for range rows {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(0.5))
	}
	for i := range rows * dims * bits / 8 {
		b = append(b, byte(i))
	}
	return b
}

func TestReadTable(t *testing.T) {
	for _, bits := range []int{4, 8} {
		table, err := readTable(tableFile(4, bits, 2, "car", "care", "cat"))
		if err != nil {
			t.Fatal(err)
		}
		if len(table.ids) != 3 || table.ids["care"] != 1 || table.ids["cat"] != 2 {
			t.Errorf("%d bits: vocabulary %v", bits, table.ids)
		}
		sum := make([]float32, 4)
		table.add(sum, 1, 2) // twice the scale of a half
		want := map[int]string{4: "[-6 -5 -8 -8]", 8: "[4 5 6 7]"}[bits]
		if got := fmt.Sprint(sum); got != want {
			t.Errorf("%d bits: row 1 is %s, want %s", bits, got, want)
		}
	}
}

func TestBrokenTables(t *testing.T) {
	good := tableFile(4, 8, 2, "car", "care", "cat")
	if _, err := readTable(good); err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := readTable(good[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are read", n, len(good))
		}
	}
	if _, err := readTable(append(append([]byte{}, good...), 0)); err == nil {
		t.Error("a byte too many is read")
	}
	for name, at := range map[string]int{"magic": 0, "dimensions": 4, "words": 8, "buckets": 12, "bits": 16, "vocabulary": 20, "shared": 24, "length": 25} {
		broken := append([]byte{}, good...)
		broken[at] += 3
		if _, err := readTable(broken); err == nil {
			t.Errorf("a changed %s is read", name)
		}
	}
	if _, err := readTable(tableFile(4, 8, 2, "twice", "twice")); err == nil {
		t.Error("a word that stands twice is read")
	}
}

// FuzzReadTable: whatever is read can be used.
func FuzzReadTable(f *testing.F) {
	f.Add(tableFile(4, 8, 2, "car", "care", "cat"))
	f.Add(tableFile(8, 4, 1, "a"))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, file []byte) {
		read, err := readTable(file)
		if err != nil {
			return
		}
		m := &Model{load: func() (*table, error) { return read, nil }}
		if v := m.embed(read, "car unknown 12"); len(v) != read.dims {
			t.Fatalf("%d dimensions, want %d", len(v), read.dims)
		}
	})
}
