package embedtest

import (
	"context"
	"slices"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
)

// sound is the simplest embedder that keeps the promises; broken ones differ from it in one thing.
type sound struct{}

func (sound) Embed(ctx context.Context, texts []string) ([]embed.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, &embed.Error{Class: rag.ClassTransient, Reason: embed.ReasonCanceled, Err: err}
	}
	results := make([]embed.Result, len(texts))
	for i, text := range texts {
		results[i].Vector = Vector(text, 8)
	}
	return results, nil
}

func (sound) Model() string    { return "sound" }
func (sound) Dimensions() int  { return 8 }
func (sound) Settings() string { return "" }
func (sound) Paid() bool       { return false }

func (s sound) Canary(ctx context.Context) error {
	_, err := s.Embed(ctx, embed.CanaryTexts())
	return err
}

func TestSoundEmbedderPasses(t *testing.T) {
	Run(t, func(*testing.T) embed.Embedder { return sound{} })
}

// changed lets a function spoil the results of a sound embedder.
type changed struct {
	sound
	change func(results []embed.Result) []embed.Result
}

func (c changed) Embed(ctx context.Context, texts []string) ([]embed.Result, error) {
	results, err := c.sound.Embed(ctx, texts)
	return c.change(results), err
}

// TestBrokenVectorsAreSeen: the suite rests on vectorsOf and compare, which must refuse what is broken.
func TestBrokenVectorsAreSeen(t *testing.T) {
	texts := numbered(5)
	want, err := vectorsOf(t.Context(), sound{}, texts)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func([]embed.Result) []embed.Result{
		"one missing":     func(r []embed.Result) []embed.Result { return r[1:] },
		"one not done":    func(r []embed.Result) []embed.Result { r[2] = embed.Result{}; return r },
		"zero":            func(r []embed.Result) []embed.Result { clear(r[4].Vector); return r },
		"short":           func(r []embed.Result) []embed.Result { r[0].Vector = r[0].Vector[1:]; return r },
		"in reverse":      func(r []embed.Result) []embed.Result { slices.Reverse(r); return r },
		"another's twice": func(r []embed.Result) []embed.Result { r[1] = r[0]; return r },
	} {
		if err := compare(t.Context(), changed{change: change}, texts, want); err == nil {
			t.Errorf("%s: not seen", name)
		}
	}
	if err := compare(t.Context(), sound{}, texts, want); err != nil {
		t.Errorf("a sound one: %v", err)
	}
}
