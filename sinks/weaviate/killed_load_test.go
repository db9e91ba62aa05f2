package weaviate

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// churn writes new versions of documents and removes the lower ones, as several pods do.
type churn struct {
	t          *testing.T
	s          *Store
	random     *rand.Rand // of who holds mu
	dimensions int

	mu       sync.Mutex
	versions map[string]rag.Version
	live     map[string]sinks.Object // what the store has to hold
}

const (
	churnWriters   = 4
	churnDocuments = 25 // of each writer
	churnChunks    = 3
)

// next is a new version of a document. Its chunks resemble those of the others, as the versions of a text do.
func (c *churn) next(document string) []sinks.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions[document]++
	subject := rag.Subject{DocumentID: document, Revision: rag.Revision{Version: c.versions[document]}}
	var objects []sinks.Object
	for i := range churnChunks {
		seed := rag.ChunkID("", document, rag.Revision{}, i)
		base := rand.New(rand.NewPCG(binary.BigEndian.Uint64(seed[:8]), binary.BigEndian.Uint64(seed[8:])))
		v := make([]float32, c.dimensions)
		for j := range v {
			v[j] = float32(base.NormFloat64() + 0.05*c.random.NormFloat64())
		}
		objects = append(objects, sinks.Object{ID: rag.ChunkID("", document, subject.Revision, i).String(), Vector: v,
			Chunk: rag.Chunk{Subject: subject, Index: i, Count: churnChunks, Text: fmt.Sprintf("chunk %d of %s", i, document)}})
		c.live[objects[i].ID] = objects[i]
	}
	return objects
}

// write writes versions until a request fails or stop is closed.
func (c *churn) write(writer int, stop <-chan struct{}) {
	for failed := false; !failed; {
		select {
		case <-stop:
			return
		default:
		}
		c.mu.Lock()
		document := fmt.Sprintf("document-%d-%d", writer, c.random.IntN(churnDocuments))
		c.mu.Unlock()
		objects := c.next(document)
		for _, r := range c.s.Upsert(context.Background(), objects, nil) {
			failed = failed || r.Err != nil
		}
		c.remove(document, objects[0].Chunk.Revision)
	}
}

// remove removes what is below a revision. Where that fails the chunks count as removed: it is done again before the check.
func (c *churn) remove(document string, r rag.Revision) sinks.Result {
	result := c.s.Remove(context.Background(), document, rag.Removal{Revision: r})
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, o := range c.live {
		if o.Chunk.DocumentID == document && o.Chunk.Revision.Less(r) {
			delete(c.live, id)
		}
	}
	return result
}

// repair reads everything back until all of it is found, and removes what is below it.
func (c *churn) repair() {
	c.t.Helper()
	for document, v := range c.versions {
		if r := c.remove(document, rag.Revision{Version: v}); r.Err != nil {
			c.t.Fatalf("remove: %v", r.Err)
		}
	}
	var all []sinks.Object
	for _, o := range c.live {
		all = append(all, o)
	}
	var rounds []string
	for range 5 {
		missing, err := c.s.Missing(context.Background(), all)
		if err != nil {
			c.t.Fatal(err)
		}
		rounds = append(rounds, fmt.Sprint(len(missing)))
		if len(missing) == 0 {
			c.t.Logf("of %d objects were missing, one look after the other: %s", len(all), strings.Join(rounds, ", "))
			return
		}
		var lost []sinks.Object
		named := map[int]bool{}
		for n, i := range missing {
			lost, named[n] = append(lost, all[i]), true
		}
		for _, r := range c.s.Upsert(context.Background(), lost, named) {
			if r.Err != nil {
				rounds = append(rounds, r.Err.Error())
			}
		}
	}
	c.t.Errorf("the repairs do not come to an end: %s", strings.Join(rounds, ", "))
}

// A server that is killed while several write loses the ends of its indexes one by one: objects that no filter finds, or no
// word, or no vector. All are found and repaired, and none stays that was to be removed.
func TestServerKilledUnderLoad(t *testing.T) {
	server := ownServer(t, 18580)
	s := openStore(t, Options{URL: server.url, GRPC: server.grpc})
	c := &churn{t: t, s: s, dimensions: testDimensions, random: rand.New(rand.NewPCG(1, 2)), versions: map[string]rag.Version{}, live: map[string]sinks.Object{}}
	for kill := range 4 {
		stop := make(chan struct{})
		var writers sync.WaitGroup
		if kill < 3 { // the last time it is idle
			for w := range churnWriters {
				writers.Go(func() { c.write(w, stop) })
			}
			target := 40 * (kill + 1)
			if err := poll(t.Context(), func(context.Context) bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				n := 0
				for _, v := range c.versions {
					n += int(v)
				}
				return n >= target
			}); err != nil {
				t.Fatal(err)
			}
		}
		server.kill()
		close(stop)
		writers.Wait()
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
		if err := poll(t.Context(), func(ctx context.Context) bool { return s.Canary(ctx) == nil }); err != nil {
			t.Fatal(err)
		}
		c.repair()
		if n, err := s.Count(context.Background()); err != nil || n != int64(len(c.live)) {
			t.Errorf("after kill %d: Count = %d, %v, want %d", kill, n, err, len(c.live))
		}
	}
}
