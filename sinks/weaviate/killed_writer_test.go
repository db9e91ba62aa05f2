package weaviate

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weaviate/weaviate/entities/models"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// A process that dies takes its requests with it, and the server stops in the middle of a batch: objects stand without their
// vectors, and the same objects written again are called unchanged. The process after it looks for what it gets again and repairs
// what it does not find; all of it is found then, and so is what was found before.
func TestWriterKilledInABatch(t *testing.T) {
	server := needServer(t)
	if server.grpc == "" {
		t.Fatalf("%s is not set", grpcVariable)
	}
	collection := newCollection()
	open := func() *Store {
		return openStore(t, Options{URL: server.url, GRPC: server.grpc, Collection: collection})
	}
	dead := open()
	dropCollections(t, dead)
	c := &churn{t: t, s: dead, dimensions: testDimensions, random: rand.New(rand.NewPCG(5, 6)), versions: map[string]rag.Version{}, live: map[string]sinks.Object{}}
	const least, most, documents = 6, 60, 30
	unchanged := 0 // objects that were written again as they are, and that no search found
	whole := time.Second
	for round := 0; round < least || unchanged == 0 && round < most; round++ {
		var batch []sinks.Object
		for range documents {
			batch = append(batch, c.next("doc-"+string(rune('a'+c.random.IntN(26))))...)
		}
		after := whole // the second batch is not cut, to tell how long one takes
		switch {
		case round == 0:
			after = 10 * time.Millisecond
		case round > 1:
			after = time.Duration(c.random.Int64N(int64(whole)))
		}
		began := time.Now()
		killed(dead, batch, after)
		if round == 1 {
			whole = time.Since(began)
		}
		successor := open()
		if round%2 == 0 {
			allDone(t, successor.Upsert(t.Context(), batch, nil))
			unchanged += len(c.missing(successor, batch))
		}
		repair := map[int]bool{}
		torn, err := successor.Torn(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range torn {
			repair[i] = true
		}
		allDone(t, successor.Upsert(t.Context(), batch, repair))
		for document, version := range c.versions {
			if r := successor.Remove(t.Context(), document, rag.Removal{Revision: rag.Revision{Version: version}}); r.Outcome != sinks.Done {
				t.Fatalf("remove: %+v", r)
			}
		}
		var all []sinks.Object
		for id, o := range c.live {
			if o.Chunk.Revision.Version == c.versions[o.Chunk.DocumentID] {
				all = append(all, o)
			} else {
				delete(c.live, id)
			}
		}
		if lost := c.missing(successor, all); len(lost) > 0 {
			t.Fatalf("round %d: %d of %d objects are not found", round, len(lost), len(all))
		}
	}
	if t.Logf("%d objects were called unchanged without being found", unchanged); unchanged == 0 {
		t.Error("no batch was cut short where it hurts: nothing was shown")
	}
}

// killed sends objects from a process that dies after a time.
func killed(s *Store, objects []sinks.Object, after time.Duration) {
	ctx, die := context.WithTimeout(context.Background(), after)
	defer die()
	encoded := make([]*models.Object, len(objects))
	for i := range objects {
		encoded[i] = s.encode(&objects[i])
	}
	_, _ = s.grpc.send(ctx, encoded, s.options.ConsistencyLevel) // nobody is left to read the answer
}

func (c *churn) missing(s *Store, objects []sinks.Object) []int {
	c.t.Helper()
	missing, err := s.Missing(c.t.Context(), objects)
	if err != nil {
		c.t.Fatal(err)
	}
	return missing
}

func allDone(t *testing.T, results []sinks.Result) {
	t.Helper()
	for i, r := range results {
		if r.Outcome != sinks.Done {
			t.Fatalf("object %d: %+v", i, r)
		}
	}
}
