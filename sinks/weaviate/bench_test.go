package weaviate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// BenchmarkUpsert writes batches of 100 chunks of 800 bytes and 256 dimensions by one writer; one operation is one chunk.
func BenchmarkUpsert(b *testing.B) {
	const batch, dimensions = 100, 256
	server := needServer(b)
	for name, grpc := range map[string]string{"REST": "", "gRPC": server.grpc} {
		b.Run(name, func(b *testing.B) {
			s, err := Open(context.Background(), Options{
				URL: server.url, GRPC: grpc, Collection: newCollection(), Model: "bench", Dimensions: dimensions,
			})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			dropCollections(b, s)
			r := rand.New(rand.NewPCG(1, 2))
			all := make([]sinks.Object, b.N)
			for i := range all {
				var text strings.Builder
				for text.Len() < 800 {
					fmt.Fprintf(&text, "word%d ", int(r.ExpFloat64()*500))
				}
				vector := make([]float32, dimensions)
				for j := range vector {
					vector[j] = float32(r.NormFloat64())
				}
				document := fmt.Sprintf("document-%d", i/10)
				all[i] = sinks.Object{
					ID: rag.ChunkID("", document, rag.Revision{Version: 1}, i%10).String(), Vector: vector,
					Chunk: rag.Chunk{
						Subject: rag.Subject{DocumentID: document, Revision: rag.Revision{Version: 1}},
						Index:   i % 10, Count: 10, Text: text.String(), Title: document, Metadata: rag.Metadata{"lang=en"},
					},
				}
			}
			b.ResetTimer()
			for i := 0; i < b.N; i += batch {
				for _, result := range s.Upsert(context.Background(), all[i:min(i+batch, b.N)], nil) {
					if result.Err != nil {
						b.Fatal(result.Err)
					}
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "chunks/s")
		})
	}
}
