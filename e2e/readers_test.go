package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/e2e/checker"
)

// At any moment a reader sees all chunks of one version of a document: never a mix, never a gap, never an older one
// again, however fast the versions follow each other.
func TestReadersSeeWholeVersions(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 31})
	w.start("all", append([]string{"api"}, workers...)...)
	w.api.waitReady()
	w.watch()
	const documents = 3
	var several []*checker.Readers
	for i := range 4 {
		r := checker.Watch(t.Context(), w.readersAPI(), uint64(i))
		several = append(several, r)
		for d := range documents {
			r.Add(fmt.Sprintf("doc-%d", d), "")
		}
	}
	end := time.Now().Add(5 * time.Second)
	var writing sync.WaitGroup
	for d := range documents {
		writing.Go(func() {
			for time.Now().Before(end) {
				w.put(fmt.Sprintf("doc-%d", d), w.text(30))
			}
		})
	}
	writing.Wait()
	w.over()
	r := w.check()
	for i, readers := range several {
		readers.Stop()
		w.readers = readers
		if r := w.verify(); r.Observations < 20 {
			t.Errorf("reader %d looked %d times", i, r.Observations)
		}
	}
	if r.Submissions < 20 {
		t.Errorf("only %d versions", r.Submissions)
	}
}
