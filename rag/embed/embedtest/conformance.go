package embedtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/waymarkhq/waymark/rag/embed"
)

// sameCosine is the least cosine of two vectors of one text: a service may round differently in a batch and alone.
const sameCosine = 0.9999

// Run checks that the embedders that newEmbedder makes keep the promises of embed.Embedder. It embeds about 700 short
// texts and one of 8 KiB; the service behind must work and take them.
func Run(t *testing.T, newEmbedder func(t *testing.T) embed.Embedder) {
	for _, c := range []struct {
		name  string
		check func(t *testing.T, e embed.Embedder)
	}{
		{"no texts", noTexts},
		{"identity", identity},
		{"canary", canary},
		{"one result per text, in order", oneResultPerText},
		{"odd texts", oddTexts},
		{"texts and results are the caller's", ownership},
		{"concurrent calls", concurrentCalls},
		{"cancelled", cancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, newEmbedder(t)) })
	}
}

// vectorsOf embeds texts and requires a sound vector for each.
func vectorsOf(ctx context.Context, e embed.Embedder, texts []string) ([][]float32, error) {
	results, err := e.Embed(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("embed %d texts: %w", len(texts), err)
	}
	if len(results) != len(texts) {
		return nil, fmt.Errorf("%d results for %d texts", len(results), len(texts))
	}
	vectors := make([][]float32, len(results))
	for i, r := range results {
		if r.Err != nil || !r.Done() {
			return nil, fmt.Errorf("text %d of %d has no vector: %w", i, len(texts), r.Err)
		}
		if err := embed.Check(r.Vector, e.Dimensions()); err != nil {
			return nil, fmt.Errorf("text %d of %d: %w", i, len(texts), err)
		}
		vectors[i] = r.Vector
	}
	return vectors, nil
}

func mustEmbed(t *testing.T, e embed.Embedder, texts ...string) [][]float32 {
	t.Helper()
	vectors, err := vectorsOf(t.Context(), e, texts)
	if err != nil {
		t.Fatal(err)
	}
	return vectors
}

// cosine of two vectors that have passed Check.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// numbered are n different texts.
func numbered(n int) []string {
	nouns := []string{"bank", "river", "vaccine", "goal", "teacher", "engine", "winter", "market", "банк", "река", "учитель"}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("Report %d says that the %s of the %s is number %d.", i, nouns[i%len(nouns)], nouns[i/len(nouns)%len(nouns)], i*i)
	}
	return texts
}

func noTexts(t *testing.T, e embed.Embedder) {
	for _, none := range [][]string{nil, {}} {
		results, err := e.Embed(t.Context(), none)
		if err != nil || len(results) != 0 {
			t.Errorf("Embed(%#v) = %v, %v", none, results, err)
		}
	}
}

func identity(t *testing.T, e embed.Embedder) {
	model, settings, paid := e.Model(), e.Settings(), e.Paid()
	if model == "" {
		t.Error("the model has no name")
	}
	before := e.Dimensions()
	vectors := mustEmbed(t, e, "a text")
	if after := e.Dimensions(); after != len(vectors[0]) || before != 0 && before != after {
		t.Errorf("Dimensions was %d and is %d, a vector has %d", before, after, len(vectors[0]))
	}
	if e.Model() != model || e.Settings() != settings || e.Paid() != paid {
		t.Error("model, settings or paid have changed with a call")
	}
}

func canary(t *testing.T, e embed.Embedder) {
	if err := e.Canary(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.Dimensions() == 0 {
		t.Error("Dimensions is 0 after a canary")
	}
	mustEmbed(t, e, embed.CanaryTexts()...)
}

func oneResultPerText(t *testing.T, e embed.Embedder) {
	texts := numbered(300)
	texts[17] = texts[230] // the same text twice has two results
	together := mustEmbed(t, e, texts...)
	for _, i := range []int{0, 1, 17, 63, 64, 65, 127, 128, 230, 299} {
		alone := mustEmbed(t, e, texts[i])[0]
		if c := cosine(alone, together[i]); c < sameCosine {
			t.Errorf("text %d has a cosine of %.5f with itself in a batch", i, c)
		}
	}
	if c := cosine(together[0], together[1]); c > sameCosine {
		t.Errorf("different texts have a cosine of %.5f", c)
	}
}

func oddTexts(t *testing.T, e embed.Embedder) {
	mustEmbed(t, e, "x", "?", "…", "42", "\"quoted\" \\ <b>&amp;</b>", "line\nbreak\ttab\r\n", "nul\x00inside", "😀 🚀",
		"北京 2008 オリンピック", "שלום עולם", "e\u0301\u200d\u00ad", "\xff\xfe no UTF-8", strings.Repeat("a", 300),
		strings.Repeat("word ", 8<<10/5))
}

func ownership(t *testing.T, e embed.Embedder) {
	texts := []string{"one text", "another text", "one text"}
	given := slices.Clone(texts)
	first := mustEmbed(t, e, texts...)
	if !slices.Equal(texts, given) {
		t.Fatalf("the texts have become %q", texts)
	}
	for _, v := range first {
		clear(v)
	}
	for i, v := range mustEmbed(t, e, texts...) {
		if err := embed.Check(v, e.Dimensions()); err != nil {
			t.Errorf("result %d shares memory with one given before: %v", i, err)
		}
		clear(v)
	}
}

func concurrentCalls(t *testing.T, e embed.Embedder) {
	texts := numbered(40)
	want := mustEmbed(t, e, texts...)
	errs := make([]error, 6)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = compare(t.Context(), e, texts, want) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// compare embeds texts and compares the vectors with want.
func compare(ctx context.Context, e embed.Embedder, texts []string, want [][]float32) error {
	got, err := vectorsOf(ctx, e, texts)
	if err != nil {
		return err
	}
	for i := range got {
		if c := cosine(got[i], want[i]); c < sameCosine {
			return fmt.Errorf("text %d has a cosine of %.5f with itself in another call", i, c)
		}
	}
	return e.Canary(ctx)
}

func cancelled(t *testing.T, e embed.Embedder) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var typed *embed.Error
	if _, err := e.Embed(ctx, []string{"a text"}); !errors.Is(err, context.Canceled) || !errors.As(err, &typed) {
		t.Errorf("Embed: %v, want an *embed.Error around %v", err, context.Canceled)
	}
	if err := e.Canary(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Canary: %v, want %v", err, context.Canceled)
	}
	mustEmbed(t, e, "a text after that")
}
