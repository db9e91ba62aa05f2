package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/internal/fault"
)

// largeSentences make a text that travels by reference and whose chunks come one by one.
const largeSentences = 3000

// readBlobs tells what records mean whose content is in a blob folder.
func readBlobs(dir string) checker.Read {
	return func(r *kgo.Record) checker.Meaning {
		for _, h := range r.Headers {
			if h.Key != "waymark-blob" {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, "documents", filepath.FromSlash(string(h.Value))))
			if err != nil {
				return checker.Meaning{Dies: true}
			}
			return checker.Meaning{Text: string(b), Content: fmt.Sprintf("%q", b)}
		}
		return checker.ReadJSON(r)
	}
}

func newLargeWorld(t *testing.T, seed uint64) (w *world, blobs string) {
	t.Helper()
	blobs = t.TempDir() + "/blobs"
	return newWorld(t, worldOptions{seed: seed, read: readBlobs(blobs), env: []string{"WAYMARK_BLOBS_URL=file://" + blobs,
		"WAYMARK_SPLITTING_TOKENS=160"}}), blobs // of more chunks than a search gives the checker sees the first ones only
}

func countBlobs(t *testing.T, dir string) int {
	t.Helper()
	names, err := filepath.Glob(dir + "/documents/*/*")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// A large document whose processes are killed in the middle of it: of its chunks none is lost, and none is there twice.
func TestFaultKilledInALargeDocument(t *testing.T) {
	w, blobs := newLargeWorld(t, 41)
	w.start("api", "api")
	chunker := w.start("chunker", "chunker")
	rest := w.start("rest", "embedder", "indexer", "tracker", "deadletters")
	w.api.waitReady()
	w.watch()
	w.put("large", w.text(largeSentences))
	w.settle()

	for _, at := range []int{40, 300, 600} { // before, and well in the middle of, what is sent of its chunks
		chunker.kill(syscall.SIGKILL)
		chunker.relaunch(fmt.Sprintf("%s:%d", fault.BeforeEmit, at))
		w.put("large", w.text(largeSentences))
		w.dead(chunker, fmt.Sprintf("%s:%d", fault.BeforeEmit, at))
	}
	chunker.relaunch("")
	for _, at := range []string{fault.BeforeUpsert, fault.AfterUpsert, fault.BeforeReceipt} {
		rest.kill(syscall.SIGKILL)
		rest.relaunch(at + ":3")
		w.dead(rest, at)
	}
	rest.relaunch("")
	w.put("small", w.text(3))
	w.over()
	r := w.check()
	if n := countBlobs(t, blobs); n != 4 {
		t.Errorf("%d blobs of 4 large texts", n)
	}
	if got := w.happened(fault.BeforeEmit); got != 3 || r.Statuses["indexed"] == 0 {
		t.Errorf("%d kills of the chunker; statuses %v", got, r.Statuses)
	}
}

// The API is killed when a blob is written and its record is not: the client sends it again, and it is one document.
func TestFaultAPIKilledBehindTheBlob(t *testing.T) {
	w, blobs := newLargeWorld(t, 42)
	gateway := w.start("api", "api")
	w.start("worker", workers...)
	w.api.waitReady()
	gateway.kill(syscall.SIGKILL)
	gateway.relaunch(fault.AfterBlob + ":1")
	w.api.waitReady()
	text, sent := w.text(largeSentences), make(chan struct{})
	go func() {
		defer close(sent)
		w.put("large", text) // insists with the same message id
	}()
	w.dead(gateway, fault.AfterBlob)
	gateway.relaunch("")
	<-sent
	w.over()
	w.check()
	if n := countBlobs(t, blobs); n != 1 {
		t.Errorf("%d blobs of one text", n)
	}
}

// The blob store goes away: large documents wait for it and none dies; readiness says so.
func TestFaultBlobStoreIsAway(t *testing.T) {
	w, blobs := newLargeWorld(t, 43)
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	w.put("large", w.text(largeSentences))
	w.settle()
	worker.kill(syscall.SIGKILL) // so that nobody has read the next one when the store goes away
	w.put("large", w.text(largeSentences))
	if err := os.Rename(blobs, blobs+".away"); err != nil {
		t.Fatal(err)
	}
	worker.launch()
	monitor := api{t, "http://" + worker.monitor}
	eventually(t, "the outage to be told", func() error {
		code, answer, err := monitor.try("GET", "/metrics", nil, nil)
		if err != nil || code != 200 || monitor.metric("waymark_outage", `dependency="blobs"`) != 1 {
			return fmt.Errorf("%d %.100s %w", code, answer, err)
		}
		return nil
	})
	if err := os.Remove(blobs); err != nil { // the worker has made it anew, as a mount point would be there
		t.Fatal(err)
	}
	if err := os.Rename(blobs+".away", blobs); err != nil {
		t.Fatal(err)
	}
	w.over()
	if r := w.check(); r.Statuses["dead"] > 0 {
		t.Errorf("statuses %v", r.Statuses)
	}
}

// The chunks of one document are embedded by all processes of the embedder.
func TestChunksOfOneDocumentSpreadOverEmbedders(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 29})
	w.start("api", "api")
	w.start("rest", "chunker", "indexer", "tracker", "deadletters")
	pods := []*process{w.start("first", "embedder"), w.start("second", "embedder")}
	w.api.waitReady()
	embedded := func(p *process) float64 {
		return (api{t, "http://" + p.monitor}).metric("waymark_embedding_texts_total")
	}
	eventually(t, "both embedders to have partitions", func() error {
		w.put("warm", w.text(40)) // of which some fall to each, once each has partitions
		for _, p := range pods {
			if embedded(p) == 0 {
				return fmt.Errorf("%s has embedded nothing", p.name)
			}
		}
		return nil
	})
	w.over()
	w.settle()
	before := []float64{embedded(pods[0]), embedded(pods[1])}
	w.put("one", w.text(600))
	w.over()
	w.settle()
	for i, p := range pods {
		n := embedded(p) - before[i]
		t.Logf("%s embedded %.0f chunks of the document", p.name, n)
		if n < 10 {
			t.Errorf("%s embedded %.0f chunks of the document", p.name, n)
		}
	}
	w.check()
}
