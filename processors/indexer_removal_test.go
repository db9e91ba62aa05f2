package processors_test

import (
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/sinktest"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// stored puts a version's chunks into the store.
func (w *indexed) stored(t *testing.T, s rag.Subject, count int) {
	t.Helper()
	var objects []sinks.Object
	for i := range count {
		v := vector(s, i, count)
		objects = append(objects, sinks.Object{ID: rag.ChunkID("tenant", s.DocumentID, s.Revision, i).String(), Chunk: v.Chunk, Vector: v.Values})
	}
	for _, r := range w.store.Upsert(t.Context(), objects, nil) {
		check(t, r.Err)
	}
}

func (w *indexed) holds(t *testing.T, revisions ...rag.Revision) {
	t.Helper()
	got := map[rag.Revision]bool{}
	for _, o := range w.store.Objects() {
		got[o.Chunk.Revision] = true
	}
	if len(got) != len(revisions) {
		t.Errorf("the store holds %v, want %v", got, revisions)
	}
	for _, r := range revisions {
		if !got[r] {
			t.Errorf("the store has no chunks of %v", r)
		}
	}
}

func TestRemovals(t *testing.T) {
	first, second := subject("doc", "m1", 0), subject("doc", "m2", 1)
	for name, tc := range map[string]struct {
		history []stagetest.Step
		removed []string
		left    []rag.Revision
	}{
		"a later version is served": {[]stagetest.Step{manifest(first, 1), receipt(first, 0, 1), manifest(second, 1), receipt(second, 0, 1)},
			[]string{"removed doc below 1.0"}, []rag.Revision{second.Revision}},
		"the document is deleted": {[]stagetest.Step{manifest(first, 1), receipt(first, 0, 1), deletion(second)},
			[]string{"removed doc below 1.0"}, []rag.Revision{second.Revision}},
		"the later version dies": {[]stagetest.Step{manifest(first, 1), receipt(first, 0, 1), verdict(second, rag.StatusDead)},
			[]string{"removed doc exactly 1.0"}, []rag.Revision{first.Revision}},
		"the only version": {[]stagetest.Step{manifest(first, 1), receipt(first, 0, 1)}, nil, []rag.Revision{first.Revision, second.Revision}},
		"a zombie wrote a version that has died": {[]stagetest.Step{verdict(first, rag.StatusDead), manifest(second, 1), receipt(second, 0, 1), receipt(first, 0, 1)},
			[]string{"removed doc exactly 0.0", "removed doc below 1.0"}, []rag.Revision{second.Revision}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newIndexer()
			w.stored(t, first, 2)
			w.stored(t, second, 1)
			run := w.kit(t).Run(tc.history...)
			var removed []stage.Output
			for _, out := range run.Outputs() {
				if out.Topic == "progress" {
					removed = append(removed, out)
				}
			}
			want(t, removed, tc.removed...)
			w.holds(t, tc.left...)
			if row := stagetest.Row[ledger.DocumentRow](run, "doc"); len(row.Due) != 0 {
				t.Errorf("still due: %v", row.Due)
			}
		})
	}
}

func dueRow(removals ...rag.Removal) *ledger.DocumentRow {
	row := &ledger.DocumentRow{Due: map[rag.Removal]time.Time{}}
	for i, r := range removals {
		row.Due[r] = noon.Add(time.Duration(i) * time.Second)
	}
	return row
}

func TestClockOfARemoval(t *testing.T) {
	timer := newIndexer().Removals()
	exact, below := rag.Removal{Exact: true, Revision: revision(3, 0)}, rag.Removal{Revision: revision(4, 0)}
	if _, ok := timer.Next(&ledger.DocumentRow{}); ok {
		t.Error("a row without removals is due")
	}
	row := dueRow(exact, below)
	if at, ok := timer.Next(row); !ok || !at.Equal(noon) {
		t.Errorf("next at %v, %v", at, ok)
	}
	if got := timer.MinDelay(row); got != 0 {
		t.Errorf("chunks that nobody was shown wait %v", got)
	}
	// What was served stays until every reader has seen the row that serves the new version.
	if got := timer.MinDelay(dueRow(below, exact)); got != removalDelay {
		t.Errorf("chunks that were served wait %v, want %v", got, removalDelay)
	}
}

func TestRemovalThatFails(t *testing.T) {
	removal := rag.Removal{Revision: revision(1, 0)}
	for name, tc := range map[string]struct {
		fault sinktest.FaultKind
		class stage.Class
	}{
		"outage":              {sinktest.FailAll, stage.ClassOutage},
		"passing":             {sinktest.FailItem, stage.ClassTransient},
		"ambiguous, not done": {sinktest.LostBefore, stage.ClassTransient},
		"ambiguous, done":     {sinktest.LostAfter, stage.ClassTransient},
	} {
		t.Run(name, func(t *testing.T) {
			w := newIndexer()
			w.stored(t, subject("doc", "m1", 0), 2)
			w.store.Arm(sinktest.Fault{Kind: tc.fault})
			fire := func() ([]stage.Output, error) {
				return w.Removals().Fire(t.Context(), "doc", dueRow(removal), func() bool { return true })
			}
			if outs, err := fire(); len(outs) != 0 || err == nil || stage.ClassOf(err) != tc.class {
				t.Errorf("sent %v, %v", told(t, outs), err)
			}
			outs, err := fire() // removing again does no harm
			check(t, err)
			want(t, outs, "removed doc below 1.0")
			if p := decode(t, topics.Progress, outs[0]); !p.Due.Equal(noon) {
				t.Errorf("it names the time %v of the removal that was done, want %v", p.Due, noon)
			}
			w.holds(t)
		})
	}
}

func TestStoresWaitingTimeOfARemoval(t *testing.T) {
	w := newIndexer()
	w.Sink = slowStore{w.store}
	_, err := w.Removals().Fire(t.Context(), "doc", dueRow(rag.Removal{Revision: revision(1, 0)}), func() bool { return true })
	wantAfter(t, err, 9*time.Second)
}

func TestLostPartitionRemovesNothing(t *testing.T) {
	w := newIndexer()
	outs, err := w.Removals().Fire(t.Context(), "doc", dueRow(rag.Removal{Revision: revision(1, 0)}), func() bool { return false })
	check(t, err)
	if len(outs) != 0 || w.store.Stats().Removes != 0 {
		t.Errorf("sent %v, asked %+v", told(t, outs), w.store.Stats())
	}
}
