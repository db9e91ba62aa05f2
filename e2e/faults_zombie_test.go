package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/internal/fault"
)

// Rows 3 and 26: a process is stopped in the middle of a message for longer than its session lasts; another one takes its
// partitions and finishes a newer version of every document; then the first goes on where it was stopped.
func TestFaultZombie(t *testing.T) {
	type stop struct {
		role, point string
		hits        int
		quiet       bool // when it goes on, nobody has anything left to write
	}
	stops := []stop{
		{"indexer", fault.BeforeTableSend, 5, false}, // the row stands in its local store and goes out late
		{"indexer", fault.BeforeTableSend, 4, true},  // and is the last one, unless somebody puts it right
		{"indexer", fault.BeforeUpsert, 1, false},    // chunks of an old version reach the store late
	}
	if inFull() {
		stops = append(stops,
			stop{"indexer", fault.AfterTableSend, 4, false}, stop{"indexer", fault.BeforeSaid, 3, false}, stop{"indexer", fault.BeforeRemoval, 1, false},
			stop{"indexer", fault.AfterUpsert, 1, false}, stop{"indexer", fault.BeforeReceipt, 1, false}, stop{"chunker", fault.BeforeEmit, 12, false},
			stop{"chunker", fault.BeforeTableSend, 3, false}, stop{"embedder", fault.BeforeReceipt, 1, false}, stop{"tracker", fault.BeforeTableSend, 6, false})
	}
	for _, s := range stops {
		name := s.role + " " + s.point
		if s.quiet {
			name += " when all is quiet"
		}
		t.Run(name, func(t *testing.T) { zombie(t, s.role, s.point, s.hits, s.quiet) })
	}
}

func zombie(t *testing.T, role, point string, hits int, quiet bool) {
	// With one partition nothing else of the process is on its way: one that is stopped within a transaction would keep
	// the store's file locked, and everybody would have to wait for it.
	w := newWorld(t, worldOptions{seed: uint64(hits), partitions: 1})
	w.start("api", "api")
	var others []string
	for _, r := range workers {
		if r != role {
			others = append(others, r)
		}
	}
	w.start("others", others...)
	first := w.start("first", role)
	w.api.waitReady()
	w.watch()
	const documents = 8
	id := func(i int) string { return fmt.Sprintf("doc-%d", i) }
	for i := range documents { // something is served, so that there is something to remove
		w.put(id(i), w.text(6))
	}
	w.settle()

	first.kill(syscall.SIGKILL)
	first.relaunch(fmt.Sprintf("%s:%d:stop", point, hits))
	for i := range documents {
		w.put(id(i), w.text(6))
	}
	eventually(t, "the process to stop itself", func() error {
		if w.happened(point) == 0 {
			return fmt.Errorf("no hit %d of %s", hits, point)
		}
		return nil
	})
	second := w.start("second", role)
	latest := map[string]string{}
	for i := range documents {
		if i%4 == 3 {
			latest[id(i)] = w.remove(id(i))
		} else {
			latest[id(i)] = w.put(id(i), w.text(3))
		}
	}
	for doc, message := range latest {
		if s := w.api.final(message, doc); s.Status != "indexed" && s.Status != "deleted" {
			t.Errorf("%s is %s while the first process is stopped", doc, s.Status)
		}
	}
	if quiet {
		w.settle()
	}
	first.kill(syscall.SIGCONT)
	w.over()
	for i := range documents {
		w.put(fmt.Sprintf("new-%d", i), w.text(3))
	}
	r := w.check()
	if role == "indexer" && (point == fault.BeforeTableSend || point == fault.AfterTableSend) && r.LateRows == 0 {
		t.Errorf("no row was written late: nothing was tested")
	}
	if !first.running() || !second.running() {
		t.Error("a process has ended")
	}
	if _, ok := given(); ok && inFull() { // whatever it still had on its way has arrived by then
		pause(2 * time.Minute)
		w.verify()
	}
}
