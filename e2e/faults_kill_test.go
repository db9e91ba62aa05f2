package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/internal/fault"
)

// Row 1: every role, in a process of its own, is killed again and again while documents are put, changed and deleted.
func TestFaultEveryRoleKilledInLoops(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 1})
	w.start("api", "api")
	running := map[string]*process{}
	for _, role := range workers {
		running[role] = w.start(role, role)
	}
	w.api.waitReady()
	w.watch()

	rounds := 2
	if inFull() {
		rounds = 8
	}
	kills := 0
	stop := w.changing(20, 60*time.Millisecond)
	for range rounds {
		for _, role := range workers {
			pause(time.Duration(200+w.intn(800)) * time.Millisecond)
			running[role].restart()
			kills++
		}
	}
	stop()
	w.over()
	if kills != rounds*len(workers) {
		t.Errorf("%d kills", kills)
	}
	w.check()
}

// changing changes documents in the background until the returned function is called, which waits for its end.
func (w *world) changing(documents int, every time.Duration) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(every):
				w.change(documents)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		running.Wait()
	})
}

func (w *world) intn(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// dead waits until a process has ended by itself.
func (w *world) dead(p *process, why string) {
	w.t.Helper()
	select {
	case <-p.ended():
	case <-time.After(deadline):
		w.t.Fatalf("%s did not end: %s", p.name, why)
	}
}

// relaunch starts a process that has ended, with faults of its own.
func (p *process) relaunch(faults string) {
	p.t.Helper()
	p.setEnv("FAULT_POINT", faults)
	p.launch()
}

// Row 2: the process kills itself at the n-th hit of every point where a message can be between two states.
func TestFaultKilledAtEveryPoint(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 2})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	w.watch()
	random := rand.New(rand.NewPCG(2, 2))
	rounds := 1
	if inFull() {
		rounds = 4
	}
	for range rounds {
		for i, point := range fault.Points() {
			if point == fault.BeforeReply {
				continue // the API's, see TestFaultAPIKilledBeforeTheReply
			}
			if i%2 == 0 {
				// A message that was alone in three deaths is taken for their cause: no message sees more than two here.
				worker.kill(syscall.SIGKILL)
				worker.relaunch("")
				eventually(t, "what the last deaths have left", func() error { return w.finals(t.Context()) })
			}
			before := w.happened(point)
			n := 1 + random.IntN(4)
			worker.kill(syscall.SIGKILL)
			worker.relaunch(fmt.Sprintf("%s:%d", point, n))
			stop := w.changing(10, 20*time.Millisecond)
			if point == fault.BeforeLetter {
				for range n {
					w.poison()
				}
			}
			w.dead(worker, point)
			stop()
			if got := w.happened(point); got != before+1 {
				t.Errorf("%s happened %d times", point, got-before)
			}
		}
	}
	worker.relaunch("")
	w.over()
	r := w.check()
	if r.Statuses["dead"] == 0 {
		t.Error("nothing died: the letters were not tested")
	}
}

// Row 1: processes are killed while they wait to join their groups, and their data folders are lost with them, so that
// nobody comes back under their names. The others must get the partitions that the groups have given to the dead.
func TestFaultKilledWhileItJoins(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 101})
	w.start("api", "api")
	first := w.start("worker", workers...)
	w.api.waitReady()
	first.waitReady()
	w.watch()
	var mu sync.Mutex
	joins := map[string]int{} // by instance id
	w.cluster().ControlKey(int16(kmsg.JoinGroup), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if join, ok := r.(*kmsg.JoinGroupRequest); ok && join.InstanceID != nil {
			mu.Lock()
			defer mu.Unlock()
			joins[*join.InstanceID]++
		}
		return nil, nil, false
	})
	joined := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(joins)
	}
	stop := w.changing(10, 50*time.Millisecond)
	const deaths = 3
	for i := range deaths {
		before := joined()
		name := fmt.Sprintf("short-lived-%d", i)
		p := w.start(name, workers...)
		eventually(t, "a process to join its groups", func() error {
			if n := joined() - before; n < len(workers)-1 { // the last one may be quick
				return fmt.Errorf("it has joined %d", n)
			}
			return nil
		})
		p.kill(syscall.SIGKILL)
		if err := os.RemoveAll(w.dir + "/" + name); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	w.over()
	w.check()
}
