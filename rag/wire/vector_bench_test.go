package wire_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
)

func benchmarkVector(dimensions int) rag.Vector {
	random := rand.New(rand.NewPCG(1, 2))
	v := rag.Vector{
		Chunk: rag.Chunk{
			Subject: rag.Subject{
				DocumentID: "articles/2026/some-article.html",
				MessageID:  "0195f1f0-7f0e-7c3c-9f60-2d1c9a9d1f11",
				Revision:   rag.Revision{Version: 123456},
			},
			Index: 3, Count: 12, Start: 2400, End: 3300,
			Text:     strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20),
			Title:    "Some article",
			Source:   "https://example.com/articles/2026/some-article.html",
			Metadata: rag.Metadata{"lang=en", "year=2026"},
			Heading:  "Animals › Foxes",
		},
		Values: make([]float32, dimensions),
	}
	for i := range v.Values {
		v.Values[i] = random.Float32()*2 - 1
	}
	return v
}

func BenchmarkVectorEncode(b *testing.B) {
	for _, dimensions := range []int{256, 1536} {
		b.Run(fmt.Sprint(dimensions), func(b *testing.B) {
			c, v := wire.NewCodecs(clock(now)), benchmarkVector(dimensions)
			b.SetBytes(int64(len(encode(b, c.Vector, v))))
			b.ReportAllocs()
			for b.Loop() {
				encode(b, c.Vector, v)
			}
		})
	}
}

func BenchmarkVectorDecode(b *testing.B) {
	for _, dimensions := range []int{256, 1536} {
		b.Run(fmt.Sprint(dimensions), func(b *testing.B) {
			c := wire.NewCodecs(clock(now))
			raw := encode(b, c.Vector, benchmarkVector(dimensions))
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Vector.Decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
