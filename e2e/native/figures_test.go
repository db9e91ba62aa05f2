package native

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waymarkhq/waymark/rag/wire"
)

// finals watches the events topic for the ends of submissions.
type finals struct {
	stop func()
	mu   sync.Mutex
	at   map[string]time.Time // by message id
	all  []time.Time
}

func (p *pods) watchFinals() *finals {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	c := kafkaClient(p.t, kgo.ConsumeTopics(p.name+".events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()), kgo.FetchMaxWait(20*time.Millisecond))
	f := &finals{at: map[string]time.Time{}}
	codecs := wire.NewCodecs(time.Now)
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			c.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				e, err := codecs.Event.Decode(r.Value)
				if err != nil {
					p.t.Errorf("an event: %v", err)
					return
				}
				if s := string(e.Status); s != "indexed" && s != "unchanged" && s != "superseded" && s != "deleted" && s != "dead" {
					return
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				if f.at[e.MessageID].IsZero() {
					f.at[e.MessageID] = time.Now()
					f.all = append(f.all, time.Now())
				}
			})
		}
	})
	f.stop = func() { cancel(); done.Wait() }
	p.t.Cleanup(f.stop)
	return f
}

// longestGap is the longest time without an end, from a moment on until now.
func (f *finals) longestGap(from time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	longest, last := time.Duration(0), from
	for _, t := range f.all {
		if t.After(from) {
			longest, last = max(longest, t.Sub(last)), t
		}
	}
	return max(longest, time.Since(last))
}

// spread is what the figures tell of durations.
func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "nothing was measured"
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[int(q*float64(len(d)-1))].Round(time.Millisecond) }
	return fmt.Sprintf("n=%d, p50 %s, p99 %s, worst %s", len(d), at(0.5), at(0.99), at(1))
}

// The longest time without the end of a submission when a broker is killed, and when a process joins, leaves, or dies.
func TestFiguresOfStalls(t *testing.T) {
	needAll(t)
	k := needKillable(t, 3)
	p := newPods(t, "stalls")
	p.runAll()
	f := p.watchFinals()
	l := p.startLoad(60, 15*time.Millisecond)
	l.await(100)
	var quiet, broker, joins, leaves, deaths []time.Duration
	measure := func(into *[]time.Duration, do func()) {
		from := time.Now()
		do()
		l.await(150)
		*into = append(*into, f.longestGap(from))
	}
	for range 5 {
		measure(&quiet, func() {})
	}
	for range 10 {
		node := leader(t, "stalls.documents")
		measure(&broker, func() {
			if err := k.Kill(node); err != nil {
				t.Error(err)
			}
		})
		startNode(t, k, node)
		awaitInSync(t)
	}
	second := p.run("second", workers...)
	for range 5 {
		measure(&joins, func() { pause(3 * time.Second) })
		measure(&leaves, func() { second.signal(syscall.SIGTERM) })
		if err := second.launch(); err != nil {
			t.Fatal(err)
		}
		measure(&joins, func() { pause(3 * time.Second) })
		measure(&deaths, func() { p.restart(second) })
	}
	t.Logf("the longest time without an end, of a load that makes one every 15 ms or so (%s):", p.patience())
	t.Logf("  undisturbed: %s", spread(quiet))
	t.Logf("  the leader of the documents killed: %s", spread(broker))
	t.Logf("  a second process joins: %s", spread(joins))
	t.Logf("  it is asked to end: %s", spread(leaves))
	t.Logf("  it is killed and started again: %s", spread(deaths))
	p.check(l.end())
}

// The rate that the pipeline bears, and how long a document takes at half of it.
func TestFiguresOfLatency(t *testing.T) {
	needAll(t)
	needWeaviate(t)
	p := newPods(t, "latency")
	p.runAll()
	f := p.watchFinals()
	ended := func(n int) func() error {
		return func() error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.all) < n {
				return fmt.Errorf("%d of %d have ended", len(f.all), n)
			}
			return nil
		}
	}
	const warm, most = 200, 2000
	for from := 0; from < warm; from += 50 {
		p.ingestBatch(from, 50)
	}
	eventually(t, "the first documents to end", ended(warm))
	began := time.Now()
	for from := warm; from < warm+most; from += 50 {
		p.ingestBatch(from, 50)
	}
	eventually(t, "all documents to end", ended(warm+most))
	rate := most / time.Since(began).Seconds()
	t.Logf("at most %.0f documents/s, each one chunk", rate)

	every := time.Duration(float64(time.Second) / (rate / 2))
	const seconds = 30
	sent := map[string]time.Time{}
	var mu sync.Mutex
	var sending sync.WaitGroup
	slots := make(chan struct{}, 64)
	tick := time.NewTicker(every)
	defer tick.Stop()
	count := int(rate / 2 * seconds)
	for i := range count {
		<-tick.C
		id := fmt.Sprintf("half-%d", i)
		mu.Lock()
		sent[id] = time.Now()
		mu.Unlock()
		slots <- struct{}{}
		sending.Go(func() {
			defer func() { <-slots }()
			p.ingest(article{id, "This is a short document, number " + id + ", and it says nothing that another one has said.", id})
		})
	}
	sending.Wait()
	eventually(t, "all documents to end", ended(warm+most+count))
	f.mu.Lock()
	defer f.mu.Unlock()
	var took []time.Duration
	for id, at := range sent {
		took = append(took, f.at[id].Sub(at))
	}
	t.Logf("at %.0f documents/s, from the request to the event of its end: %s", rate/2, spread(took))
}
