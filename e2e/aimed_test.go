package e2e

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
	"github.com/waymarkhq/waymark/rag/wire"
)

// Schedules that are aimed at one gap each: random faults hit it once in a thousand runs, if at all. The mutation gate shows
// which bug each of them sees.

// without are the workers but one.
func without(role string) (others []string) {
	for _, r := range workers {
		if r != role {
			others = append(others, r)
		}
	}
	return others
}

// refuse makes the broker take nothing for some topics until the returned function is called.
func (w *world) refuse(topics ...string) (takeAgain func()) {
	var faults []*kfake.FaultHandle
	for _, topic := range topics {
		faults = append(faults, w.cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.NotEnoughReplicas, Count: -1}))
	}
	return func() {
		for _, f := range faults {
			f.Remove()
		}
	}
}

// What was sent before any worker has ever run is worked on when one comes.
func TestWorkersThatComeLate(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 51})
	w.start("api", "api")
	w.api.waitReady()
	for i := range 8 {
		w.put(fmt.Sprintf("doc-%d", i), w.text(3))
	}
	w.start("worker", workers...)
	w.over()
	w.check()
}

// The chunker dies when the row stands in its local store, and Kafka has nothing of the document. Later its local store is
// lost, and the row must be in the table: the message id of a submission that is sent again is known by nothing else.
func TestCrashBehindTheLocalRow(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 52})
	w.start("api", "api")
	w.start("others", without("chunker")...)
	chunker := w.start("chunker", "chunker")
	w.api.waitReady()
	chunker.waitReady()

	takeAgain := w.refuse(w.topic("chunks"), w.topic("progress"), "waymark-chunker-table")
	chunker.kill(syscall.SIGKILL)
	chunker.relaunch(fault.BeforeTableSend + ":1")
	first := w.put("doc", w.text(4))
	w.dead(chunker, fault.BeforeTableSend)
	if n := w.happened(fault.BeforeTableSend); n != 1 {
		t.Fatalf("it was killed %d times", n)
	}
	if n := len(w.chunkVersions()); n != 0 {
		t.Fatalf("chunks of %d documents in the log: this test shows nothing", n)
	}
	takeAgain()
	chunker.relaunch("")
	if s := w.api.final(first, "doc"); s.Status != "indexed" {
		t.Errorf("what was read again is %s", s.Status)
	}

	w.settle()
	chunker.kill(syscall.SIGKILL)
	if err := os.RemoveAll(w.dir + "/chunker"); err != nil {
		t.Fatal(err)
	}
	chunker.launch()
	w.api.final(w.put("doc", w.text(5)), "doc")
	w.resend("doc", first)
	w.api.final(w.put("doc", w.text(6)), "doc") // behind the one that was sent again
	w.over()
	if r := w.check(); r.Duplicates != 1 {
		t.Errorf("%d submissions were sent again, want 1", r.Duplicates)
	}
	if got := w.chunkVersions()[[2]string{"doc", first}]; len(got) != 1 {
		t.Errorf("the first submission was chunked as the versions %v: one that is sent again is none", got)
	}
}

// chunkVersions are the versions in which each submission, by document and message id, has chunks in the log.
func (w *world) chunkVersions() map[[2]string]map[string]bool {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
	defer cancel()
	log, err := checker.ReadLog(ctx, w.broker, []string{w.topic("chunks")})
	if err != nil {
		w.t.Fatal(err)
	}
	codecs := wire.NewCodecs(time.Now)
	found := map[[2]string]map[string]bool{}
	for _, r := range log[w.topic("chunks")] {
		c, err := codecs.Chunk.Decode(r.Value)
		if err != nil {
			w.t.Fatal(err)
		}
		id := [2]string{c.DocumentID, c.MessageID}
		if found[id] == nil {
			found[id] = map[string]bool{}
		}
		found[id][fmt.Sprint(c.Revision)] = true
	}
	return found
}

// The indexer dies before the store has a batch, and once more when the store has one and nobody knows: what is written
// again is the same.
func TestCrashAroundAWrite(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 53})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	for _, point := range []string{fault.AfterUpsert, fault.BeforeUpsert} {
		worker.kill(syscall.SIGKILL)
		worker.relaunch(point + ":1")
		for i := range 4 {
			w.put(fmt.Sprintf("doc-%s-%d", point, i), w.text(4))
		}
		w.dead(worker, point)
		if n := w.happened(point); n != 1 {
			t.Errorf("%s happened %d times", point, n)
		}
	}
	worker.relaunch("")
	w.over()
	w.check()
}

// The store refuses one object of a batch, and of another batch it is not known whether it was written: no object counts as
// written that was not.
func TestStoreTakesAPartOrIsUnheard(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 57, partitions: 1})
	w.start("api", "api")
	w.start("others", without("indexer")...)
	indexer := w.start("indexer", "indexer")
	w.api.waitReady()
	indexer.waitReady()
	for _, wrong := range []string{fault.StoreTakesAPart, fault.StoreIsUnheard} {
		indexer.kill(syscall.SIGKILL)
		indexer.relaunch(wrong + ":1")
		for i := range 3 {
			w.put(fmt.Sprintf("doc-%s-%d", wrong, i), w.text(6))
		}
		w.settle()
		if n := w.happened(wrong); n != 1 {
			t.Errorf("%s happened %d times", wrong, n)
		}
	}
	w.over()
	w.check()
}

// The broker does not take the chunks of a document. What comes behind it on its partition has none, is finished first, and
// is not committed before.
func TestCommitWaitsForRefusedChunks(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 54, partitions: 1})
	w.start("api", "api")
	w.start("worker", workers...)
	w.api.waitReady()
	takeAgain := w.refuse(w.topic("chunks"))
	late := w.put("doc", w.text(6))
	w.put("other", w.text(2))
	if s := w.api.final(w.remove("doc"), "doc"); s.Status != "deleted" {
		t.Errorf("the delete is %s", s.Status)
	}
	if n := w.lagOf("chunker"); n < 3 {
		t.Errorf("the chunker is %d behind while chunks are refused, want all of it", n)
	}
	takeAgain()
	w.over()
	w.check()
	if s := w.api.final(late, "doc"); s.Status != "superseded" {
		t.Errorf("the document whose chunks were refused is %s", s.Status)
	}
}

// Several documents have the same text, whose vector is known since the first of them: all are served.
func TestSameTextInTwoDocuments(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 55})
	w.start("api", "api")
	w.start("worker", workers...)
	w.api.waitReady()
	text := w.text(3)
	w.api.final(w.put("one", text), "one")
	for i := range 4 { // on every partition
		w.put(fmt.Sprintf("other-%d", i), text)
	}
	w.put("one", w.text(2)+" "+text)
	w.over()
	w.check()
}

// An outage of the embedding service lasts for more tries than a document has in all its attempts: none of them counts.
func TestOutageOutlastsAllAttempts(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 56, partitions: 1, env: []string{"WAYMARK_DELIVERY_ATTEMPTS=1"}})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	worker.waitReady() // at its start it asks the service itself
	if err := w.embedder.Inject(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 503}); err != nil {
		t.Fatal(err)
	}
	m := w.put("doc", w.text(1))
	eventually(t, "the service to be asked again and again", func() error {
		if w.has("doc", m, "dead") == nil {
			return nil // the check has more to say
		}
		if n := w.embedder.Stats().Faults[embedtest.FaultStatus]; n < 12 { // a try and a canary each time
			return fmt.Errorf("it was asked %d times", n)
		}
		return nil
	})
	w.embedder.Clear()
	w.over()
	if r := w.check(); r.Letters != 0 {
		t.Errorf("%d letters: an outage is nobody's fault", r.Letters)
	}
}
