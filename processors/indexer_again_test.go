package processors_test

import (
	"slices"
	"testing"

	"github.com/waymarkhq/waymark/rag"
)

// A batch that was written and not committed is written again, by whoever has the partition then: each chunk is in the store
// once all the same.
func TestChunksWrittenAgainAreTheSameObjects(t *testing.T) {
	w, s := newIndexer(), subject("doc", "m1", 4)
	for range 3 {
		res := w.write(t, nil, vector(s, 0, 2), vector(s, 1, 2))
		want(t, res.Outputs, "receipt doc/m1@4.0 [{0 2}]")
	}
	if objects := w.store.Objects(); len(objects) != 2 {
		t.Errorf("the store holds %d objects of a version with two chunks: %+v", len(objects), objects)
	}
}

// A process that was stopped with chunks of the generation that died writes them when a replay is served already. Their
// removal takes them alone.
func TestLateChunksOfADeadGenerationLeaveTheReplayAlone(t *testing.T) {
	w, dead := newIndexer(), subject("doc", "m1", 4)
	replay := generation(dead, 1)
	w.write(t, nil, vector(replay, 0, 2), vector(replay, 1, 2))
	w.write(t, nil, vector(dead, 0, 2)) // its row is as old as the process
	_, err := w.Removals().Fire(t.Context(), "doc", dueRow(rag.Removal{Exact: true, Revision: dead.Revision}), func() bool { return true })
	check(t, err)
	var left []int
	for _, o := range w.store.Objects() {
		if o.Chunk.Revision == replay.Revision {
			left = append(left, o.Chunk.Index)
		}
	}
	if !slices.Equal(left, []int{0, 1}) || len(w.store.Objects()) != 2 {
		t.Errorf("of the replay's chunks 0 and 1 the store holds %v, of %d objects", left, len(w.store.Objects()))
	}
}
