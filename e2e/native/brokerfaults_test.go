package native

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load submits documents, changed and deleted at random, until it is stopped. What it sends stands in the model.
type load struct {
	p     *pods
	m     *model
	every time.Duration
	docs  []article
	stop  chan struct{}
	once  sync.Once
	done  sync.WaitGroup
	sent  atomic.Int64
	name  string // begins its message ids
}

func (p *pods) startLoad(documents int, every time.Duration) *load {
	return p.startLoadOn(newModel(), documents, every, "change")
}

// startLoadOn goes on with what another load has left.
func (p *pods) startLoadOn(m *model, documents int, every time.Duration, name string) *load {
	l := &load{p: p, m: m, every: every, docs: articles(p.t, documents), stop: make(chan struct{}), name: name}
	l.done.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-l.stop:
				return
			case <-time.After(l.every):
			}
			l.change(n)
			l.sent.Add(1)
		}
	})
	p.t.Cleanup(func() { l.end() }) // of a test that has failed
	return l
}

// change puts, changes or deletes one document.
func (l *load) change(n int) {
	d := l.docs[rand.IntN(len(l.docs))]
	d.messageID = fmt.Sprintf("%s-%d", l.name, n)
	if l.m.text[d.id] != "" && rand.IntN(5) == 0 {
		l.p.delete(d.id, d.messageID)
		l.m.text[d.id] = ""
		l.m.last[d.id] = d.messageID
		return
	}
	d.text = fmt.Sprintf("Change %d. %s", n, string([]rune(d.text[:500+rand.IntN(len(d.text)-500)])))
	l.p.put(l.m, d)
}

// end stops the load and returns what must be served.
func (l *load) end() *model {
	l.once.Do(func() { close(l.stop) })
	l.done.Wait()
	return l.m
}

// await waits until the load has got further by n changes.
func (l *load) await(n int64) {
	l.p.t.Helper()
	from := l.sent.Load()
	eventually(l.p.t, fmt.Sprintf("%d more changes", n), func() error {
		if now := l.sent.Load(); now < from+n {
			return fmt.Errorf("%d of them", now-from)
		}
		return nil
	})
}

// The leader of the documents is killed five times (twice in the selection) under load, and comes back each time.
func TestLeaderKilledFiveTimes(t *testing.T) {
	needNative(t)
	k := needKillable(t, 3)
	p := newPods(t, "leaders")
	p.runAll()
	l := p.startLoad(40, 20*time.Millisecond)
	kills := 5
	if !all() {
		kills = 2
	}
	for range kills {
		l.await(20)
		node := leader(t, "leaders.documents")
		began := time.Now()
		if err := k.Kill(node); err != nil {
			t.Fatal(err)
		}
		l.await(20) // while it is away
		without := time.Since(began)
		startNode(t, k, node)
		started := time.Since(began) - without
		t.Logf("node %d killed: 20 changes took %s; it was ready again after %s and in sync %s later", node,
			without.Round(10*time.Millisecond), started.Round(10*time.Millisecond), awaitInSync(t).Round(10*time.Millisecond))
	}
	l.await(20)
	p.check(l.end())
}

// Each broker is stopped in order and started again, as when the cluster is upgraded.
func TestRollingRestart(t *testing.T) {
	needAll(t)
	k := needKillable(t, 3)
	p := newPods(t, "rolling")
	p.runAll()
	l := p.startLoad(40, 20*time.Millisecond)
	for node := 1; node <= k.Nodes(); node++ {
		l.await(20)
		if err := k.Stop(node); err != nil {
			t.Fatal(err)
		}
		l.await(20)
		startNode(t, k, node)
		awaitInSync(t)
	}
	p.check(l.end())
}

// Two brokers die, then all of them: nothing is accepted that cannot be kept, and everything goes on when they are back.
func TestAllBrokersDown(t *testing.T) {
	needAll(t)
	k := needKillable(t, 3)
	p := newPods(t, "down")
	p.runAll()
	l := p.startLoad(40, 20*time.Millisecond)
	l.await(40)
	for node := 1; node <= 2; node++ {
		if err := k.Kill(node); err != nil {
			t.Fatal(err)
		}
	}
	p.refused("one broker of three is left")
	if err := k.Kill(3); err != nil {
		t.Fatal(err)
	}
	p.refused("no broker is left")
	eventually(t, "the API to say that it is not ready", func() error {
		status, b, err := p.api.Call(t.Context(), http.MethodGet, "/readyz")
		if err == nil && status != http.StatusServiceUnavailable {
			err = fmt.Errorf("%d %s", status, b)
		}
		return err
	})
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var starting sync.WaitGroup
	for node := 1; node <= k.Nodes(); node++ {
		starting.Go(func() { // at once: a node alone finds no quorum
			if err := k.Start(ctx, node); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	awaitInSync(t)
	t.Logf("the brokers were back after %s", time.Since(began).Round(10*time.Millisecond))
	began = time.Now()
	l.await(20)
	t.Logf("the load went on %s later", time.Since(began).Round(10*time.Millisecond))
	m := l.end()
	// A 503 promises nothing, not even that the document was lost.
	p.delete(refusedDocument, "clean")
	m.text[refusedDocument], m.last[refusedDocument] = "", "clean"
	p.check(m)
}

// refusedDocument is what is submitted while nothing can be promised.
const refusedDocument = "refused"

// refused: a submission is answered with 503, in time, and not with a promise.
func (p *pods) refused(when string) {
	p.t.Helper()
	began := time.Now()
	status, b, err := p.try(http.MethodPost, "/ingest", fmt.Sprint("refused-", began.UnixNano()), []byte(`{"id":"`+refusedDocument+`","text":"It must not be promised."}`))
	if err != nil || status != http.StatusServiceUnavailable {
		p.t.Errorf("%s: a submission was answered %d %s (%v)", when, status, b, err)
	}
	p.t.Logf("%s: 503 after %s", when, time.Since(began).Round(10*time.Millisecond))
}

// A broker hangs for 30 s: the others go on without it.
func TestBrokerPaused(t *testing.T) {
	needAll(t)
	k := needKillable(t, 3)
	p := newPods(t, "paused")
	p.runAll()
	l := p.startLoad(40, 20*time.Millisecond)
	l.await(40)
	node := leader(t, "paused.documents")
	if err := k.Pause(node); err != nil {
		t.Fatal(err)
	}
	over := time.After(30 * time.Second)
	began := time.Now()
	l.await(20)
	t.Logf("accepted again %s after the broker began to hang", time.Since(began).Round(10*time.Millisecond))
	select {
	case <-over:
		t.Error("nothing was accepted while one broker of three hung")
	default:
		<-over
	}
	before := l.sent.Load()
	if err := k.Resume(node); err != nil {
		t.Fatal(err)
	}
	awaitInSync(t)
	t.Logf("%d changes were accepted in all while it hung", before)
	p.check(l.end())
}

// The roles are separate processes, and each is killed in turn under load.
func TestEachRoleKilledInTurn(t *testing.T) {
	needAll(t)
	p := newPods(t, "roles")
	p.run("api", "api")
	running := map[string]*process{}
	for _, role := range workers {
		running[role] = p.run(role, role)
	}
	p.waitReady()
	l := p.startLoad(30, 20*time.Millisecond)
	for _, role := range workers {
		l.await(30)
		p.restart(running[role])
		l.await(20)
	}
	p.check(l.end())
}
