package sinktest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// all names every object of a batch for repair.
func all(objects []sinks.Object) map[int]bool {
	m := make(map[int]bool)
	for i := range objects {
		m[i] = true
	}
	return m
}

// upsertUnanswered writes objects with a fault and fails the test unless all of them are ambiguous.
func upsertUnanswered(t *testing.T, h Harness, kind FaultKind, objects []sinks.Object) (release func()) {
	t.Helper()
	release = h.Arm(t, Fault{Kind: kind})
	results := h.Store.Upsert(context.Background(), objects, nil)
	if len(results) != len(objects) {
		t.Fatalf("%s: %d results for %d objects", kind, len(results), len(objects))
	}
	for i, r := range results {
		if r.Outcome != sinks.Ambiguous || r.Err == nil {
			t.Fatalf("%s: object %d is %s, want ambiguous: %v", kind, i, r.Outcome, r.Err)
		}
	}
	return release
}

// testFaultNoAnswer loses the answer to an insert; the repair leaves each object once and findable, whatever became of the
// first attempt, and whether that happens before the repair or while it runs.
func testFaultNoAnswer(t *testing.T, h Harness) {
	m := newMaker(h)
	var want []sinks.Object
	for _, c := range []struct {
		document  string
		kind      FaultKind
		meanwhile bool
	}{
		{"before", LostBefore, false}, {"after", LostAfter, false}, {"later", LostLater, false}, {"meanwhile", LostLater, true},
	} {
		objects := m.objects(c.document, v(1), 5)
		release := upsertUnanswered(t, h, c.kind, objects)
		repair(t, h, objects, release, c.meanwhile)
		want = append(want, objects...)
		wantHolds(t, h.Store, want...)
	}
}

// repair writes objects again as the indexer does, with the first attempt released before or meanwhile.
func repair(t *testing.T, h Harness, objects []sinks.Object, release func(), meanwhile bool) {
	t.Helper()
	var releasing sync.WaitGroup
	if meanwhile {
		releasing.Go(release)
	} else {
		release()
	}
	upsert(t, h.Store, objects, all(objects))
	releasing.Wait()
}

// testFaultOverwrite loses the answer to an overwrite of objects that were there with other vectors.
func testFaultOverwrite(t *testing.T, h Harness) {
	m := newMaker(h)
	var want []sinks.Object
	for _, kind := range []FaultKind{LostBefore, LostAfter, LostLater} {
		objects := m.objects(kind.String(), v(1), 4)
		upsert(t, h.Store, objects, nil)
		for i := range objects {
			objects[i].Vector = m.vector()
			objects[i] = withText(objects[i], "overwritten "+objects[i].Chunk.Text)
		}
		release := upsertUnanswered(t, h, kind, objects)
		repair(t, h, objects, release, false)
		want = append(want, objects...)
		wantHolds(t, h.Store, want...)
	}
}

// testFaultRemove loses the answer to a removal; removing again is done.
func testFaultRemove(t *testing.T, h Harness) {
	m := newMaker(h)
	kept := m.objects("kept", v(1), 3)
	upsert(t, h.Store, kept, nil)
	for _, kind := range []FaultKind{LostBefore, LostAfter} {
		upsert(t, h.Store, m.objects(kind.String(), v(1), 4), nil)
		h.Arm(t, Fault{Kind: kind})
		r := h.Store.Remove(context.Background(), kind.String(), rag.Removal{Revision: v(2)})
		if r.Outcome != sinks.Ambiguous || r.Err == nil {
			t.Errorf("%s: removal is %s, want ambiguous: %v", kind, r.Outcome, r.Err)
		}
		remove(t, h.Store, kind.String(), rag.Removal{Revision: v(2)})
		wantHolds(t, h.Store, kept...)
	}
}

func testFaultItem(t *testing.T, h Harness) {
	objects := newMaker(h).objects("d", v(1), 6)
	h.Arm(t, Fault{Kind: FailItem, Item: 2})
	results := h.Store.Upsert(context.Background(), objects, nil)
	for i, r := range results {
		want := sinks.Done
		if i == 2 {
			want = sinks.Transient
		}
		if r.Outcome != want || (r.Err == nil) != (want == sinks.Done) {
			t.Errorf("object %d is %s, want %s: %v", i, r.Outcome, want, r.Err)
		}
	}
	missing, err := h.Store.Missing(context.Background(), objects)
	if err != nil || !slices.Equal(missing, []int{2}) {
		t.Errorf("Missing = %v, %v, want [2]", missing, err)
	}
	upsert(t, h.Store, objects[2:3], nil)
	wantHolds(t, h.Store, objects...)
}

func testFaultOutage(t *testing.T, h Harness) {
	objects := newMaker(h).objects("d", v(1), 4)
	h.Arm(t, Fault{Kind: FailAll})
	results := h.Store.Upsert(context.Background(), objects, nil)
	if len(results) != len(objects) {
		t.Fatalf("%d results for %d objects", len(results), len(objects))
	}
	for i, r := range results {
		if r.Outcome != sinks.Outage || r.Err == nil {
			t.Errorf("object %d is %s, want an outage: %v", i, r.Outcome, r.Err)
		}
	}
	upsert(t, h.Store, objects, nil)
	h.Arm(t, Fault{Kind: FailAll})
	if r := h.Store.Remove(context.Background(), "d", rag.Removal{Revision: v(2)}); r.Outcome != sinks.Outage || r.Err == nil {
		t.Errorf("removal is %s, want an outage: %v", r.Outcome, r.Err)
	}
	wantHolds(t, h.Store, objects...)
}
