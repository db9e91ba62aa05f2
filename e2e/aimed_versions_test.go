package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
	"github.com/waymarkhq/waymark/rag/wire"
)

// A document is changed and changed back before the change is indexed. What it was changed back to is what is served, but not
// what was accepted last: said to be unchanged, it would leave the change in its place.
func TestChangedBackBeforeTheChangeIsIndexed(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 61})
	w.start("api", "api")
	w.start("others", without("chunker")...)
	chunker := w.start("chunker", "chunker")
	w.api.waitReady()
	text := w.text(3)
	w.api.final(w.put("doc", text), "doc")

	if err := w.embedder.Inject(embedtest.Fault{Kind: embedtest.FaultHang, Match: "slowly embedded"}); err != nil {
		t.Fatal(err)
	}
	change := w.put("doc", "This is slowly embedded. "+w.text(3))
	eventually(t, "the change to be chunked", func() error { return w.has("doc", change, "chunked") })
	chunker.kill(syscall.SIGTERM)
	chunker.relaunch(fault.BeforeEmit + ":1:stop")
	w.put("doc", text)
	eventually(t, "the chunker to stop itself with its decision made", func() error {
		if w.happened(fault.BeforeEmit) == 0 {
			return errors.New("it goes on")
		}
		return nil
	})
	w.embedder.Clear()
	if s := w.api.final(change, "doc"); s.Status != "indexed" {
		t.Errorf("the change is %s", s.Status)
	}
	chunker.kill(syscall.SIGCONT)
	w.over()
	w.check()
}

// What was served stays in the store for as long as a reader may know of nothing newer.
func TestReplacedChunksStayForAWhile(t *testing.T) {
	const delay = 15 * time.Second
	w := newWorld(t, worldOptions{seed: 66, env: []string{"WAYMARK_DELIVERY_REMOVAL_DELAY=" + delay.String()}})
	w.start("api", "api")
	w.start("worker", workers...)
	w.api.waitReady()
	w.api.final(w.put("doc", w.text(6)), "doc")
	first := w.pods.stats().Store.Chunks
	began := time.Now()
	w.api.final(w.put("doc", w.text(6)), "doc")
	second := int64(len(w.api.served("doc")))
	pause(2 * time.Second) // in which nothing may happen
	left := w.pods.stats().Store.Chunks
	if time.Since(began) > delay {
		t.Logf("after %s nothing can be said: the machine is too busy", time.Since(began))
	} else if left != first+second {
		t.Errorf("%d chunks are left of %d that were replaced and %d that are served", left, first, second)
	}
	w.over()
	w.check()
}

// A message id is used for another submission. That one dies, under the id of its position, and one stage says so.
func TestReusedMessageIDHasOneAuthor(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 62})
	w.start("api", "api")
	w.start("worker", workers...)
	w.api.waitReady()
	m := w.put("doc", w.text(3))
	w.api.final(m, "doc")
	w.produceAs("doc", m, fmt.Appendf(nil, `{"text": %q}`, w.text(4)))
	w.over()
	if r := w.check(); r.Letters != 1 {
		t.Errorf("%d letters, want that of the record which took another's id", r.Letters)
	}
}

// A version that dies supersedes nothing: the one before it is still being embedded, and is served.
func TestDyingVersionOvertakesALivingOne(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 63, read: readTroublesome, env: []string{"WAYMARK_DELIVERY_ATTEMPTS=1"}})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	worker.waitReady() // at its start it asks the service itself
	for _, f := range []embedtest.Fault{
		{Kind: embedtest.FaultDelay, Match: "slowly embedded", Delay: 4 * time.Second},
		{Kind: embedtest.FaultStatus, Status: 500, Match: troublesome},
	} {
		if err := w.embedder.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	living := w.put("doc", "This is slowly embedded. "+w.text(3))
	eventually(t, "the first version to be embedded", func() error {
		if w.embedder.Stats().Faults[embedtest.FaultDelay] == 0 {
			return errors.New("no call is slow")
		}
		return nil
	})
	dying := w.put("doc", "This is "+troublesome+". "+w.text(3))
	for m, want := range map[string]string{living: "indexed", dying: "dead"} {
		if s := w.api.final(m, "doc"); s.Status != want {
			t.Errorf("%s is %s, want %s", m, s.Status, want)
		}
	}
	w.over()
	w.check()
}

const troublesome = "troublesome for ever"

// readTroublesome is ReadJSON where a text that says so dies.
func readTroublesome(r *kgo.Record) checker.Meaning {
	m := checker.ReadJSON(r)
	m.Dies = m.Dies || strings.Contains(m.Text, troublesome)
	return m
}

// An indexer is stopped with chunks of a version in hand, which dies meanwhile, is replayed and served. When the indexer goes
// on it writes chunks of the generation that died: they leave the replayed ones alone, and go.
func TestLateChunksOfADeadGeneration(t *testing.T) {
	// The indexer goes on before what it had is removed: the removal is what its chunks must go with.
	w := newWorld(t, worldOptions{seed: 64, partitions: 1, env: []string{"WAYMARK_DELIVERY_ATTEMPTS=1", "WAYMARK_DELIVERY_REMOVAL_DELAY=10s"}})
	w.start("api", "api")
	others := w.start("others", without("indexer")...)
	first := w.start("first", "indexer")
	w.api.waitReady()
	others.waitReady() // at its start it asks the service itself
	if err := w.embedder.Inject(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 500, Match: "the end is broken"}); err != nil {
		t.Fatal(err)
	}
	first.kill(syscall.SIGKILL)
	first.relaunch(fault.BeforeUpsert + ":1:stop")
	first.waitReady() // else it may hear that the version is dead before it has had a chunk
	m := w.put("doc", w.text(400)+" And the end is broken.")
	w.replayed = []string{m}
	eventually(t, "the indexer to stop itself", func() error {
		if w.happened(fault.BeforeUpsert) == 0 {
			return errors.New("it goes on")
		}
		return nil
	})
	w.start("second", "indexer")
	if s := w.api.final(m, "doc"); s.Status != "dead" {
		t.Fatalf("a version with a broken chunk is %s", s.Status)
	}
	w.settle()
	w.embedder.Clear()
	letters := w.deadLetters()
	if len(letters) != 1 {
		t.Fatalf("%d letters", len(letters))
	}
	if code := w.replay(letters[0].ID); code != http.StatusAccepted {
		t.Fatalf("the replay is answered %d", code)
	}
	eventually(t, "the replay to be served", func() error { return w.has("doc", m, "indexed") })
	w.settle()
	first.kill(syscall.SIGCONT)
	w.over()
	w.put("other", w.text(2))
	w.check()
}

// A retry has gone out, and waits for an embedder. Whoever sent it dies, and what comes in its place knows that it was sent.
func TestRetriesGoOutOnce(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 65, partitions: 1, env: []string{"WAYMARK_DELIVERY_ATTEMPTS=10", "WAYMARK_DELIVERY_BACKOFF_INITIAL=1s"}})
	w.start("api", "api")
	w.start("others", "chunker", "indexer", "tracker")
	embedder := w.start("embedder", "embedder")
	letters := w.start("letters", "deadletters")
	w.api.waitReady()
	if err := w.embedder.Inject(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 500, Match: "troublesome"}); err != nil {
		t.Fatal(err)
	}
	m := w.put("doc", "This is troublesome for a while. "+w.text(2))
	eventually(t, "the document to wait for its retry", func() error { return w.has("doc", m, "retrying") })
	embedder.kill(syscall.SIGKILL)
	eventually(t, "the retry to be sent, and that to be committed", func() error {
		if sent, behind := len(w.retriesSent()), w.lagOf("deadletters"); sent == 0 || behind > 0 {
			return fmt.Errorf("%d were sent, %d records are not committed", sent, behind)
		}
		return nil
	})
	letters.kill(syscall.SIGKILL)
	letters.launch()
	letters.waitReady()
	poison := w.poison()
	eventually(t, "another letter to be kept", func() error {
		for _, l := range w.deadLetters() {
			if l.MessageID == poison {
				return nil
			}
		}
		return errors.New("it is not")
	})
	w.embedder.Clear()
	embedder.launch()
	w.over()
	w.check()
	if s := w.api.final(m, "doc"); s.Status != "indexed" {
		t.Errorf("in the end it is %s", s.Status)
	}
	for retry, n := range w.retriesSent() {
		if n != 1 {
			t.Errorf("%s was sent %d times", retry, n)
		}
	}
}

// retriesSent counts the records of the replays topic by document, version, generation and attempt.
func (w *world) retriesSent() map[string]int {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
	defer cancel()
	topic := w.topic("replays")
	log, err := checker.ReadLog(ctx, w.broker, []string{topic})
	if err != nil {
		w.t.Fatal(err)
	}
	codecs := wire.NewCodecs(time.Now)
	sent := map[string]int{}
	for _, r := range log[topic] {
		replay, err := codecs.Replay.Decode(r.Value)
		if err != nil {
			w.t.Fatal(err)
		}
		sent[fmt.Sprintf("%s in the revision %v, attempt %d", replay.DocumentID, replay.Revision, replay.Attempt)]++
	}
	return sent
}
