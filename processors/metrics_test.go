package processors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/sinktest"
	"github.com/waymarkhq/waymark/stage"
)

// counted is the value of a counter, or the number of observations of a histogram, with labels as in "stage=chunker".
func counted(t testing.TB, r *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := r.Gather()
	check(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var has []string
			for _, l := range m.GetLabel() {
				has = append(has, l.GetName()+"="+l.GetValue())
			}
			if strings.Join(has, ",") != strings.Join(labels, ",") {
				continue
			}
			if h := m.GetHistogram(); h != nil {
				return float64(h.GetSampleCount())
			}
			return m.GetCounter().GetValue()
		}
	}
	return 0
}

func TestChunkerMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := newChunker()
	c.Metrics = processors.NewMetrics(registry, "memory")
	var row *ledger.ChunkerRow
	handle := func(r stage.Record) {
		t.Helper()
		res, err := c.Handle(t.Context(), stage.Message[[]byte]{Record: r, Committed: -1}, row)
		check(t, err)
		if res.Row != nil {
			row = res.Row
		}
	}
	first := document("doc", "m1", "one").Record()
	handle(first)
	handle(first) // its redelivery
	first.Offset = 3
	handle(first) // a resend
	handle(stray("x", header("content-type", "text/plain")))
	for labels, n := range map[string]float64{"kind=redelivery": 1, "kind=duplicate": 1, "kind=old": 0} {
		if got := counted(t, registry, "waymark_duplicates_total", labels, "stage=chunker"); got != n {
			t.Errorf("%s: %v, want %v", labels, got, n)
		}
	}
	if got := counted(t, registry, "waymark_forwarded_total"); got != 1 {
		t.Errorf("forwarded %v, want 1", got)
	}
	if _, err := c.OnFailure(t.Context(), stage.Record{Topic: "replays"}, stage.ClassMessage, errOdd, nil); err != nil {
		t.Error(err)
	}
	if got := counted(t, registry, "waymark_ignored_total", "stage=chunker"); got != 1 {
		t.Errorf("ignored %v, want 1", got)
	}
}

func TestEmbedderMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	service := &fakeService{answer: failing("bad", &embed.Error{Class: rag.ClassMessage, Reason: rag.ReasonEmbedderRefused})}
	e := newEmbedder(service)
	e.Metrics = processors.NewMetrics(registry, "memory")
	outs := chunksOf(t, "a", "one", "two", "one", "bad")
	batch(t, e, map[string]*wire.CachedVector{string(outs[1].Key): {Values: []float32{1, 1}}}, outs...)
	for source, n := range map[string]float64{"service": 2, "cache": 2} {
		if got := counted(t, registry, "waymark_embedding_texts_total", "source="+source); got != n {
			t.Errorf("%s: %v texts, want %v", source, got, n)
		}
	}
	if got := counted(t, registry, "waymark_embedding_seconds"); got != 1 {
		t.Errorf("%v calls, want 1", got)
	}
}

func TestIndexerMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	w := newIndexer()
	w.Metrics = processors.NewMetrics(registry, "memory")
	s := subject("doc", "m1", 4)
	w.store.Arm(sinktest.Fault{Kind: sinktest.LostAfter})
	w.write(t, nil, vector(s, 0, 2))
	w.decide(map[int]sinks.Result{1: {Outcome: sinks.Rejected, Err: errOdd}})
	w.write(t, nil, vector(s, 0, 2), vector(s, 1, 2))
	w.write(t, rowOf(&ledger.DocumentRow{Fence: version(9)}), vector(s, 0, 2))
	if _, err := w.Removals().Fire(t.Context(), "doc", dueRow(rag.Removal{Revision: revision(9, 0)}), func() bool { return true }); err != nil {
		t.Error(err)
	}
	for outcome, n := range map[string]float64{"ambiguous": 1, "done": 2, "rejected": 1, "removed": 1, "outage": 0} {
		if got := counted(t, registry, "waymark_store_objects_total", "outcome="+outcome, "sink=memory"); got != n {
			t.Errorf("%s: %v objects, want %v", outcome, got, n)
		}
	}
	if got := counted(t, registry, "waymark_store_batch_seconds", "sink=memory"); got != 3 {
		t.Errorf("%v batches, want 3", got)
	}
	if got := counted(t, registry, "waymark_duplicates_total", "kind=confirmed", "stage=indexer"); got != 1 {
		t.Errorf("%v skipped, want 1", got)
	}
}

// A version is counted when it ends, not whenever that is said again.
func TestFinalsAreCountedOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	w := newIndexer()
	w.Metrics = processors.NewMetrics(registry, "memory")
	var row *ledger.DocumentRow
	handle := func(p rag.Progress, offset int64) {
		t.Helper()
		res, err := w.Handle(t.Context(), stage.Message[rag.Progress]{Record: stage.Record{Offset: offset}, Key: "doc", Value: p, Committed: -1}, row)
		check(t, err)
		row = res.Row
	}
	dead := rag.Progress{Kind: rag.ProgressVerdict, Subject: subject("doc", "m1", 0), At: noon, Status: rag.StatusDead, Failure: &letterFailure}
	deleted := rag.Progress{Kind: rag.ProgressDelete, Subject: subject("doc", "m2", 1), At: noon}
	for range 3 {
		handle(dead, 0)
	}
	handle(deleted, 1)
	handle(dead, 0)
	for status, n := range map[string]float64{"dead": 1, "deleted": 1} {
		if got := counted(t, registry, "waymark_documents_total", "status="+status); got != n {
			t.Errorf("%s: %v, want %v", status, got, n)
		}
	}
	if got := counted(t, registry, "waymark_dead_letters_total", "reason=store_refused", "stage=indexer"); got != 1 {
		t.Errorf("%v dead letters, want 1", got)
	}
}

func TestDeadLettersMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	d := newDeadLetters()
	d.Metrics = processors.NewMetrics(registry, "memory")
	for _, m := range []stage.Message[rag.Command]{
		{Key: letterID, Value: rag.Command{Kind: rag.CommandReplay, LetterID: letterID}}, // nothing waits
		{Key: letterID, DecodeError: errOdd},
	} {
		if _, err := d.HandleCommand(t.Context(), m, nil); err != nil {
			t.Error(err)
		}
	}
	if got := counted(t, registry, "waymark_duplicates_total", "kind=refused", "stage=deadletters"); got != 1 {
		t.Errorf("%v refused, want 1", got)
	}
	if got := counted(t, registry, "waymark_ignored_total", "stage=deadletters"); got != 1 {
		t.Errorf("%v ignored, want 1", got)
	}
}

// A document id as a label would be a series per document.
func TestNoMetricNamesADocument(t *testing.T) {
	registry := prometheus.NewRegistry()
	w := newIndexer()
	w.Metrics = processors.NewMetrics(registry, "memory")
	w.write(t, nil, vector(subject("a very special document", "m1", 0), 0, 1))
	families, err := registry.Gather()
	check(t, err)
	if text := fmt.Sprint(families); strings.Contains(text, "very special") {
		t.Error(text)
	}
	if len(families) == 0 {
		t.Error("no metric was gathered")
	}
}
