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
	const documents = 3
	w.readers = checker.Watch(t.Context(), w.readersAPI(), 31, 8)
	t.Cleanup(w.readers.Stop)
	for d := range documents {
		w.readers.Add(fmt.Sprintf("doc-%d", d), "")
	}
	end := time.Now().Add(6 * time.Second)
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
	if r := w.check(); r.Submissions < 20 || r.Observations < 100 {
		t.Errorf("only %d versions, seen %d times", r.Submissions, r.Observations)
	}
}
