package processors_test

import (
	"slices"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
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

// A process that dies in the middle of a batch can leave objects in the store without their vectors in the index, which calls
// the same objects unchanged when they are written again: what a process before may have begun is repaired.
func TestWhatADeadProcessHadBegunIsRepaired(t *testing.T) {
	w, s := newTearing(), subject("doc", "m1", 4)
	w.write(t, nil, vector(s, 0, 4), vector(s, 1, 4))
	w.store.LoseVectors(rag.ChunkID("tenant", "doc", s.Revision, 1).String())
	b := redelivered(vector(s, 0, 4), vector(s, 1, 4), vector(s, 2, 4))
	res := w.HandleBatch(t.Context(), b)
	want(t, res.Outputs, "receipt doc/m1@4.0 [{0 3}]")
	if n := w.store.Stats().Repaired; n != 1 { // one was whole, and readers may see it; one was never begun
		t.Errorf("%d objects were repaired", n)
	}
	missing, err := w.store.Missing(t.Context(), w.store.Objects())
	check(t, err)
	if len(missing) > 0 || len(w.store.Objects()) != 3 {
		t.Errorf("of %d confirmed chunks the search does not find %v", len(w.store.Objects()), missing)
	}
}

// What nobody can have begun is written without a repair, which costs a request for each object.
func TestNothingIsRepairedWithoutNeed(t *testing.T) {
	w, s := newTearing(), subject("doc", "m1", 4)
	w.write(t, nil, vector(s, 0, 2), vector(s, 1, 2))
	if n := w.store.Stats().Repaired; n != 0 {
		t.Errorf("%d objects were repaired", n)
	}
	// A store whose writes are whole or not at all is not asked.
	atomic := newIndexer()
	res := atomic.HandleBatch(t.Context(), redelivered(vector(s, 0, 2), vector(s, 1, 2)))
	if n := atomic.store.Stats().Repaired; n != 0 || len(res.Outputs) != 1 {
		t.Errorf("%d objects were repaired: %+v", n, res)
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

// While the store does not say what it has, the batch waits, and tells so: given up, the message would come again as one that
// nobody has begun.
func TestAStoreThatDoesNotSayWhatIsTornIsAskedAgain(t *testing.T) {
	w, s := newTearing(), subject("doc", "m1", 4)
	w.write(t, nil, vector(s, 0, 1))
	w.store.LoseVectors(rag.ChunkID("tenant", "doc", s.Revision, 0).String())
	w.Sink.(*forgetful).deaf = 5
	b := redelivered(vector(s, 0, 1))
	held := 0
	b.Held = func(string, error) { held++ }
	res := w.HandleBatch(t.Context(), b)
	want(t, res.Outputs, "receipt doc/m1@4.0 [{0 1}]")
	if w.store.Stats().Repaired != 1 || held != 3 || len(w.waits) != 5 {
		t.Errorf("%d repaired, held %d times, waits %v", w.store.Stats().Repaired, held, w.waits)
	}
}

// Of two records of a chunk the last is written; it is repaired if either may have been begun.
func TestATornChunkThatCameTwiceIsRepaired(t *testing.T) {
	w, s := newTearing(), subject("doc", "m1", 4)
	w.write(t, nil, vector(s, 0, 1))
	w.store.LoseVectors(rag.ChunkID("tenant", "doc", s.Revision, 0).String())
	b := redelivered(vector(s, 0, 1), vector(s, 0, 1))
	b.Messages[1].Redelivered = false
	want(t, w.HandleBatch(t.Context(), b).Outputs, "receipt doc/m1@4.0 [{0 1}]")
	if missing, err := w.store.Missing(t.Context(), w.store.Objects()); err != nil || len(missing) > 0 {
		t.Errorf("not found: %v, %v", missing, err)
	}
}

// A process that was stopped in the middle of a repair has lost its partition when it goes on: it touches nothing more, since
// the next owner has written the same objects, and readers see them.
func TestAStoppedProcessRepairsNothingMore(t *testing.T) {
	w, s := newTearing(), subject("doc", "m1", 4)
	b := redelivered(vector(s, 0, 1))
	asked := 0
	b.Valid = func() bool { asked++; return asked == 1 } // it is stopped behind the first look
	before := w.store.Stats().Objects
	res := w.HandleBatch(t.Context(), b)
	if len(res.Outputs) > 0 || res.Errors[0] == nil {
		t.Errorf("%+v", res)
	}
	if n := w.store.Stats().Objects - before; n != 0 {
		t.Errorf("%d objects were written", n)
	}
}

// newTearing is an indexer on a store that can hold objects without their vectors.
func newTearing() *indexed {
	w := newIndexer()
	w.Sink = &forgetful{Memory: w.store}
	return w
}

// redelivered is a batch that a process before may have begun.
func redelivered(vs ...rag.Vector) stage.Batch[rag.Vector, ledger.DocumentRow] {
	b := batchOf(nil, vs...)
	for i := range b.Messages {
		b.Messages[i].Redelivered = true
	}
	return b
}
