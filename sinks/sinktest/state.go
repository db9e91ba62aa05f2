package sinktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

func testMissing(t *testing.T, h Harness) {
	m := newMaker(h)
	objects := m.objects("d", v(1), 6)
	wantMissing := func(what string, want ...int) {
		t.Helper()
		got, err := h.Store.Missing(context.Background(), objects)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: Missing = %v, %v, want %v", what, got, err, want)
		}
	}
	wantMissing("nothing stored", 0, 1, 2, 3, 4, 5)
	upsert(t, h.Store, objects[:4], nil)
	wantMissing("four stored", 4, 5)
	upsert(t, h.Store, objects, nil)
	wantMissing("all stored")
	objects[2].Vector = m.vector()
	wantMissing("another vector", 2)
	objects[3].ID = "no id"
	wantMissing("an object that cannot be stored", 2, 3)
	remove(t, h.Store, "d", rag.Removal{Revision: v(2)})
	wantMissing("all removed", 0, 1, 2, 3, 4, 5)
	objects = m.objects("same", v(1), 40) // as boilerplate is: many chunks with one vector
	for i := range objects {
		objects[i].Vector = objects[0].Vector
	}
	upsert(t, h.Store, objects[1:], nil)
	wantMissing("one of many with the same vector", 0)
	if got, err := h.Store.Missing(context.Background(), nil); err != nil || len(got) != 0 {
		t.Errorf("Missing of nothing = %v, %v", got, err)
	}
}

func testScan(t *testing.T, h Harness) {
	m := newMaker(h)
	big := m.objects("big", v(2), 1203)
	old := m.objects("big", v(1), 2)
	others := slices.Concat(m.objects("a", v(1), 1), m.objects("z", v(1), 2))
	upsert(t, h.Store, big, nil)
	upsert(t, h.Store, slices.Concat(others, old), nil)
	wantHolds(t, h.Store, slices.Concat(big, others, old)...)
	got := scan(t, h.Store, "big")
	slices.SortFunc(got, byPlace)
	want := slices.Concat(old, big)
	if len(got) != len(want) {
		t.Fatalf("scan of a document gives %d objects, want %d", len(got), len(want))
	}
	for i := range want {
		wantSame(t, got[i], want[i])
	}
	if got := scan(t, h.Store, "nobody"); len(got) != 0 {
		t.Errorf("scan of an unknown document gives %d objects", len(got))
	}

	stop := errors.New("stop")
	calls := 0
	err := h.Store.Scan(context.Background(), "", func(sinks.Object) error {
		calls++
		return stop
	})
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("a scan that is told to stop gives %v after %d calls", err, calls)
	}
	// The callback may use the store.
	err = h.Store.Scan(context.Background(), "big", func(o sinks.Object) error {
		if o.Chunk.Index == 1 {
			if r := h.Store.Remove(context.Background(), "a", rag.Removal{Revision: v(2)}); r.Err != nil {
				return r.Err
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("a scan whose callback removes: %v", err)
	}
	wantHolds(t, h.Store, slices.Concat(big, others[1:], old)...)
}

func testCanary(t *testing.T, h Harness) {
	canary := func() {
		t.Helper()
		if err := h.Store.Canary(context.Background()); err != nil {
			t.Errorf("canary: %v", err)
		}
	}
	canary()
	wantHolds(t, h.Store)
	objects := newMaker(h).objects("d", v(1), 3)
	upsert(t, h.Store, objects, nil)
	var group sync.WaitGroup
	for range 4 {
		group.Go(canary)
	}
	group.Wait()
	wantHolds(t, h.Store, objects...)
	wantIDs(t, "the canary's text", search(t, h.Store, sinks.Query{Mode: sinks.ModeText, Text: "canary", K: 5}))
}

func testReopen(t *testing.T, h Harness) {
	m := newMaker(h)
	objects := m.objects("d", v(1), 20)
	objects[7] = withText(objects[7], "a wombat")
	upsert(t, h.Store, objects, nil)
	h.Store = h.Reopen(t)
	wantHolds(t, h.Store, objects...)
	wantIDs(t, "text", search(t, h.Store, sinks.Query{Mode: sinks.ModeText, Text: "wombat", K: 5}), objects[7])
	more := m.objects("e", v(1), 20)
	upsert(t, h.Store, more, nil)
	remove(t, h.Store, "d", rag.Removal{Exact: true, Revision: v(1)})
	h.Store = h.Reopen(t)
	wantHolds(t, h.Store, more...)
}

// testConcurrent writes, removes, searches and counts at once, each document by one writer, as the pipeline does.
func testConcurrent(t *testing.T, h Harness) {
	const writers, versions, chunks = 4, 5, 6
	batches := make([][][]sinks.Object, writers)
	m := newMaker(h)
	for w := range batches {
		for version := range versions {
			batches[w] = append(batches[w], m.objects(fmt.Sprintf("d%d", w), v(int64(version+1)), chunks))
		}
	}
	queries := make([][]float32, 8)
	for i := range queries {
		queries[i] = m.vector()
	}
	done := make(chan struct{})
	var writing, reading sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for version, batch := range batches[w] {
				for i, r := range h.Store.Upsert(context.Background(), batch, nil) {
					if r.Err != nil {
						t.Errorf("upsert %s: %s: %v", batch[i].ID, r.Outcome, r.Err)
					}
				}
				r := h.Store.Remove(context.Background(), batch[0].Chunk.DocumentID, rag.Removal{Revision: v(int64(version + 1))})
				if r.Err != nil {
					t.Errorf("remove: %s: %v", r.Outcome, r.Err)
				}
			}
		})
	}
	for i := range 3 {
		reading.Go(func() {
			for n := i; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				mode := []sinks.Mode{sinks.ModeVector, sinks.ModeText, sinks.ModeHybrid}[n%3]
				if _, err := h.Store.Search(context.Background(), sinks.Query{Mode: mode, Vector: queries[n%8], Text: "chunk", K: 5}); err != nil {
					t.Errorf("search: %v", err)
				}
				if _, err := h.Store.Count(context.Background()); err != nil {
					t.Errorf("count: %v", err)
				}
				if err := h.Store.Canary(context.Background()); err != nil {
					t.Errorf("canary: %v", err)
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	var want []sinks.Object
	for _, b := range batches {
		want = append(want, b[versions-1]...)
	}
	wantHolds(t, h.Store, want...)
}

// testModel does what comes into the mind of a random generator and compares with a map.
func testModel(t *testing.T, h Harness) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	m := newMaker(h)
	model := make(map[string]sinks.Object)
	for range 60 {
		document := fmt.Sprintf("d%d", r.IntN(3))
		rev := rag.Revision{Version: rag.Version(1 + r.IntN(3)), Generation: r.IntN(2)}
		switch r.IntN(4) {
		case 0, 1:
			batch := m.objects(document, rev, 1+r.IntN(6))
			repair := make(map[int]bool)
			for i := range batch {
				repair[i] = r.IntN(2) == 0
			}
			upsert(t, h.Store, batch, repair)
			for _, o := range batch {
				model[o.ID] = o
			}
		case 2:
			removal := rag.Removal{Exact: r.IntN(2) == 0, Revision: rev}
			remove(t, h.Store, document, removal)
			maps.DeleteFunc(model, func(_ string, o sinks.Object) bool {
				return o.Chunk.DocumentID == document && removal.Removes(o.Chunk.Revision)
			})
		case 3:
			if n, err := h.Store.Count(context.Background()); err != nil || n != int64(len(model)) {
				t.Fatalf("Count = %d, %v, want %d", n, err, len(model))
			}
		}
	}
	wantHolds(t, h.Store, slices.Collect(maps.Values(model))...)
}
