package native

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// awaitOutage waits until the indexer has noticed that the store is away.
func (p *pods) awaitOutage(monitor string) {
	p.t.Helper()
	eventually(p.t, "the outage of the store to be noticed", func() error {
		if n := p.workerMetric(monitor, "waymark_outage", `dependency="store"`); n != 1 {
			return errNotYet
		}
		return nil
	})
}

// workerMetric reads a metric of the process behind a monitor.
func (p *pods) workerMetric(monitor, name string, labels ...string) float64 {
	p.t.Helper()
	res, err := p.sent.Get("http://" + monitor + "/metrics")
	if err != nil {
		return 0 // it has not begun to serve
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return sum(b, name, labels...)
}

// runMonitored starts the workers, or all roles, and tells where their metrics are.
func (p *pods) runMonitored(name string, roles ...string) (proc *process, monitor string) {
	p.t.Helper()
	at, err := freeAddress()
	if err != nil {
		p.t.Fatal(err)
	}
	p.env = append(p.env, "WAYMARK_MONITOR_LISTEN="+at)
	proc = p.run(name, roles...)
	p.env = p.env[:len(p.env)-1]
	return proc, at
}

// runAllMonitored is runAll that tells where the worker's metrics are.
func (p *pods) runAllMonitored() (worker *process, monitor string) {
	p.t.Helper()
	p.run("api", "api")
	worker, monitor = p.runMonitored("worker", workers...)
	p.waitReady()
	return worker, monitor
}

// Weaviate is killed under load, and once more when everything is idle: no document dies, and whatever vectors it has lost
// of those that it had acknowledged are looked for and written again.
func TestWeaviateKilled(t *testing.T) {
	needNative(t)
	w := needOwnWeaviate(t)
	p := newPods(t, "killed")
	_, monitor := p.runAllMonitored()
	l := p.startLoad(100, 10*time.Millisecond)
	kills := 5
	if !all() {
		kills = 2
	}
	for range kills {
		l.await(60)
		w.signal(syscall.SIGKILL)
		p.awaitOutage(monitor)
		if err := w.start(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	l.await(20)
	p.check(l.end())
	t.Logf("under load: %s", p.readBack(monitor))
	w.signal(syscall.SIGKILL)
	if err := w.start(context.Background()); err != nil {
		t.Fatal(err)
	}
	p.check(l.m)
	t.Logf("and when it was idle: %s", p.readBack(monitor))
}

func (p *pods) readBack(monitor string) string {
	return fmt.Sprintf("%v chunks were looked for and found, %v were lost and written again", p.workerMetric(monitor, "waymark_store_read_back_total", `outcome="found"`),
		p.workerMetric(monitor, "waymark_store_read_back_total", `outcome="repaired"`))
}

// Weaviate and the worker die together, as with their machine: the worker that starts again knows nothing of it and looks
// all the same.
func TestWeaviateAndWorkerKilledTogether(t *testing.T) {
	needAll(t)
	w := needOwnWeaviate(t)
	p := newPods(t, "together")
	worker, monitor := p.runAllMonitored()
	l := p.startLoad(100, 10*time.Millisecond)
	for range 4 {
		l.await(80)
		worker.signal(syscall.SIGSTOP) // so that it sees nothing of the death
		w.signal(syscall.SIGKILL)
		worker.signal(syscall.SIGKILL)
		if err := w.start(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := worker.launch(); err != nil {
			t.Fatal(err)
		}
	}
	p.check(l.end())
	t.Log(p.readBack(monitor))
}

// Weaviate hangs for 20 s: nothing dies, and everything goes on when it does.
func TestWeaviateHangs(t *testing.T) {
	needAll(t)
	w := needOwnWeaviate(t)
	p := newPods(t, "hangs")
	p.runAll()
	l := p.startLoad(40, 20*time.Millisecond)
	l.await(40)
	w.signal(syscall.SIGSTOP)
	pause(20 * time.Second)
	w.signal(syscall.SIGCONT)
	l.await(20)
	p.check(l.end())
}

// Weaviate refuses to write, as when its disk is nearly full: the partition is held, nothing dies.
func TestWeaviateReadOnly(t *testing.T) {
	needNative(t)
	w := needWeaviate(t)
	p := newPods(t, "readonly")
	_, monitor := p.runAllMonitored()
	l := p.startLoad(40, 20*time.Millisecond)
	l.await(20)
	w.setShards(t, collection("readonly"), "READONLY")
	p.awaitOutage(monitor)
	l.await(20)
	pause(5 * time.Second) // longer than all retries in place
	w.setShards(t, collection("readonly"), "READY")
	l.await(20)
	p.check(l.end())
}

// setShards sets the status of all shards of a collection.
func (w *weaviate) setShards(t *testing.T, class, status string) {
	t.Helper()
	var shards []struct{ Name string }
	if err := w.server().Call(t.Context(), http.MethodGet, "/v1/schema/"+class+"/shards", nil, &shards); err != nil || len(shards) == 0 {
		t.Fatalf("shards of %s: %v %v", class, shards, err)
	}
	for _, s := range shards {
		if err := w.server().Call(t.Context(), http.MethodPut, "/v1/schema/"+class+"/shards/"+s.Name, map[string]string{"status": status}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// cable passes connections on until it cuts them.
type cable struct {
	ln     net.Listener
	target string
	mu     sync.Mutex
	conns  map[net.Conn]bool
	cuts   int
	slow   atomic.Bool
	slices atomic.Int64 // that were passed slowly
	done   sync.WaitGroup
}

func newCable(t *testing.T, target string) *cable {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &cable{ln: ln, target: target, conns: map[net.Conn]bool{}}
	w.done.Go(w.accept)
	t.Cleanup(func() { ln.Close(); w.cut(); w.done.Wait() })
	return w
}

func (w *cable) accept() {
	for {
		front, err := w.ln.Accept()
		if err != nil {
			return
		}
		back, err := net.Dial("tcp", w.target)
		if err != nil {
			front.Close()
			continue
		}
		w.mu.Lock()
		w.conns[front], w.conns[back] = true, true
		w.mu.Unlock()
		for _, pair := range [][2]net.Conn{{front, back}, {back, front}} {
			w.done.Go(func() {
				w.pass(pair[0], pair[1])
				for _, c := range pair {
					c.Close()
					w.mu.Lock()
					delete(w.conns, c)
					w.mu.Unlock()
				}
			})
		}
	}
}

// pass copies until one of the two ends, in small pieces and slowly where it is to be slow.
func (w *cable) pass(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		size := len(buf)
		if w.slow.Load() {
			size = 512
			w.slices.Add(1)
			pause(2 * time.Millisecond)
		}
		n, err := from.Read(buf[:size])
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// cut resets all connections in whatever they are doing.
func (w *cable) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly end
		}
		c.Close()
		w.cuts++
	}
}

// Row 9: the connections to Weaviate are reset in the middle of batches, again and again, under load; then they are slow, and
// pass everything in small pieces.
func TestWeaviateCutOff(t *testing.T) {
	needNative(t)
	w := needWeaviate(t)
	rest, batches := newCable(t, w.url[len("http://"):]), newCable(t, w.grpc)
	p := newPods(t, "cut")
	p.env = append(p.env, "WAYMARK_WEAVIATE_URL=http://"+rest.ln.Addr().String(), "WAYMARK_WEAVIATE_GRPC="+batches.ln.Addr().String())
	_, monitor := p.runAllMonitored()
	l := p.startLoad(100, 5*time.Millisecond)
	for range 8 {
		l.await(15)
		rest.cut()
		batches.cut()
	}
	rest.slow.Store(true)
	batches.slow.Store(true)
	l.await(60)
	rest.slow.Store(false)
	batches.slow.Store(false)
	p.check(l.end())
	ambiguous := p.workerMetric(monitor, "waymark_store_objects_total", `outcome="ambiguous"`)
	t.Logf("%d connections were cut; %v writes had no answer; %s", rest.cuts+batches.cuts, ambiguous, p.readBack(monitor))
	if batches.slices.Load() == 0 {
		t.Error("no connection of batches was slow: nothing was tested")
	}
	if batches.cuts == 0 {
		t.Error("no connection of batches was cut: nothing was tested")
	}
}
