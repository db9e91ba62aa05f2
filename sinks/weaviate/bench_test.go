package weaviate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/weaviate/weaviate-go-client/v4/weaviate"
	grpcconfig "github.com/weaviate/weaviate-go-client/v4/weaviate/grpc"
	"github.com/weaviate/weaviate/entities/models"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

const (
	benchDimensions = 256
	benchBatch      = 100
)

// benchChunks makes n chunks of 800 bytes with words as frequent as in a text.
func benchChunks(n int) []sinks.Object {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]sinks.Object, n)
	for i := range all {
		var text strings.Builder
		for text.Len() < 800 {
			fmt.Fprintf(&text, "word%d ", int(r.ExpFloat64()*500))
		}
		vector := make([]float32, benchDimensions)
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
	return all
}

// write gives batches to writers and returns once all are written.
func write(b *testing.B, all []sinks.Object, writers int, do func([]sinks.Object) error) time.Duration {
	b.Helper()
	batches := make(chan []sinks.Object)
	errs := make(chan error, writers)
	var writing sync.WaitGroup
	began := time.Now()
	for range writers {
		writing.Go(func() {
			for batch := range batches {
				if err := do(batch); err != nil {
					errs <- err
					break
				}
			}
			for range batches { // the others go on
			}
		})
	}
	for i := 0; i < len(all); i += benchBatch {
		batches <- all[i:min(i+benchBatch, len(all))]
	}
	close(batches)
	writing.Wait()
	select {
	case err := <-errs:
		b.Fatal(err)
	default:
	}
	return time.Since(began)
}

// bareLoop is what a program without a sink would do: the client's own batches into a collection with the same fields, the
// text searchable, ids of its own, and a look at each object's error.
func bareLoop(b *testing.B, s *server, grpc bool) func([]sinks.Object) error {
	b.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		b.Fatal(err)
	}
	config := weaviate.Config{Host: u.Host, Scheme: u.Scheme}
	if grpc {
		config.GrpcConfig = &grpcconfig.Config{Host: s.grpc}
	}
	client, err := weaviate.NewClient(config)
	if err != nil {
		b.Fatal(err)
	}
	name := newCollection()
	text := func(n string) *models.Property { return &models.Property{Name: n, DataType: []string{"text"}} }
	number := func(n string) *models.Property { return &models.Property{Name: n, DataType: []string{"int"}} }
	class := &models.Class{Class: name, Vectorizer: "none", VectorIndexType: "hnsw", VectorIndexConfig: map[string]any{"distance": "cosine"},
		Properties: []*models.Property{text("documentId"), number("version"), number("number"), number("count"), text("title"), text("text"),
			{Name: "metadata", DataType: []string{"text[]"}}}}
	if err := client.Schema().ClassCreator().WithClass(class).Do(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Schema().ClassDeleter().WithClassName(name).Do(context.Background()) })
	return func(batch []sinks.Object) error {
		objects := make([]*models.Object, len(batch))
		for i := range batch {
			c := &batch[i].Chunk
			objects[i] = &models.Object{Class: name, ID: strfmt.UUID(batch[i].ID), Vector: batch[i].Vector, Properties: map[string]any{
				"documentId": c.DocumentID, "version": int64(c.Revision.Version), "number": c.Index, "count": c.Count,
				"title": c.Title, "text": c.Text, "metadata": []string(c.Metadata),
			}}
		}
		reply, err := client.Batch().ObjectsBatcher().WithObjects(objects...).Do(context.Background())
		if err != nil {
			return err
		}
		for _, r := range reply {
			if message, failed := objectError(r); failed {
				return errors.New(message)
			}
		}
		return nil
	}
}

// BenchmarkBesideBareLoop writes the same chunks with the same batches and writers through the sink and through a bare loop
// over the client. Compare them within one run; BENCH_CHUNKS is their number.
func BenchmarkBesideBareLoop(b *testing.B) {
	server := needServer(b)
	n := 4000
	if text := os.Getenv("BENCH_CHUNKS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	all := benchChunks(n)
	sink := func(b *testing.B, grpc string) func([]sinks.Object) error {
		s, err := Open(b.Context(), Options{URL: server.url, GRPC: grpc, Collection: newCollection(), Model: "bench", Dimensions: benchDimensions})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		dropCollections(b, s)
		return func(batch []sinks.Object) error {
			for _, r := range s.Upsert(context.Background(), batch, nil) {
				if r.Err != nil {
					return r.Err
				}
			}
			return nil
		}
	}
	for _, c := range []struct {
		protocol, grpc string
		writers        int
	}{{"gRPC", server.grpc, 1}, {"gRPC", server.grpc, 4}, {"REST", "", 1}, {"REST", "", 4}} {
		for _, who := range []string{"bare", "sink"} {
			b.Run(fmt.Sprintf("%s/%d-writers/%s", c.protocol, c.writers, who), func(b *testing.B) {
				for b.Loop() {
					do := bareLoop(b, server, c.grpc != "")
					if who == "sink" {
						do = sink(b, c.grpc)
					}
					b.ReportMetric(float64(n)/write(b, all, c.writers, do).Seconds(), "chunks/s")
				}
				b.ReportMetric(0, "ns/op") // it says nothing here
			})
		}
	}
}
