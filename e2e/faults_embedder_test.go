package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
)

// spoilt marks the texts of which the service always gives a bad vector: their documents die.
const spoilt = "spoilt-by-"

// readSpoilt is the JSON of the API, of which spoilt texts die.
func readSpoilt(r *kgo.Record) checker.Meaning {
	m := checker.ReadJSON(r)
	m.Dies = m.Dies || strings.Contains(m.Text, spoilt)
	return m
}

// Processes that start while the embedding service is away wait for it.
func TestStartsWhileTheEmbedderIsAway(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 17})
	if err := w.embedder.Inject(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 503}); err != nil {
		t.Fatal(err)
	}
	w.start("api", "api")
	worker := w.start("worker", workers...)
	eventually(t, "both processes to have asked twice", func() error {
		if n := w.embedder.Stats().Faults[embedtest.FaultStatus]; n < 4 {
			return fmt.Errorf("%d calls", n)
		}
		return nil
	})
	w.embedder.Clear()
	w.api.waitReady()
	w.put("first", w.text(3))
	w.over()
	w.settle()
	w.check()
	if !worker.running() {
		t.Error("the worker has ended")
	}
}

// Row 16: vectors of a wrong length, empty, zero, with NaN; replies in another order, too short, with one vector twice.
// A reply that cannot be right is asked for again; a text that never gets a vector dies; no wrong vector is stored.
func TestFaultSpoiltVectors(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 16, read: readSpoilt})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	worker.waitReady() // at its start it asks the service itself
	w.watch()
	var kinds []embedtest.FaultKind
	inject := func(f embedtest.Fault) {
		t.Helper()
		kinds = append(kinds, f.Kind)
		if err := w.embedder.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	const ours = "This is text number" // and not the query of a reader
	for _, kind := range []embedtest.FaultKind{embedtest.FaultDimension, embedtest.FaultEmpty, embedtest.FaultZero, embedtest.FaultNaN, embedtest.FaultNull} {
		inject(embedtest.Fault{Kind: kind, Match: spoilt + string(kind)})
	}
	inject(embedtest.Fault{Kind: embedtest.FaultReordered, Match: ours, MinTexts: 2, Times: 3})
	inject(embedtest.Fault{Kind: embedtest.FaultShort, Match: ours, Times: 2})
	inject(embedtest.Fault{Kind: embedtest.FaultDoubled, Match: ours, Times: 2})
	inject(embedtest.Fault{Kind: embedtest.FaultGarbage, Match: ours, Times: 2})
	inject(embedtest.Fault{Kind: embedtest.FaultCut, Match: ours, Times: 2})
	inject(embedtest.Fault{Kind: embedtest.FaultReset, Match: ours, Times: 2})
	for i := range 60 {
		w.put(fmt.Sprintf("doc-%d", i%15), w.text(8))
		if i%12 == 0 {
			kind := kinds[i/12]
			id := fmt.Sprintf("spoilt-%d", i/12)
			m := w.put(id, spoilt+string(kind)+". "+w.text(12)) // in the first chunk, in one piece
			w.api.final(m, id)                                  // in one call with another of them it would be spared
		}
	}
	w.over()
	r := w.check()
	if r.Statuses["dead"] != 5 {
		t.Errorf("statuses %v, want 5 dead", r.Statuses)
	}
	for _, l := range w.deadLetters() {
		if l.Stage != "embedder" || l.Reason == "" {
			t.Errorf("letter %+v", l)
		}
	}
	hit := w.embedder.Stats().Faults
	for _, kind := range kinds {
		if hit[kind] == 0 {
			t.Errorf("the fault %s never happened", kind)
		}
	}
}

func (w *world) deadLetters() []checker.Letter {
	w.t.Helper()
	all, err := w.checkerAPI().Letters(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// Row 17: the embedding service is overloaded and says when to come back, fails, talks nonsense, or never answers. That
// costs time: nothing dies, nothing counts as an attempt, and it is not asked more often than it wants to be.
func TestFaultEmbedderAway(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 17, partitions: 1}) // one batch at a time: calls can be counted
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	worker.waitReady() // at its start it asks the service itself
	monitor := api{t, "http://" + worker.monitor}
	n := 0
	outage := func(f embedtest.Fault, lasts time.Duration) (calls int) {
		t.Helper()
		before := w.embedder.Stats()
		if err := w.embedder.Inject(f); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			n++
			w.put(fmt.Sprintf("doc-%d", n%5), w.text(4))
		}
		eventually(t, "the outage to be seen", func() error {
			if monitor.metric("waymark_outage") == 0 && f.Kind != embedtest.FaultHang || w.embedder.Stats().Faults[f.Kind] == before.Faults[f.Kind] {
				return fmt.Errorf("no outage, %v", w.embedder.Stats().Faults)
			}
			return nil
		})
		pause(lasts)
		calls = w.embedder.Stats().Calls - before.Calls
		w.embedder.Clear()
		w.over()
		w.settle()
		if monitor.metric("waymark_outage") != 0 {
			t.Errorf("%s is over, and still an outage", f.Kind)
		}
		return calls
	}
	calls := outage(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 429, RetryAfter: "4"}, 10*time.Second)
	if calls > 8 { // a batch and a canary, at 0, 4 and 8 s, and some slack
		t.Errorf("a service that wants to be left alone for 4 s was asked %d times in 10 s", calls)
	}
	outage(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 500}, 3*time.Second)
	outage(embedtest.Fault{Kind: embedtest.FaultHang}, 3*time.Second)
	if inFull() {
		outage(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 503}, 10*time.Second)
		outage(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 401}, 3*time.Second)
		outage(embedtest.Fault{Kind: embedtest.FaultGarbage}, 3*time.Second)
		outage(embedtest.Fault{Kind: embedtest.FaultReset}, 3*time.Second)
		outage(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 429, RetryAfter: "40"}, 60*time.Second)
	}
	if r := w.check(); r.Letters != 0 {
		t.Errorf("%d letters: an outage is nobody's fault", r.Letters)
	}
	if n := monitor.metric("waymark_retries_total", `class="transient"`); n != 0 {
		t.Logf("%v retries of transient errors", n)
	}
}

// Row 17: one call is never answered, and every other one is.
func TestFaultEmbedderLosesACall(t *testing.T) {
	slowFault(t, "it waits for the time limit of a call")
	w := newWorld(t, worldOptions{seed: 18})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	worker.waitReady() // at its start it asks the service itself
	if err := w.embedder.Inject(embedtest.Fault{Kind: embedtest.FaultHang, Match: "This is text number", Times: 1}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		w.put(fmt.Sprintf("doc-%d", i), w.text(4))
	}
	w.over()
	if r := w.check(); r.Letters != 0 || w.embedder.Stats().Faults[embedtest.FaultHang] != 1 {
		t.Errorf("%d letters, faults %v", r.Letters, w.embedder.Stats().Faults)
	}
}
