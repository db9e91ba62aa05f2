package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/internal/fault"
)

// Row 18: everything that a producer can write and that can never be served. Each dies with a reason that fits, its
// neighbours do not notice, and the memory of the process stays bounded.
func TestFaultPoison(t *testing.T) {
	all := deadlies()
	w := newWorld(t, worldOptions{seed: 18, read: readDeadly, env: []string{"WAYMARK_LIMITS_PARSE_TIME=3s", "WAYMARK_LIMITS_CHUNKS=2000"}})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	w.watch()
	reasons := map[string]deadly{} // by the position that the letters name
	client := logClient(t, w.broker, kgo.ProducerBatchMaxBytes(12<<20))
	stop := w.changing(10, 50*time.Millisecond)
	for i, d := range all {
		r := &kgo.Record{Topic: w.topic("documents"), Key: d.key, Value: d.value}
		id, message := fmt.Sprintf("deadly-%d", i), d.message
		if r.Key == nil && !d.null {
			r.Key = []byte(id)
		}
		if message == "" {
			message = w.messageID()
		}
		if !d.null {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: "message-id", Value: []byte(message)})
		}
		if d.kind != "" {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: "content-type", Value: []byte(d.kind)})
		}
		says := "yes"
		if d.unusable() {
			says = "no id"
		}
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "deadly", Value: []byte(says)})
		err := client.ProduceSync(t.Context(), r).FirstErr()
		if _, real := given(); real && d.null && errors.Is(err, kerr.InvalidRecord) {
			t.Logf("%s: a real broker refuses it on a compacted topic", d.name)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		foreign := fmt.Sprintf("%s@0-%d-%d", w.topic("documents"), r.Partition, r.Offset)
		reasons[foreign] = d
		if d.unusable() {
			w.accepted(foreign, foreign, false)
		} else {
			w.accepted(id, message, false)
		}
	}
	w.garbageEverywhere(client)
	stop()
	w.over()
	w.settle()
	dead := 0
	for _, l := range w.deadLetters() {
		d, ours := reasons[l.ID]
		if !ours {
			t.Errorf("a letter of a healthy document: %+v", l)
			continue
		}
		dead++
		if !slices.Contains(d.reasons, l.Reason) || l.Error == "" {
			t.Errorf("%s died of %q (%s), want one of %v", d.name, l.Reason, l.Error, d.reasons)
		}
	}
	if dead != len(reasons) {
		t.Errorf("%d of %d records died", dead, len(reasons))
	}
	w.mostMB = 1500 // four partitions may read a PDF each, which may take 256 MB
	w.check()
	peak := peakMB(t, worker)
	t.Logf("I9: the worker had %.0f MB at most", peak)
	if peak > w.mostMB {
		t.Errorf("I9: the worker had %.0f MB", peak)
	}
	if !worker.running() {
		t.Error("the worker has ended")
	}
	w.newerFormat(worker, client)
}

// internal are the topics that only the pipeline itself writes.
var internal = []string{"chunks", "vectors", "progress", "events", "replays", "commands", "dead-letters"}

// garbageEverywhere writes what nobody can read, and a null, to every internal topic.
func (w *world) garbageEverywhere(client *kgo.Client) {
	w.t.Helper()
	for _, topic := range internal {
		for i, value := range [][]byte{[]byte("garbage"), {}, nil, {0xff, 0x01, 0x00, 0x02}} {
			r := &kgo.Record{Topic: w.topic(topic), Key: []byte(fmt.Sprint(stranger, i)), Value: value}
			if err := client.ProduceSync(w.t.Context(), r).FirstErr(); err != nil {
				w.t.Fatalf("%s: %v", topic, err)
			}
		}
	}
}

// newerFormat: a record of a release that this one does not know holds its partition and makes the process not ready,
// and kills nothing (contract rule 4).
func (w *world) newerFormat(worker *process, client *kgo.Client) {
	w.t.Helper()
	codec := codecs.New(99, time.Now, func(s string) ([]byte, error) { return []byte(s), nil }, func(b []byte) (string, error) { return string(b), nil })
	value, err := codec.Encode("of the next release")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := client.ProduceSync(w.t.Context(), &kgo.Record{Topic: w.topic("chunks"), Key: []byte("future"), Value: value}).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	eventually(w.t, "the process to say that a newer release is about", func() error {
		code, b, err := (api{w.t, "http://" + worker.monitor}).try("GET", "/readyz", nil, nil)
		if err != nil || code != 503 || !strings.Contains(string(b), "format") {
			return errors.Join(fmt.Errorf("%d %s", code, b), err)
		}
		return nil
	})
	before, indexed := len(w.deadLetters()), w.pods.stats().Documents["indexed"]
	for i := range 20 { // chunks of other partitions go on
		w.put(fmt.Sprintf("beside-%d", i), w.text(2))
	}
	eventually(w.t, "others to go on", func() error {
		if n := w.pods.stats().Documents["indexed"]; n == indexed {
			return fmt.Errorf("%d are indexed, as before", n)
		}
		return nil
	})
	for range 20 {
		if code, b, err := (api{w.t, "http://" + worker.monitor}).try("GET", "/readyz", nil, nil); err != nil || code != 503 || !strings.Contains(string(b), "newer_format") {
			w.t.Errorf("while a partition is held it says %d %s (%v)", code, b, err)
			break
		}
		pause(100 * time.Millisecond)
	}
	if after := len(w.deadLetters()); after != before {
		w.t.Errorf("%d letters for a record of the next release", after-before)
	}
	if lag := w.lagOf("embedder"); lag == 0 {
		w.t.Error("the record of the next release is committed")
	}
}

// peakMB is the highest resident memory that a process has had.
func peakMB(t testing.TB, p *process) float64 {
	t.Helper()
	p.mu.Lock()
	pid := p.cmd.Process.Pid
	p.mu.Unlock()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kb); n == 1 {
			return kb / 1024
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// readParser is the JSON of the API, of which the texts that break the parser of the test build die.
func readParser(r *kgo.Record) checker.Meaning {
	m := checker.ReadJSON(r)
	m.Dies = m.Dies || strings.Contains(m.Text, fault.PanicText) || strings.Contains(m.Text, fault.KillText)
	return m
}

// Row 19: the parser panics over some documents, and kills the process over another one: they alone die, the last one
// after it has killed three processes.
func TestFaultParserPanicsAndKills(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 19, read: readParser})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	w.watch()
	// What ends is started again, as any supervisor does.
	done := make(chan struct{})
	var supervising sync.WaitGroup
	defer supervising.Wait()
	defer close(done)
	supervising.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-worker.ended():
				worker.launch()
			}
		}
	})
	for i := range 20 {
		text := w.text(3)
		switch i {
		case 4, 11, 17:
			text += " " + fault.PanicText
		case 9:
			text += " " + fault.KillText
		}
		w.put(fmt.Sprintf("doc-%d", i), text)
	}
	eventually(t, "three deaths", func() error {
		if n := w.happened("parser-kill"); n < 3 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	w.over()
	r := w.check()
	if r.Statuses["dead"] != 4 || r.Statuses["indexed"] != 16 {
		t.Errorf("statuses %v, want 16 indexed and 4 dead", r.Statuses)
	}
	got := map[string]int{}
	for _, l := range w.deadLetters() {
		got[l.Reason]++
	}
	if got["panic"] != 3 || got["kills_process"] != 1 {
		t.Errorf("reasons %v", got)
	}
	if n := w.happened("parser-kill"); n > 8 {
		t.Errorf("the process was killed %d times", n)
	}
}
