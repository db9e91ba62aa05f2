package processors_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/sinktest"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

func TestReceipts(t *testing.T) {
	a, b := subject("a", "m1", 4), subject("b", "m1", 0)
	w := newIndexer()
	res := w.write(t, nil, vector(a, 0, 9), vector(b, 0, 1), vector(a, 3, 9), vector(a, 1, 9), vector(generation(a, 1), 0, 9), vector(a, 8, 9), vector(a, 1, 9))
	want(t, res.Outputs, "receipt a/m1@4.0 [{0 2} {3 4} {8 9}]", "receipt b/m1@0.0 [{0 1}]", "receipt a/m1@4.1 [{0 1}]")
	for i, key := range []string{"a", "b", "a"} {
		if string(res.Outputs[i].Key) != key {
			t.Errorf("receipt %d has the key %q", i, res.Outputs[i].Key)
		}
	}
	if len(res.Errors) != 0 || len(res.Rows) != 0 {
		t.Errorf("errors %v, rows %v", res.Errors, res.Rows)
	}
}

func TestObjects(t *testing.T) {
	w := newIndexer()
	v := vector(subject("a", "m1", 4), 2, 3)
	v.Title, v.Metadata = "T", rag.Metadata{"k=v"}
	w.write(t, nil, v)
	objects := w.store.Objects()
	if len(objects) != 1 {
		t.Fatalf("the store holds %d objects", len(objects))
	}
	o := objects[0]
	if o.ID != rag.ChunkID("tenant", "a", v.Revision, 2).String() || o.Chunk.Title != "T" || o.Chunk.Metadata[0] != "k=v" || o.Vector[1] != 2 {
		t.Errorf("the object is %+v", o)
	}
}

func TestBatchesWithCrashes(t *testing.T) {
	a, b := subject("doc", "m1", 0), subject("doc", "m2", 1)
	w := newIndexer()
	run := w.kit(t).Run(
		manifest(a, 3),
		vectorStep(a, 0, 3), vectorStep(a, 1, 3),
		stagetest.Settled(),
		receipt(a, 0, 2),
		vectorStep(a, 2, 3),
		stagetest.Settled(),
		receipt(a, 2, 3),
		stagetest.Settled(),
		manifest(b, 1),
		vectorStep(b, 0, 1),
		stagetest.Settled(),
		receipt(b, 0, 1),
	)
	want(t, run.Outputs(),
		"receipt doc/m1@0.0 [{0 2}]", "receipt doc/m1@0.0 [{2 3}]", "event indexer doc/m1@0.0 embedded", "event indexer doc/m1@0.0 indexed",
		"receipt doc/m2@1.0 [{0 1}]", "event indexer doc/m2@1.0 embedded", "event indexer doc/m2@1.0 indexed",
		"removed doc below 1.0")
	if objects := w.store.Objects(); len(objects) != 1 || objects[0].Chunk.Revision != b.Revision {
		t.Errorf("the store holds %v", objects)
	}
}

func TestAmbiguousWriteIsRepaired(t *testing.T) {
	for name, kinds := range map[string][]sinktest.FaultKind{
		"applied":     {sinktest.LostAfter},
		"not applied": {sinktest.LostBefore},
		"three times": {sinktest.LostAfter, sinktest.LostBefore, sinktest.LostAfter},
	} {
		t.Run(name, func(t *testing.T) {
			w := newIndexer()
			for _, k := range kinds {
				w.store.Arm(sinktest.Fault{Kind: k})
			}
			s := subject("a", "m1", 0)
			res := w.write(t, nil, vector(s, 0, 2), vector(s, 1, 2))
			want(t, res.Outputs, "receipt a/m1@0.0 [{0 2}]")
			if len(res.Errors) != 0 {
				t.Errorf("errors %v", res.Errors)
			}
			if missing, err := w.store.Missing(t.Context(), w.store.Objects()); err != nil || len(missing) > 0 || len(w.store.Objects()) != 2 {
				t.Errorf("of %d objects a search does not find %v, %v", len(w.store.Objects()), missing, err)
			}
			if stats := w.store.Stats(); stats.Upserts != len(kinds)+1 || stats.Repaired != 2*len(kinds) {
				t.Errorf("the store was asked %+v", stats)
			}
			for _, d := range w.waits {
				if d != w.Settle {
					t.Errorf("waited %v before the repair, want %v", d, w.Settle)
				}
			}
			if len(w.waits) != len(kinds) {
				t.Errorf("waited %d times for %d lost answers", len(w.waits), len(kinds))
			}
		})
	}
}

// A store that leaves the fate of writes open again and again does not do its work: whoever watches the process hears of it,
// and no sooner than a hiccup is ruled out.
func TestWritesThatStayAmbiguousAreAnOutage(t *testing.T) {
	for rounds, want := range map[int]int{2: 0, 5: 3} {
		w := newIndexer()
		for range rounds {
			w.store.Arm(sinktest.Fault{Kind: sinktest.LostAfter})
		}
		held := 0
		b := batchOf(nil, vector(subject("a", "m1", 0), 0, 1))
		b.Held = func(dependency string, why error) {
			if held++; dependency != processors.DependencyStore || why == nil {
				t.Errorf("held by %s: %v", dependency, why)
			}
		}
		if res := w.HandleBatch(t.Context(), b); len(res.Errors) != 0 || len(res.Outputs) != 1 {
			t.Errorf("sent %v, errors %v", told(t, res.Outputs), res.Errors)
		}
		if held != want {
			t.Errorf("after %d ambiguous rounds it was said %d times that the store is away, want %d", rounds, held, want)
		}
	}
}

// decide makes the store decide outcomes by the index of the chunk, for its first calls.
func (w *indexed) decide(calls ...map[int]sinks.Result) {
	n := 0
	w.store.SetIntercept(func(objects []sinks.Object, _ map[int]bool) []sinks.Result {
		if n == len(calls) {
			return nil
		}
		results := make([]sinks.Result, len(objects))
		for i, o := range objects {
			results[i] = calls[n][o.Chunk.Index]
		}
		n++
		return results
	})
}

func TestOutcomesOfSingleObjects(t *testing.T) {
	w := newIndexer()
	slow := &sinks.RetryAfterError{After: 9 * time.Second, Err: errOdd}
	w.decide(map[int]sinks.Result{
		1: {Outcome: sinks.Rejected, Err: errOdd},
		2: {Outcome: sinks.Transient, Err: errOdd},
		3: {Outcome: sinks.Outage, Err: slow},
		4: {Outcome: sinks.Ambiguous, Err: errOdd},
		5: {Outcome: sinks.Rejected},
	})
	s := subject("a", "m1", 0)
	res := w.write(t, nil, vector(s, 0, 6), vector(s, 1, 6), vector(s, 2, 6), vector(s, 3, 6), vector(s, 4, 6), vector(s, 5, 6))
	want(t, res.Outputs, "receipt a/m1@0.0 [{0 1} {4 5}]")
	for i, tc := range map[int]struct {
		class  stage.Class
		reason string
		after  time.Duration
	}{
		1: {stage.ClassMessage, rag.ReasonStoreRefused, 0},
		2: {stage.ClassTransient, "store_transient", 0},
		3: {stage.ClassOutage, "store", 9 * time.Second},
		5: {stage.ClassMessage, rag.ReasonStoreRefused, 0},
	} {
		var e *stage.Error
		if err := res.Errors[i]; !errors.As(err, &e) || e.Class != tc.class || e.Reason != tc.reason || e.After != tc.after || i < 5 && !errors.Is(err, errOdd) {
			t.Errorf("error %d is %#v", i, err)
		}
	}
	if len(res.Errors) != 4 {
		t.Errorf("errors %v", res.Errors)
	}
}

func TestOutageOfTheStore(t *testing.T) {
	w := newIndexer()
	w.store.SetAway(true)
	s := subject("a", "m1", 0)
	res := w.write(t, nil, vector(s, 0, 2), vector(s, 1, 2))
	if len(res.Outputs) != 0 || stage.ClassOf(res.Errors[0]) != stage.ClassOutage || stage.ClassOf(res.Errors[1]) != stage.ClassOutage {
		t.Errorf("sent %v, errors %v", told(t, res.Outputs), res.Errors)
	}
}

// rowOf gives every key the same row, another one from each call on.
func rowOf(rows ...*ledger.DocumentRow) func(string) *ledger.DocumentRow {
	n := -1
	return func(string) *ledger.DocumentRow {
		n = min(n+1, len(rows)-1)
		return rows[n]
	}
}

func TestFenceDropsBeforeTheWrite(t *testing.T) {
	s := subject("a", "m1", 4)
	ended := &ledger.DocumentRow{Fence: version(3), Finals: map[string]ledger.Final{"m1": {Revision: s.Revision, Status: rag.StatusDead}}}
	for name, tc := range map[string]struct {
		row   *ledger.DocumentRow
		lines []string
	}{
		"below the fence":       {&ledger.DocumentRow{Fence: version(5)}, nil},
		"at the fence":          {&ledger.DocumentRow{Fence: version(4)}, []string{"receipt a/m1@4.0 [{0 2}]"}},
		"the version has ended": {ended, nil},
		"no row":                {nil, []string{"receipt a/m1@4.0 [{0 2}]"}},
		"one is confirmed": {&ledger.DocumentRow{Work: map[rag.Revision]ledger.Work{s.Revision: {Confirmed: ledger.Bitmap{}.With(0, 1)}}},
			[]string{"receipt a/m1@4.0 [{1 2}]"}},
		"another generation's": {&ledger.DocumentRow{Work: map[rag.Revision]ledger.Work{generation(s, 1).Revision: {Confirmed: ledger.Bitmap{}.With(0, 1)}}},
			[]string{"receipt a/m1@4.0 [{0 2}]"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newIndexer()
			res := w.write(t, rowOf(tc.row), vector(s, 0, 2), vector(s, 1, 2))
			want(t, res.Outputs, tc.lines...)
			if len(res.Errors) != 0 {
				t.Errorf("errors %v", res.Errors)
			}
			if wrote := len(w.store.Objects()) > 0; wrote != (tc.lines != nil) {
				t.Errorf("the store holds %v", w.store.Objects())
			}
		})
	}
}

// A later version may end while an ambiguous write waits for its repair: then it is not written again.
func TestFenceDropsBeforeARetry(t *testing.T) {
	w := newIndexer()
	w.store.Arm(sinktest.Fault{Kind: sinktest.LostBefore})
	s := subject("a", "m1", 4)
	res := w.write(t, rowOf(nil, &ledger.DocumentRow{Fence: version(5)}), vector(s, 0, 1))
	want(t, res.Outputs)
	if len(res.Errors) != 0 || len(w.store.Objects()) != 0 || w.store.Stats().Upserts != 1 {
		t.Errorf("errors %v, objects %v", res.Errors, w.store.Objects())
	}
}

func TestLostPartitionWritesNothing(t *testing.T) {
	s := subject("a", "m1", 0)
	w := newIndexer()
	b := batchOf(nil, vector(s, 0, 2), vector(s, 1, 2))
	b.Valid = func() bool { return false }
	res := w.HandleBatch(t.Context(), b)
	if len(res.Outputs) != 0 || len(res.Errors) != 2 || w.store.Stats().Upserts != 0 {
		t.Errorf("sent %v, errors %v", told(t, res.Outputs), res.Errors)
	}

	// It is lost between the first write and the repair.
	w = newIndexer()
	w.decide(map[int]sinks.Result{1: {Outcome: sinks.Ambiguous, Err: errOdd}})
	valid := []bool{true, true, false} // before the write, by the store, and before the repair
	b.Valid = func() bool { v := valid[0]; valid = valid[1:]; return v }
	res = w.HandleBatch(t.Context(), b)
	want(t, res.Outputs, "receipt a/m1@0.0 [{0 1}]")
	if stage.ClassOf(res.Errors[1]) != stage.ClassOutage || len(res.Errors) != 1 || w.store.Stats().Upserts != 1 {
		t.Errorf("errors %v", res.Errors)
	}
}

func TestEndOfTheContextWhileAWriteSettles(t *testing.T) {
	w := newIndexer()
	w.store.Arm(sinktest.Fault{Kind: sinktest.LostAfter})
	ctx, cancel := context.WithCancel(t.Context())
	w.After = func(time.Duration) <-chan time.Time { cancel(); return nil }
	res := w.HandleBatch(ctx, batchOf(nil, vector(subject("a", "m1", 0), 0, 1)))
	if len(res.Outputs) != 0 || stage.ClassOf(res.Errors[0]) != stage.ClassOutage || !errors.Is(res.Errors[0], context.Canceled) {
		t.Errorf("sent %v, errors %v", told(t, res.Outputs), res.Errors)
	}
}
