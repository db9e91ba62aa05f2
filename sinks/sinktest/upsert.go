package sinktest

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

func testUpsertStoresFields(t *testing.T, h Harness) {
	m := newMaker(h)
	o := m.object("news-17", rag.Revision{Version: 1<<53 - 1, Generation: 3}, 41)
	o.Chunk.Count, o.Chunk.Start, o.Chunk.End, o.Chunk.Page = 42, 1<<33, 1<<33+10, 7
	o.Chunk.Parent = rag.Parent{Start: 1<<33 - 5, End: 1<<33 + 20, Text: "the text around it, \u00a0 as it stands"}
	o.Chunk.Title, o.Chunk.Source, o.Chunk.Heading = "A “title” — 题", "https://example.com/a?b=c&d", "Part 1 > Section 2"
	o.Chunk.Metadata = rag.NewMetadata(map[string]string{"lang": "en", "année": "2026", "eq": "a=b", "empty": "", "odd": "\x1f\t'\"\\"})
	o.Chunk.Text = "Line one\r\nline two\t— tab, \"quotes\", 'single', \\back, \u0000 nul, emoji 👩‍👩‍👧, soft\u00adhyphen, e\u0301"
	bare := m.object("bare", v(1), 0)
	bare.Chunk.Count = 1
	upsert(t, h.Store, []sinks.Object{o, bare}, nil)
	wantHolds(t, h.Store, o, bare)
	hits := search(t, h.Store, sinks.Query{Mode: sinks.ModeVector, Vector: o.Vector, K: 1})
	if len(hits) != 1 {
		t.Fatalf("%d hits, want 1", len(hits))
	}
	wantSame(t, sinks.Object{ID: hits[0].ID, Chunk: hits[0].Chunk}, o)
	if math.Abs(hits[0].Score-1) > 1e-4 {
		t.Errorf("the score of an object's own vector is %v, want its cosine, 1", hits[0].Score)
	}
}

func testUpsertOverwrites(t *testing.T, h Harness) {
	m := newMaker(h)
	objects := m.objects("d", v(1), 3)
	objects[1] = withText(objects[1], "the original wombat")
	objects[1].Chunk.Metadata = rag.Metadata{"state=old"}
	upsert(t, h.Store, objects, nil)
	old := objects[1]
	objects[1].Vector = m.vector()
	objects[1] = withText(objects[1], "a replacement ocelot")
	objects[1].Chunk.Title, objects[1].Chunk.Metadata = "New", rag.Metadata{"state=new"}
	upsert(t, h.Store, objects[1:2], nil)

	wantHolds(t, h.Store, objects...)
	wantIDs(t, "the old text", search(t, h.Store, sinks.Query{Mode: sinks.ModeText, Text: "wombat", K: 5}))
	wantIDs(t, "the new text", search(t, h.Store, sinks.Query{Mode: sinks.ModeText, Text: "ocelot", K: 5}), objects[1])
	q := sinks.Query{Mode: sinks.ModeVector, Vector: m.vector(), K: 5, Metadata: []string{"state=old"}}
	wantIDs(t, "the old metadata", search(t, h.Store, q))
	q.Metadata = []string{"state=new"}
	wantIDs(t, "the new metadata", search(t, h.Store, q), objects[1])
	if missing, err := h.Store.Missing(context.Background(), []sinks.Object{old}); err != nil || len(missing) != 1 {
		t.Errorf("Missing of the old vector = %v, %v, want [0]", missing, err)
	}
}

func testUpsertAgain(t *testing.T, h Harness) {
	objects := newMaker(h).objects("d", v(1), 4)
	for range 3 {
		upsert(t, h.Store, objects, nil)
	}
	upsert(t, h.Store, objects, map[int]bool{0: true, 3: true})
	wantHolds(t, h.Store, objects...)
}

func testUpsertSameIDTwice(t *testing.T, h Harness) {
	m := newMaker(h)
	a, b := m.object("d", v(1), 0), m.object("d", v(1), 1)
	other := withText(a, "the later one")
	other.Vector = m.vector()
	upsert(t, h.Store, []sinks.Object{a, b, other}, nil)
	wantHolds(t, h.Store, other, b)
}

func testUpsertJudgesEachObject(t *testing.T, h Harness) {
	m := newMaker(h)
	objects := m.objects("d", v(1), 20)
	bad := map[int]string{
		1: "vector", 2: "vector", 3: "vector", 4: "vector", 5: "vector", 6: "id", 7: "id", 8: "text", 9: "metadata",
		10: "document_id", 11: "vector", 12: "vector", 13: "index", 14: "version",
	}
	objects[1].Vector = objects[1].Vector[1:]
	objects[2].Vector = append(objects[2].Vector, 1)
	objects[3].Vector[h.Dimensions-1] = float32(math.NaN())
	objects[4].Vector[0] = float32(math.Inf(-1))
	objects[5].Vector = make([]float32, h.Dimensions)
	objects[6].ID = "not-a-uuid"
	objects[7].ID = "{" + objects[7].ID + "}"
	objects[8].Chunk.Text = "broken \xff"
	objects[9].Chunk.Metadata = rag.Metadata{"no separator"}
	objects[10].Chunk.DocumentID = ""
	objects[11].Vector = nil
	for i := range objects[12].Vector {
		objects[12].Vector[i] = 1e-30 // its squares vanish in float32
	}
	objects[13].Chunk.Index = -1
	objects[14].Chunk.Revision.Version = 1<<53 + 1

	results := h.Store.Upsert(context.Background(), objects, nil)
	if len(results) != len(objects) {
		t.Fatalf("%d results for %d objects", len(results), len(objects))
	}
	var good []sinks.Object
	for i, r := range results {
		field, isBad := bad[i]
		if !isBad {
			good = append(good, objects[i])
			if r.Outcome != sinks.Done || r.Err != nil {
				t.Errorf("good object %d: %s: %v", i, r.Outcome, r.Err)
			}
			continue
		}
		var objectError *sinks.ObjectError
		if r.Outcome != sinks.Rejected || !errors.As(r.Err, &objectError) || objectError.Field != field {
			t.Errorf("object %d with a bad %s: %s: %v", i, field, r.Outcome, r.Err)
		}
	}
	wantHolds(t, h.Store, good...)
}

func testUpsertNone(t *testing.T, h Harness) {
	if results := h.Store.Upsert(context.Background(), nil, nil); len(results) != 0 {
		t.Errorf("%d results for no objects", len(results))
	}
	bad := sinks.Object{ID: "x"}
	if results := h.Store.Upsert(context.Background(), []sinks.Object{bad, bad}, nil); len(results) != 2 || results[1].Outcome != sinks.Rejected {
		t.Errorf("results of bad objects alone: %v", results)
	}
	wantHolds(t, h.Store)
}

func testUpsertMany(t *testing.T, h Harness) {
	objects := newMaker(h).objects("d", v(1), 1203)
	upsert(t, h.Store, objects, nil)
	wantHolds(t, h.Store, objects...)
}

// With its context done, a sink may have written or not, but it answers for every object, and blames none.
func testUpsertCanceled(t *testing.T, h Harness) {
	objects := newMaker(h).objects("d", v(1), 3)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	results := h.Store.Upsert(ctx, objects, nil)
	if len(results) != len(objects) {
		t.Fatalf("%d results for %d objects", len(results), len(objects))
	}
	for i, r := range results {
		if r.Outcome == sinks.Rejected || (r.Err == nil) != (r.Outcome == sinks.Done) {
			t.Errorf("object %d: %s: %v", i, r.Outcome, r.Err)
		}
	}
	upsert(t, h.Store, objects, map[int]bool{0: true, 1: true, 2: true})
	wantHolds(t, h.Store, objects...)
}

func testUpsertHugeText(t *testing.T, h Harness) {
	size := h.MaxText
	if size == 0 {
		size = 1 << 20
	}
	m := newMaker(h)
	words := strings.Repeat("lorem ipsum дом 東京 ", size/24)
	huge := withText(m.object("d", v(1), 0), words[:strings.LastIndexByte(words, ' ')]+" needle")
	endless := withText(m.object("d", v(1), 1), strings.Repeat("x", size/4)+" pin")
	plain := m.object("d", v(1), 2)
	upsert(t, h.Store, []sinks.Object{huge, plain, endless}, nil)
	wantHolds(t, h.Store, huge, plain, endless)
	wantIDs(t, "a word at the end of a huge text", search(t, h.Store, sinks.Query{Mode: sinks.ModeText, Text: "needle", K: 3}), huge)
	wantIDs(t, "a word after an endless one", search(t, h.Store, sinks.Query{Mode: sinks.ModeText, Text: "pin", K: 3}), endless)
}
