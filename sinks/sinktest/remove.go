package sinktest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// revisions writes chunks of several revisions of a document and returns them by revision.
func revisions(t *testing.T, h Harness, m *maker, document string) map[rag.Revision][]sinks.Object {
	t.Helper()
	all := make(map[rag.Revision][]sinks.Object)
	for _, rev := range []rag.Revision{
		{Version: 1}, {Version: 3}, {Version: 3, Generation: 1}, {Version: 3, Generation: 2}, {Version: 5},
		{Version: 1 << 52},
	} {
		all[rev] = m.objects(document, rev, 3)
		upsert(t, h.Store, all[rev], nil)
	}
	return all
}

// without joins the objects of the revisions that gone does not hold.
func without(all map[rag.Revision][]sinks.Object, gone func(rag.Revision) bool) []sinks.Object {
	var left []sinks.Object
	for rev, objects := range all {
		if !gone(rev) {
			left = append(left, objects...)
		}
	}
	return left
}

func testRemoveExact(t *testing.T, h Harness) {
	m := newMaker(h)
	all, other := revisions(t, h, m, "d"), revisions(t, h, m, "e")
	target := rag.Revision{Version: 3, Generation: 1}
	remove(t, h.Store, "d", rag.Removal{Exact: true, Revision: target})
	left := without(all, func(r rag.Revision) bool { return r == target })
	wantHolds(t, h.Store, append(left, without(other, func(rag.Revision) bool { return false })...)...)
	if missing, err := h.Store.Missing(context.Background(), all[target]); err != nil || len(missing) != 3 {
		t.Errorf("Missing of what was removed = %v, %v", missing, err)
	}
}

// Lower generations of the same version are below; the revision itself never is.
func testRemoveBelow(t *testing.T, h Harness) {
	m := newMaker(h)
	all, other := revisions(t, h, m, "d"), revisions(t, h, m, "e")
	otherLeft := without(other, func(rag.Revision) bool { return false })
	for _, limit := range []rag.Revision{{Version: 1}, {Version: 3, Generation: 1}, {Version: 4}, {Version: 1 << 52}} {
		remove(t, h.Store, "d", rag.Removal{Revision: limit})
		left := without(all, func(r rag.Revision) bool { return r.Less(limit) })
		wantHolds(t, h.Store, append(left, otherLeft...)...)
	}
}

func testRemoveNothing(t *testing.T, h Harness) {
	remove(t, h.Store, "nobody", rag.Removal{Revision: v(9)})
	objects := newMaker(h).objects("d", v(2), 2)
	upsert(t, h.Store, objects, nil)
	remove(t, h.Store, "nobody", rag.Removal{Revision: v(9)})
	remove(t, h.Store, "d", rag.Removal{Exact: true, Revision: v(1)})
	remove(t, h.Store, "d", rag.Removal{Exact: true, Revision: rag.Revision{Version: 2, Generation: 1}})
	remove(t, h.Store, "d", rag.Removal{})
	wantHolds(t, h.Store, objects...)
}

func testRemoveMany(t *testing.T, h Harness) {
	m := newMaker(h)
	upsert(t, h.Store, m.objects("d", v(1), 1203), nil)
	kept := m.objects("d", v(2), 5)
	upsert(t, h.Store, kept, nil)
	remove(t, h.Store, "d", rag.Removal{Revision: v(2)})
	wantHolds(t, h.Store, kept...)
}

// Ids that a careless filter would take for one another.
func testDocumentsAreApart(t *testing.T, h Harness) {
	ids := []string{
		"a", "A", "a ", " a", "a%", "a_", "a*", "a?", "ab", "a b", "b a", "a/b", "a.b", "a-b", "a'b", `a"b`, `a\b`, "a\u00e9", "ae\u0301",
		"á", "а", "*", "?", "%", "\u200ba", "the", "null", "0", "00", "文書", strings.Repeat("x", 512), strings.Repeat("x", 511) + "y",
	}
	m := newMaker(h)
	objects := make([]sinks.Object, len(ids))
	for i, id := range ids {
		objects[i] = m.object(id, v(1), 0)
	}
	upsert(t, h.Store, objects, nil)
	wantHolds(t, h.Store, objects...)
	for i, id := range ids {
		hits := search(t, h.Store, sinks.Query{Mode: sinks.ModeVector, Vector: m.vector(), K: 50, DocumentID: id})
		wantIDs(t, "search in "+id, hits, objects[i])
		if got := scan(t, h.Store, id); len(got) != 1 || got[0].ID != objects[i].ID {
			t.Errorf("scan of %q gives %d objects", id, len(got))
		}
	}
	left := slices.Clone(objects)
	for i, id := range ids {
		if i%2 == 0 {
			remove(t, h.Store, id, rag.Removal{Revision: v(2)})
			left = slices.DeleteFunc(left, func(o sinks.Object) bool { return o.Chunk.DocumentID == id })
		}
	}
	wantHolds(t, h.Store, left...)
}
