package sqlite

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

const benchDimensions = 256

// corpus makes chunks of about 800 bytes whose words are distributed as in a language.
type corpus struct {
	random *rand.Rand
	words  []string
	zipf   *rand.Zipf
}

func newCorpus() *corpus {
	r := rand.New(rand.NewPCG(1, 2))
	c := &corpus{random: r, zipf: rand.NewZipf(r, 1.1, 2.7, 50_000-1)}
	for range 50_000 {
		w := make([]byte, 2+r.IntN(9))
		for i := range w {
			w[i] = 'a' + byte(r.IntN(26))
		}
		c.words = append(c.words, string(w))
	}
	return c
}

func (c *corpus) text(bytes int) string {
	var b strings.Builder
	for b.Len() < bytes {
		b.WriteString(c.words[c.zipf.Uint64()])
		b.WriteByte(' ')
	}
	return b.String()
}

// question is eight words, none of them among the hundred that stand in nearly every text.
func (c *corpus) question() string {
	var b strings.Builder
	for range 8 {
		b.WriteString(c.words[100+c.zipf.Uint64()%49_900])
		b.WriteByte(' ')
	}
	return b.String()
}

func (c *corpus) vector() []float32 {
	v := make([]float32, benchDimensions)
	var sum float64
	for i := range v {
		x := c.random.NormFloat64()
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// objects makes n chunks, ten a document, beginning with number first.
func (c *corpus) objects(first, n int) []sinks.Object {
	out := make([]sinks.Object, n)
	for i := range out {
		document := fmt.Sprintf("document-%d", (first+i)/10)
		rev := rag.Revision{Version: 1}
		out[i] = sinks.Object{ID: rag.ChunkID("", document, rev, (first+i)%10).String(), Vector: c.vector(), Chunk: rag.Chunk{
			Subject: rag.Subject{DocumentID: document, Revision: rev}, Index: (first + i) % 10, Count: 10,
			Text: c.text(800), Title: "Title of " + document, Source: "https://example.com/" + document,
			Metadata: rag.Metadata{"lang=en", "year=2026"},
		}}
	}
	return out
}

func benchStore(b *testing.B) *Store {
	s, err := Open(context.Background(), filepath.Join(b.TempDir(), "store.db"), Options{Model: "bench", Dimensions: benchDimensions})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func mustUpsert(b *testing.B, s *Store, objects []sinks.Object) {
	for _, r := range s.Upsert(context.Background(), objects, nil) {
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}

// BenchmarkUpsert writes batches of 100 chunks of 800 bytes; one operation is one chunk.
func BenchmarkUpsert(b *testing.B) {
	const batch = 100
	for _, name := range []string{"fresh", "again"} {
		b.Run(name, func(b *testing.B) {
			s := benchStore(b)
			objects := newCorpus().objects(0, b.N)
			if name == "again" {
				for i := 0; i < b.N; i += batch {
					mustUpsert(b, s, objects[i:min(i+batch, b.N)])
				}
			}
			b.ResetTimer()
			for i := 0; i < b.N; i += batch {
				mustUpsert(b, s, objects[i:min(i+batch, b.N)])
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "chunks/s")
		})
	}
}

// BenchmarkSearch asks stores of two sizes.
func BenchmarkSearch(b *testing.B) {
	for _, size := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s, c := benchStore(b), newCorpus()
			for i := 0; i < size; i += 500 {
				mustUpsert(b, s, c.objects(i, 500))
			}
			questions := make([]sinks.Query, 20)
			for i := range questions {
				questions[i] = sinks.Query{Text: c.question(), Vector: c.vector(), K: 10}
			}
			ask := func(b *testing.B, change func(*sinks.Query)) {
				for i := 0; b.Loop(); i++ {
					q := questions[i%len(questions)]
					change(&q)
					if _, err := s.Search(context.Background(), q); err != nil {
						b.Fatal(err)
					}
				}
			}
			for _, mode := range []sinks.Mode{sinks.ModeVector, sinks.ModeText, sinks.ModeHybrid} {
				b.Run(string(mode), func(b *testing.B) { ask(b, func(q *sinks.Query) { q.Mode = mode }) })
			}
			b.Run("vector-k1000", func(b *testing.B) { ask(b, func(q *sinks.Query) { q.Mode, q.K = sinks.ModeVector, 1000 }) })
			b.Run("hybrid-document", func(b *testing.B) {
				ask(b, func(q *sinks.Query) { q.Mode, q.K, q.DocumentID = sinks.ModeHybrid, 1000, "document-7" })
			})
			b.Run("hybrid-metadata-all", func(b *testing.B) {
				ask(b, func(q *sinks.Query) { q.Mode, q.Metadata = sinks.ModeHybrid, []string{"lang=en"} })
			})
			b.Run("hybrid-none-served", func(b *testing.B) {
				ask(b, func(q *sinks.Query) {
					q.Mode, q.Served = sinks.ModeHybrid, func(string, rag.Revision) bool { return false }
				})
			})
		})
	}
}
