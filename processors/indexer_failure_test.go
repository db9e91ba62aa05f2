package processors_test

import (
	"errors"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

func TestVectorsThatTheStoreRefuses(t *testing.T) {
	s, other := subject("doc", "m1", 0), subject("doc", "m2", 1)
	for name, tc := range map[string]struct {
		outcome sinks.Outcome
		verdict string
	}{
		"rejected":  {sinks.Rejected, "dead indexer:message:store_refused"},
		"transient": {sinks.Transient, "retrying indexer:transient:store_transient"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newIndexer()
			w.store.SetIntercept(func(objects []sinks.Object, _ map[int]bool) []sinks.Result {
				results := make([]sinks.Result, len(objects))
				for i, o := range objects {
					if o.Chunk.Revision == s.Revision && o.Chunk.Index == 1 {
						results[i] = sinks.Result{Outcome: tc.outcome, Err: errOdd}
					}
				}
				return results
			})
			run := w.kit(t).Run(vectorStep(attempt(s, 1), 0, 2), vectorStep(attempt(s, 1), 1, 2), vectorStep(other, 0, 1))
			want(t, run.Outputs(), "receipt doc/m1@0.0+1 [{0 1}]", "receipt doc/m2@1.0 [{0 1}]", "verdict doc/m1@0.0+1 "+tc.verdict)
		})
	}
}

func TestForeignVectorsAreIgnored(t *testing.T) {
	run := newIndexer().kit(t).Run(
		stagetest.Raw(stage.Record{Topic: "vectors", Key: []byte("doc"), Value: []byte("no vector")}),
		stagetest.Tombstone("vectors", "doc"),
	)
	want(t, run.Outputs())
}

// A progress record cannot be answered with another one: what it says would be lost.
func TestProgressThatFailsHoldsThePartition(t *testing.T) {
	w := newIndexer()
	r := stage.Record{Topic: "progress", Partition: 1, Offset: 7, Key: []byte("doc")}
	for _, class := range []stage.Class{stage.ClassMessage, stage.ClassTransient} {
		outs, err := w.OnFailure(t.Context(), r, class, errOdd)
		if len(outs) != 0 || stage.ClassOf(err) != stage.ClassOutage || !errors.Is(err, errOdd) {
			t.Errorf("%s: sent %v, %v", class, told(t, outs), err)
		}
	}
}

func TestIndexerCanary(t *testing.T) {
	w := newIndexer()
	for dependency, asks := range map[string]bool{"store": true, "batch_panic": true, "kafka": false, "progress": false, "epoch": false} {
		before := w.store.Stats().Canaries
		err := w.Canary(t.Context(), dependency)
		if asked := w.store.Stats().Canaries > before; asked != asks || (err == nil) != asks {
			t.Errorf("the canary of %s says %v, the store was asked: %v", dependency, err, asked)
		}
	}
	w.store.SetAway(true)
	if w.Canary(t.Context(), "store") == nil {
		t.Error("the canary passes although the store is away")
	}
}

// The verdict speaks of the run that failed: its generation and attempt decide whether another one follows.
func TestVerdictOfAVectorKeepsItsSubject(t *testing.T) {
	w := newIndexer()
	s := attempt(generation(subject("doc", "m1", 3), 2), 1)
	out := topics.Vectors.Record("doc", vector(s, 0, 1))
	outs, err := w.OnFailure(t.Context(), stage.Record{Topic: "vectors", Key: out.Key, Value: out.Value}, stage.ClassMessage, errOdd)
	check(t, err)
	if got := decode(t, topics.Progress, outs[0]); got.Subject != s || got.Status != rag.StatusDead {
		t.Errorf("the verdict is %+v", got)
	}
}
