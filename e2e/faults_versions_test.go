package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
)

// Row 20: a version that waits for its retry while a newer one is indexed, a delete while the version before it is being
// embedded, and chunks that come after their document was deleted.
func TestFaultOvertakenVersions(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 20, env: []string{"WAYMARK_DELIVERY_BACKOFF_INITIAL=3s", "WAYMARK_DELIVERY_BACKOFF_MAX=3s", "WAYMARK_DELIVERY_ATTEMPTS=10"}})
	w.start("api", "api")
	w.start("worker", workers...)
	w.api.waitReady()
	w.watch()
	inject := func(f embedtest.Fault) {
		t.Helper()
		if err := w.embedder.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	inject(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 500, Match: "troublesome"})
	retried := w.put("retried", "This is a troublesome version. "+w.text(2))
	eventually(t, "the first version to wait for its retry", func() error { return w.has("retried", retried, "retrying") })
	second := w.put("retried", w.text(4))
	if s := w.api.final(second, "retried"); s.Status != "indexed" {
		t.Errorf("the second version is %s", s.Status)
	}

	recovered := w.put("recovered", "This is troublesome for a while. "+w.text(2))
	eventually(t, "a version to wait for its retry", func() error { return w.has("recovered", recovered, "retrying") })
	w.embedder.Clear()

	inject(embedtest.Fault{Kind: embedtest.FaultDelay, Match: "slowly embedded", Delay: 4 * time.Second})
	late := w.put("deleted", "This is slowly embedded. "+w.text(3))
	overtaken := w.put("overtaken", "This is slowly embedded too. "+w.text(3))
	eventually(t, "both to be embedded", func() error {
		if n := w.embedder.Stats().Faults[embedtest.FaultDelay]; n == 0 {
			return fmt.Errorf("%d calls are slow", n)
		}
		return nil
	})
	gone := w.remove("deleted")
	if s := w.api.final(gone, "deleted"); s.Status != "deleted" {
		t.Errorf("the delete is %s", s.Status)
	}
	w.put("overtaken", w.text(3))
	w.over()
	w.check()
	for id, m := range map[string]string{"retried": retried, "deleted": late, "overtaken": overtaken} {
		if s := w.api.final(m, id); s.Status != "superseded" {
			t.Errorf("the first version of %s is %s", id, s.Status)
		}
	}
	if s := w.api.final(recovered, "recovered"); s.Status != "indexed" {
		t.Errorf("what was troublesome for a while is %s", s.Status)
	}
	if hits := w.api.served("deleted"); len(hits) != 0 {
		t.Errorf("%d chunks of a deleted document", len(hits))
	}
}

// has is nil when a submission has a status.
func (w *world) has(documentID, messageID, status string) error {
	m, err := w.checkerAPI().Message(w.t.Context(), documentID, messageID)
	if err != nil {
		return err
	}
	if m.Status != status {
		return fmt.Errorf("it is %s", m.Status)
	}
	return nil
}

// Row 22: a dead version is replayed twice at once, after it succeeded, after a newer one was indexed, and again and again
// while it keeps failing.
func TestFaultReplays(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 22, env: []string{"WAYMARK_LIMITS_CHUNKS=5"}})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	w.watch()
	long := func() string { return w.text(40) }
	mendable := w.put("mendable", long())
	older := w.put("older", long())
	hopeless := w.messageID()
	w.produceAs("hopeless", hopeless, []byte(`{"text": "no end`), kgo.RecordHeader{Key: "x", Value: []byte("kept")})
	for id, m := range map[string]string{"mendable": mendable, "older": older, "hopeless": hopeless} {
		if s := w.api.final(m, id); s.Status != "dead" {
			t.Fatalf("%s is %s", id, s.Status)
		}
	}
	newer := w.put("older", w.text(2))
	if s := w.api.final(newer, "older"); s.Status != "indexed" {
		t.Fatalf("the newer version is %s", s.Status)
	}
	w.replayed = []string{mendable, older}
	letterOf := map[string]string{}
	for _, l := range w.deadLetters() {
		letterOf[l.MessageID] = l.ID
	}

	// It keeps failing: each failure may be replayed once, attempts grow, headers do not.
	for n := 2; n <= 4; n++ {
		accepted := w.replayAtOnce(letterOf[hopeless], 5)
		if accepted == 0 {
			t.Errorf("replay %d was refused", n)
		}
		w.waiting(letterOf[hopeless], n)
	}
	w.checkGenerations(letterOf[hopeless], 4)

	// The limit is raised: what died of it can be indexed now, or has been overtaken.
	worker.kill(syscall.SIGTERM)
	worker.env = append(worker.env, "WAYMARK_LIMITS_CHUNKS=1000")
	worker.launch()
	if n := w.replayAtOnce(letterOf[mendable], 5); n == 0 {
		t.Error("the replay was refused")
	}
	if n := w.replayAtOnce(letterOf[older], 1); n != 1 {
		t.Error("the replay of an older version was refused")
	}
	eventually(t, "the replays to end", func() error {
		if err := w.has("mendable", mendable, "indexed"); err != nil {
			return err
		}
		return w.has("older", older, "superseded")
	})
	for m, state := range map[string]string{mendable: "resolved", older: "superseded"} {
		eventually(t, "the letter to be "+state, func() error {
			if l := w.api.letter(letterOf[m]); l.State != state {
				return fmt.Errorf("%+v", l)
			}
			return nil
		})
		if code := w.replay(letterOf[m]); code != http.StatusConflict {
			t.Errorf("the replay of a letter that is %s is answered %d", state, code)
		}
	}
	w.over()
	w.check()
	w.checkGenerations(letterOf[mendable], 1)
	w.checkGenerations(letterOf[older], 1)
}

// replay asks for a replay and returns the status of the answer.
func (w *world) replay(letter string) int {
	code, _, err := w.api.try(http.MethodPost, "/v1/dead-letters/"+letter+"/replay", nil, nil)
	if err != nil {
		w.t.Error(err)
	}
	return code
}

// replayAtOnce asks n times at once and counts how often it was accepted; the others must be conflicts.
func (w *world) replayAtOnce(letter string, n int) (accepted int) {
	w.t.Helper()
	codes := make([]int, n)
	var asking sync.WaitGroup
	for i := range codes {
		asking.Go(func() { codes[i] = w.replay(letter) })
	}
	asking.Wait()
	for _, code := range codes {
		switch code {
		case http.StatusAccepted:
			accepted++
		case http.StatusConflict:
		default:
			w.t.Errorf("a replay is answered %d", code)
		}
	}
	return accepted
}

// waiting waits until a letter waits again, after so many attempts.
func (w *world) waiting(letter string, attempts int) {
	w.t.Helper()
	eventually(w.t, "the letter to wait again", func() error {
		if l := w.api.letter(letter); l.State != "waiting" || l.Attempts != attempts {
			return fmt.Errorf("%+v, want %d attempts", l, attempts)
		}
		return nil
	})
}

// checkGenerations: a letter stands in the topic once for each of the first n generations, and with as many headers each time.
func (w *world) checkGenerations(letter string, n int) {
	w.t.Helper()
	log, err := checker.ReadLog(w.t.Context(), w.broker, []string{w.topic("dead-letters")})
	if err != nil {
		w.t.Fatal(err)
	}
	generations, headers := map[string]bool{}, map[int]bool{}
	for _, r := range log[w.topic("dead-letters")] {
		if string(r.Key) == letter {
			g, err := headerOf(r, "waymark-generation")
			if err != nil {
				w.t.Error(err)
			}
			generations[g], headers[len(r.Headers)] = true, true
		}
	}
	if len(generations) != n || len(headers) != 1 {
		w.t.Errorf("letter %s has the generations %v, want %d, and so many headers: %v", letter, generations, n, headers)
	}
}

// Row 23: the clocks of the processes are hours apart, change when they are started again, and the records' own
// timestamps are of any time. Nothing is ordered by them, and nothing waits for the time of another clock: neither a retry
// nor a removal.
func TestFaultClocksOff(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 23, env: []string{"WAYMARK_DELIVERY_ATTEMPTS=10"}})
	w.start("api", "api")
	writers := w.startAt("writers", "1h", "chunker", "embedder")
	readers := w.startAt("readers", "-1h", "indexer", "deadletters")
	tracker := w.startAt("tracker", "-3h", "tracker")
	w.api.waitReady()
	w.watch()
	stamped := func(offsets ...time.Duration) {
		for i, off := range offsets {
			id, m := fmt.Sprintf("stamped-%d", i%2), w.messageID()
			produce(t, w.broker, &kgo.Record{Topic: w.topic("documents"), Key: []byte(id), Timestamp: time.Now().Add(off),
				Value: fmt.Appendf(nil, `{"text": %q}`, w.text(3)), Headers: []kgo.RecordHeader{{Key: "message-id", Value: []byte(m)}}})
			w.accepted(id, m, true)
		}
	}
	for range 30 {
		w.change(8)
	}
	stamped(time.Hour, -time.Hour, -time.Hour, time.Hour, -40*24*time.Hour, time.Minute)
	if err := w.embedder.Inject(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 500, Match: "troublesome"}); err != nil {
		t.Fatal(err)
	}
	retried := w.put("retried", "This is troublesome for a while. "+w.text(2))
	eventually(t, "a version to wait for its retry", func() error { return w.has("retried", retried, "retrying") })
	w.embedder.Clear()
	w.settle() // the one that failed has dated the retry two hours ahead of the one that sends it
	if s := w.api.final(retried, "retried"); s.Status != "indexed" {
		t.Errorf("what was tried again is %s", s.Status)
	}
	for p, off := range map[*process]string{writers: "-2h", readers: "1h", tracker: "5h"} {
		p.kill(syscall.SIGKILL)
		p.setEnv("FAULT_CLOCK", off)
		p.launch()
	}
	for range 30 {
		w.change(8)
	}
	stamped(-time.Hour, time.Hour, time.Hour, -time.Hour)
	w.settle()
	for i := range 4 {
		w.api.final(w.put(fmt.Sprintf("replaced-%d", i), w.text(3)), fmt.Sprintf("replaced-%d", i))
		w.api.final(w.put(fmt.Sprintf("replaced-%d", i), w.text(4)), fmt.Sprintf("replaced-%d", i))
	}
	readers.kill(syscall.SIGKILL) // with removals that are due three hours ahead of the clock that it has next
	readers.setEnv("FAULT_CLOCK", "-2h")
	readers.launch()
	w.over()
	w.check()
	if n := w.happened("clock"); n != 7 {
		t.Errorf("%d clocks were off, want 7", n)
	}
}

// startAt starts roles in a process whose clock is off.
func (w *world) startAt(name, off string, roles ...string) *process {
	w.t.Helper()
	before := w.env
	w.env = append(before[:len(before):len(before)], "FAULT_CLOCK="+off)
	defer func() { w.env = before }()
	return w.start(name, roles...)
}

// setEnv sets a variable for the next launch.
func (p *process) setEnv(name, value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	env := p.env[:0:0]
	for _, e := range p.env {
		if !strings.HasPrefix(e, name+"=") {
			env = append(env, e)
		}
	}
	if value != "" {
		env = append(env, name+"="+value)
	}
	p.env = env
}
