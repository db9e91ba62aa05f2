// Package builtin is the embedding model that the binary carries: English and Russian in one space, without a network,
// a service or cgo.
//
// A text's vector is the sum of its words' vectors, scaled to unit length; the weights of the words are part of the
// table. A word that the vocabulary lacks is the mean of its hashed n-grams. docs/builtin-model.md tells where the
// table comes from, what its licences ask and what it cannot do.
package builtin

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"sync"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
)

const (
	// Name of the model.
	Name = "waymark-en-ru-256"
	// Version moves with every change of the table or of the code that alters a vector.
	Version = 1
	// Dimensions of its vectors.
	Dimensions = 256
)

//go:embed model.bin
var modelFile []byte

// Model is the built-in embedder. It is safe for concurrent use. The table is read when it is first needed (about
// 15 ms, and 6 MB beside the binary); its cache of unknown words takes 5 MB at most.
type Model struct {
	load  func() (*table, error)
	cache wordCache
}

var _ embed.Embedder = (*Model)(nil)

// New returns an embedder with a cache of its own. It does no work yet.
func New() *Model {
	return &Model{load: sync.OnceValues(func() (*table, error) {
		t, err := readTable(modelFile)
		if err != nil {
			return nil, fmt.Errorf("built-in model: %w", err)
		}
		return t, nil
	})}
}

// Embed embeds any text: there is none that it refuses, and text without a letter or digit (an empty one too) gets a
// fixed vector that is near to nothing. It fails only when ctx ends.
func (m *Model) Embed(ctx context.Context, texts []string) ([]embed.Result, error) {
	t, err := m.load()
	if err != nil {
		return nil, &embed.Error{Class: rag.ClassOutage, Reason: embed.ReasonUnavailable, Err: err}
	}
	results := make([]embed.Result, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return results, &embed.Error{Class: rag.ClassTransient, Reason: embed.ReasonCanceled, Err: err}
		}
		results[i].Vector = m.embed(t, text)
	}
	return results, nil
}

// Model is the name with the version.
func (m *Model) Model() string { return fmt.Sprintf("%s@%d", Name, Version) }

// Dimensions is always the constant.
func (m *Model) Dimensions() int { return Dimensions }

// Settings is empty: there is nothing to set.
func (m *Model) Settings() string { return "" }

// Paid is false: a text costs about 40 microseconds.
func (m *Model) Paid() bool { return false }

// Canary embeds a word.
func (m *Model) Canary(ctx context.Context) error {
	_, err := m.Embed(ctx, []string{"canary"})
	return err
}

// embed returns the unit vector of text.
func (m *Model) embed(t *table, text string) []float32 {
	sum := make([]float32, t.dims)
	splitWords(text, func(word []byte) { m.addWord(t, sum, word) })
	if !normalise(sum) {
		nowhere(sum)
	}
	return sum
}

// addWord adds the vector of a word to sum. An unknown word gives the same bits whether it was in the cache or not.
func (m *Model) addWord(t *table, sum []float32, word []byte) {
	if id, ok := t.ids[string(word)]; ok {
		t.add(sum, int(id), 1)
		return
	}
	word = beginning(word)
	v := m.cache.get(word)
	if v == nil {
		v = make([]float32, t.dims)
		t.addGrams(v, word)
		m.cache.put(word, v)
	}
	for i, x := range v {
		sum[i] += x
	}
}

// normalise scales v to unit length; false if it has none.
func normalise(v []float32) bool {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if square < 0x1p-126 { // below what embed.Check tells from zero
		return false
	}
	k := float32(1 / math.Sqrt(square))
	for i := range v {
		v[i] *= k
	}
	return true
}

// nowhere makes v the vector of a text without words: the axis of the last dimension, on which the words of the
// vocabulary vary least. Its cosine with any of them is below 0.23.
func nowhere(v []float32) {
	clear(v)
	v[len(v)-1] = 1
}
