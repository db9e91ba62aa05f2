package e2e

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
)

// Row 4: processes join and leave under load: from one to three and back.
func TestFaultScaledUpAndDown(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 4})
	w.start("api", "api")
	w.start("worker-0", workers...)
	w.api.waitReady()
	w.watch()
	every, rounds := 4*time.Second, 1
	if inFull() {
		every, rounds = 15*time.Second, 2
	}
	stop := w.changing(20, 50*time.Millisecond)
	var more [2]*process
	joins, leaves := 0, 0
	for range rounds {
		for i := range more {
			if more[i] == nil {
				more[i] = w.start(fmt.Sprintf("worker-%d", i+1), workers...)
			} else {
				more[i].launch()
			}
			joins++
			pause(every)
		}
		for i := range more {
			more[i].kill(syscall.SIGTERM)
			if code := more[i].code(); code != 0 {
				t.Errorf("%s ended with %d", more[i].name, code)
			}
			leaves++
			pause(every / 2)
		}
	}
	stop()
	w.over()
	if joins != 2*rounds || leaves != 2*rounds {
		t.Errorf("%d joins, %d leaves", joins, leaves)
	}
	w.check()
}

// Row 5: the process is asked to end in the middle of batches whose outcome it does not know yet. It drains within its
// time, and what was on its way is neither lost nor done twice.
func TestFaultEndedInMidBatch(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 5})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	w.watch()
	stop := w.changing(20, 30*time.Millisecond)
	delayed := 0
	for range 4 {
		worker.waitReady()
		if err := w.embedder.Inject(embedtest.Fault{Kind: embedtest.FaultDelay, Match: "This is text number", Delay: 3 * time.Second, Times: 2}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a call of the embedder to be on its way", func() error {
			if n := w.embedder.Stats().Faults[embedtest.FaultDelay]; n <= delayed {
				return fmt.Errorf("%d calls were delayed", n)
			}
			return nil
		})
		delayed = w.embedder.Stats().Faults[embedtest.FaultDelay]
		began := time.Now()
		worker.kill(syscall.SIGTERM)
		if code, took := worker.code(), time.Since(began); code != 0 || took > 30*time.Second {
			t.Errorf("it ended with %d after %s", code, took)
		}
		w.embedder.Clear()
		worker.launch()
	}
	stop()
	w.over()
	w.check()
}

// Row 6: the API is killed when Kafka has a record and the client does not know it yet; the client sends it again.
func TestFaultAPIKilledBeforeTheReply(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 6})
	gateway := w.start("api", "api")
	w.start("worker", workers...)
	w.api.waitReady()
	const kills = 3
	for i := range kills {
		gateway.kill(syscall.SIGKILL)
		gateway.relaunch(fault.BeforeReply + ":3")
		w.api.waitReady()
		var sending sync.WaitGroup
		sending.Go(func() {
			for n := range 8 {
				w.put(fmt.Sprintf("doc-%d", n%4), w.text(3)) // insists with the same message id
			}
		})
		w.dead(gateway, "no third submission")
		gateway.relaunch("")
		sending.Wait()
		if got := w.happened(fault.BeforeReply); got != i+1 {
			t.Fatalf("%d kills between Kafka and the client, want %d", got, i+1)
		}
	}
	w.over()
	if r := w.check(); r.Duplicates < kills {
		t.Errorf("%d records came twice, want at least %d", r.Duplicates, kills)
	}
}
