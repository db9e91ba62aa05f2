package sqlite

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/sinktest"
)

// Whatever is asked, the answer is that of a store that looks at every object. BM25 differs in its details, so that text
// is compared as a set.
func TestSearchAgreesWithBruteForce(t *testing.T) {
	ctx := context.Background()
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"), testOptions)
	reference := sinktest.NewMemory(testDimensions)
	r := rand.New(rand.NewPCG(3, 4))
	vector := func() []float32 {
		v := make([]float32, testDimensions)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	words := strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa")
	var objects []sinks.Object
	for _, document := range []string{"a", "b", "c"} {
		for version := range 4 {
			for i, o := range chunks(document, rag.Revision{Version: rag.Version(version + 1)}, 40) {
				o.Vector = vector()
				o.Chunk.Text = words[r.IntN(10)] + " " + words[r.IntN(10)]
				o.Chunk.Metadata = rag.Metadata{"part=" + words[i%3], "version=" + words[version]}
				objects = append(objects, o)
			}
		}
	}
	wantOutcome(t, s.Upsert(ctx, objects, nil), sinks.Done)
	wantOutcome(t, reference.Upsert(ctx, objects, nil), sinks.Done)

	rapid.Check(t, func(rt *rapid.T) {
		q := sinks.Query{
			Mode:       rapid.SampledFrom([]sinks.Mode{sinks.ModeVector, sinks.ModeText, sinks.ModeHybrid}).Draw(rt, "mode"),
			Vector:     vector(),
			Text:       strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(words, "unheard")), 0, 3).Draw(rt, "text"), " "),
			K:          rapid.SampledFrom([]int{1, 3, 10, 200, sinks.MaxK}).Draw(rt, "k"),
			DocumentID: rapid.SampledFrom([]string{"", "", "a", "nobody"}).Draw(rt, "document"),
			Metadata: rapid.SampledFrom([][]string{
				nil, nil, {"part=alpha"}, {"part=beta", "version=gamma"}, {"part=alpha", "part=beta"}, {"version=delta"},
			}).Draw(rt, "metadata"),
		}
		served := rapid.SliceOfNDistinct(rapid.IntRange(1, 4), 0, 4, rapid.ID).Draw(rt, "served")
		q.Served = func(_ string, rev rag.Revision) bool { return slices.Contains(served, int(rev.Version)) }
		got, err := s.Search(ctx, q)
		if err != nil {
			rt.Fatal(err)
		}
		want, err := reference.Search(ctx, q)
		if err != nil {
			rt.Fatal(err)
		}
		if len(got) != len(want) {
			rt.Fatalf("%d hits, want %d", len(got), len(want))
		}
		for i := range got {
			if q.Mode == sinks.ModeVector && (got[i].ID != want[i].ID || math.Abs(got[i].Score-want[i].Score) > 1e-5) {
				rt.Fatalf("hit %d is %s with %v, want %s with %v", i, got[i].ID, got[i].Score, want[i].ID, want[i].Score)
			}
			if !passes(q, got[i]) {
				rt.Fatalf("hit %d, %+v, is filtered out", i, got[i].Chunk)
			}
		}
	})
}

// passes checks a hit against the filters, apart from the code under test.
func passes(q sinks.Query, h sinks.Hit) bool {
	for _, pair := range q.Metadata {
		if !slices.Contains(h.Chunk.Metadata, pair) {
			return false
		}
	}
	return q.Served(h.Chunk.DocumentID, h.Chunk.Revision) && (q.DocumentID == "" || q.DocumentID == h.Chunk.DocumentID)
}

func FuzzMatchExpression(f *testing.F) {
	for _, s := range []string{"plain words", `"quoted" AND (x OR y)`, "col:umn ^a -b +c *", "NEAR(a b)", "東京", "a\x00b", "'; --", "{a b}"} {
		f.Add(s)
	}
	s, err := Open(context.Background(), filepath.Join(f.TempDir(), "store.db"), testOptions)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := s.Search(context.Background(), sinks.Query{Mode: sinks.ModeText, Text: text, K: 3}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

func FuzzDecodeMetadata(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 'a', '=', 'b', 2, 'c', '='})
	f.Add([]byte{200, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := decodeMetadata(b)
		if again := decodeMetadata(encodeMetadata(m)); !slices.Equal(again, m) {
			t.Fatalf("%q becomes %q", m, again)
		}
	})
}
