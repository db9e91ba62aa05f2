package processors_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

func trackerKit(t testing.TB, m *processors.Metrics) *stagetest.Kit {
	t.Helper()
	tracker := &processors.Tracker{Metrics: m}
	return stagetest.New(t, stagetest.Batch(topics.Events, tracker.HandleBatch), stagetest.Table(topics.TrackerTable.Codec, ledger.MergeTrackerRow),
		stagetest.OnFailure(func(ctx context.Context, r stage.Record, class stage.Class, err error, _ *ledger.TrackerRow) (stage.Result[ledger.TrackerRow], error) {
			outs, err := tracker.OnFailure(ctx, r, class, err)
			return stage.Result[ledger.TrackerRow]{Outputs: outs}, err
		}))
}

// event is said some seconds after noon.
func event(s rag.Subject, stageName string, status rag.Status, seconds int) stagetest.Step {
	return stagetest.Message(topics.Events, rag.EventKey(s.DocumentID, s.MessageID),
		rag.Event{Subject: s, Stage: stageName, Status: status, At: noon.Add(time.Duration(seconds) * time.Second), Chunks: 2})
}

// timeline renders a row.
func timeline(row *ledger.TrackerRow) string {
	if row == nil {
		return "none"
	}
	text := fmt.Sprintf("%s %s of %d:", short(row.Revision), row.Status, row.Chunks)
	for _, e := range row.Events {
		text += fmt.Sprintf(" %s/%s@%v", e.Stage, e.Status, e.At.Sub(noon).Seconds())
	}
	return text
}

func TestTimeline(t *testing.T) {
	s := subject("doc", "m1", 4)
	events := map[string]stagetest.Step{
		"accepted": event(s, "chunker", rag.StatusAccepted, 0), "chunked": event(s, "chunker", rag.StatusChunked, 1),
		"embedded": event(s, "indexer", rag.StatusEmbedded, 2), "indexed": event(s, "indexer", rag.StatusIndexed, 3),
	}
	const whole = "4.0 indexed of 2: chunker/accepted@0 chunker/chunked@1 indexer/embedded@2 indexer/indexed@3"
	for name, tc := range map[string]struct {
		order []string
		want  string
	}{
		"in order":    {[]string{"accepted", "chunked", "embedded", "indexed"}, whole},
		"out of it":   {[]string{"indexed", "accepted", "embedded", "chunked"}, whole},
		"said twice":  {[]string{"accepted", "chunked", "accepted", "indexed", "chunked", "embedded", "indexed"}, whole},
		"on the way":  {[]string{"accepted", "chunked"}, "4.0 chunked of 2: chunker/accepted@0 chunker/chunked@1"},
		"no way back": {[]string{"indexed", "chunked"}, "4.0 indexed of 2: chunker/chunked@1 indexer/indexed@3"},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []stagetest.Step
			for _, e := range tc.order {
				steps = append(steps, events[e])
			}
			run := trackerKit(t, nil).Run(steps...)
			if got := timeline(stagetest.Row[ledger.TrackerRow](run, rag.EventKey("doc", "m1"))); got != tc.want {
				t.Errorf("the timeline is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReplayOpensAnotherGeneration(t *testing.T) {
	s := subject("doc", "m1", 4)
	run := trackerKit(t, nil).Run(event(s, "chunker", rag.StatusAccepted, 0), event(s, "indexer", rag.StatusDead, 1),
		event(generation(s, 1), "chunker", rag.StatusChunked, 50), event(s, "indexer", rag.StatusDead, 1))
	if got, want := timeline(stagetest.Row[ledger.TrackerRow](run, rag.EventKey("doc", "m1"))), "4.1 chunked of 2: chunker/accepted@0 indexer/dead@1 chunker/chunked@50"; got != want {
		t.Errorf("the timeline is %q, want %q", got, want)
	}
}

func TestForeignEventsAreIgnored(t *testing.T) {
	s := subject("doc", "m1", 4)
	run := trackerKit(t, nil).Run(
		stagetest.Raw(stage.Record{Topic: "events", Key: []byte("3:docm1"), Value: []byte("no event")}),
		stagetest.Tombstone("events", "3:docm1"),
		stagetest.Message(topics.Events, "3:docm2", rag.Event{Subject: s, Stage: "x", Status: rag.StatusDead, At: noon}), // under another submission's key
	)
	for _, key := range []string{"3:docm1", "3:docm2"} {
		if row := stagetest.Row[ledger.TrackerRow](run, key); row != nil {
			t.Errorf("the row of %s is %s", key, timeline(row))
		}
	}
}

func owned() bool { return true }

func eventMessage(e rag.Event) stage.Message[rag.Event] {
	return stage.Message[rag.Event]{Key: rag.EventKey(e.DocumentID, e.MessageID), Value: e}
}

// However events are cut into batches, the timelines and what was measured are the same.
func TestTimelinesDoNotDependOnBatches(t *testing.T) {
	statuses := []rag.Status{rag.StatusAccepted, rag.StatusChunked, rag.StatusEmbedded, rag.StatusRetrying, rag.StatusIndexed, rag.StatusDead}
	rapid.Check(t, func(rt *rapid.T) {
		var events []stage.Message[rag.Event]
		for i := range rapid.IntRange(1, 30).Draw(rt, "events") {
			s := generation(subject("doc", rapid.SampledFrom([]string{"m1", "m2", "m3"}).Draw(rt, "message id"), 4), rapid.IntRange(0, 1).Draw(rt, "generation"))
			events = append(events, eventMessage(rag.Event{Subject: s, Stage: "stage", Status: rapid.SampledFrom(statuses).Draw(rt, "status"), At: noon.Add(time.Duration(i) * time.Second)}))
		}
		track := func(most int) (map[string]*ledger.TrackerRow, uint64, float64) {
			registry, rows := prometheus.NewRegistry(), map[string]*ledger.TrackerRow{}
			tracker := &processors.Tracker{Metrics: processors.NewMetrics(registry, "memory")}
			for rest := events; len(rest) > 0; {
				n := rapid.IntRange(1, min(most, len(rest))).Draw(rt, "batch")
				res := tracker.HandleBatch(t.Context(), stage.Batch[rag.Event, ledger.TrackerRow]{Messages: rest[:n], Valid: owned,
					Row: func(key string) *ledger.TrackerRow { return rows[key] }})
				maps.Copy(rows, res.Rows)
				rest = rest[n:]
			}
			count, sum := observed(t, registry, "waymark_end_to_end_seconds")
			return rows, count, sum
		}
		one, oneCount, oneSum := track(1)
		many, manyCount, manySum := track(len(events))
		if !reflect.DeepEqual(one, many) || oneCount != manyCount || oneSum != manySum {
			rt.Fatalf("one by one %v (%d, %v), in batches %v (%d, %v)", one, oneCount, oneSum, many, manyCount, manySum)
		}
	})
}

// observed is count and sum of a histogram.
func observed(t testing.TB, r *prometheus.Registry, name string) (count uint64, sum float64) {
	t.Helper()
	families, err := r.Gather()
	check(t, err)
	for _, f := range families {
		if f.GetName() == name {
			h := f.GetMetric()[0].GetHistogram()
			return h.GetSampleCount(), h.GetSampleSum()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0, 0
}

func TestEndToEndSeconds(t *testing.T) {
	s := subject("doc", "m1", 4)
	again := generation(s, 1)
	said := func(s rag.Subject, status rag.Status, seconds int) rag.Event {
		return rag.Event{Subject: s, Stage: "stage", Status: status, At: noon.Add(time.Duration(seconds) * time.Second)}
	}
	accepted, indexed, dead := said(s, rag.StatusAccepted, 0), said(s, rag.StatusIndexed, 7), said(s, rag.StatusDead, 9)
	for name, tc := range map[string]struct {
		events []rag.Event
		count  uint64
		sum    float64
	}{
		"a final":                     {[]rag.Event{accepted, said(s, rag.StatusChunked, 3), indexed}, 1, 7},
		"a final that is said again":  {[]rag.Event{accepted, indexed, indexed, accepted}, 1, 7},
		"accepted comes last":         {[]rag.Event{indexed, accepted, accepted}, 1, 7},
		"accepted is not known":       {[]rag.Event{said(s, rag.StatusChunked, 3), indexed}, 0, 0},
		"on the way":                  {[]rag.Event{accepted, said(s, rag.StatusRetrying, 3)}, 0, 0},
		"after a retry":               {[]rag.Event{accepted, said(attempt(s, 1), rag.StatusRetrying, 3), said(attempt(s, 1), rag.StatusIndexed, 60)}, 1, 60},
		"a replay is an operator's":   {[]rag.Event{accepted, dead, said(again, rag.StatusChunked, 5000), said(again, rag.StatusIndexed, 5001)}, 1, 9},
		"a clock that is ahead of us": {[]rag.Event{said(s, rag.StatusAccepted, 100), indexed}, 1, 0},
		"two submissions":             {[]rag.Event{accepted, indexed, said(subject("doc", "m2", 5), rag.StatusAccepted, 0), said(subject("doc", "m2", 5), rag.StatusDead, 2)}, 2, 9},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			tracker := &processors.Tracker{Metrics: processors.NewMetrics(registry, "memory")}
			rows := map[string]*ledger.TrackerRow{}
			for _, e := range tc.events {
				res := tracker.HandleBatch(t.Context(), stage.Batch[rag.Event, ledger.TrackerRow]{Messages: []stage.Message[rag.Event]{eventMessage(e)}, Valid: owned,
					Row: func(key string) *ledger.TrackerRow { return rows[key] }})
				maps.Copy(rows, res.Rows)
			}
			if count, sum := observed(t, registry, "waymark_end_to_end_seconds"); count != tc.count || sum != tc.sum {
				t.Errorf("observed %d times, %v seconds in all; want %d, %v", count, sum, tc.count, tc.sum)
			}
		})
	}
}
