package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/e2e/checker"
)

// pods are roles as separate processes on one embedded broker and one SQLite file.
type pods struct {
	t      testing.TB
	bin    string
	dir    string
	broker string // host:port, or several with commas between them
	prefix string // of the topics
	apiAt  string
	env    []string
	api    api

	objects func(context.Context) (map[string][]checker.Object, error) // of a store that is not a file
}

func newPods(t testing.TB, env ...string) *pods {
	t.Helper()
	p := &pods{t: t, bin: binary, dir: t.TempDir(), broker: freeAddress(t), prefix: "waymark", apiAt: freeAddress(t)}
	p.env = append([]string{"WAYMARK_KAFKA_BROKERS=" + p.broker, "WAYMARK_STORE_PATH=" + p.dir + "/store.db", "WAYMARK_DELIVERY_BACKOFF_INITIAL=200ms"}, env...)
	p.api = api{t, "http://" + p.apiAt}
	return p
}

func (p *pods) topic(name string) string { return p.prefix + "." + name }

// startBroker starts an embedded broker as a process, or makes topics on the servers that are given, and returns nil.
func (p *pods) startBroker() *process {
	if g, ok := given(); ok {
		p.use(g, partitionsOfBroker)
		return nil
	}
	b := start(p.t, "broker", nil, "broker", "--data-dir", p.dir+"/broker", "--broker.listen", p.broker)
	eventually(p.t, "the broker", func() error { return dial(p.broker) })
	return b
}

func (p *pods) run(name string, roles ...string) *process {
	args := append([]string{"run"}, roles...)
	args = append(args, "--data-dir", p.dir+"/"+name, "--api.listen", p.apiAt)
	monitor := p.apiAt
	if !slices.Contains(roles, "api") {
		monitor = freeAddress(p.t)
		args = append(args, "--monitor.listen", monitor)
	}
	pod := startBinary(p.t, p.bin, name, append(slices.Clone(p.env), "FAULT_TRACE="+p.dir+"/"+name+".trace"), args...)
	pod.monitor = monitor
	return pod
}

var workers = []string{"chunker", "embedder", "indexer", "tracker", "deadletters"}

// A hundred articles flow while the worker is killed ten times: each is indexed, once and whole.
func TestHundredArticlesSurviveTenKills(t *testing.T) {
	p := newPods(t)
	p.startBroker()
	p.run("api", "api")
	worker := p.run("worker", workers...)
	p.api.waitReady()

	docs := articles(t, 100)
	var sending sync.WaitGroup
	sending.Go(func() {
		for _, d := range docs {
			p.api.ingest(d)
			pause(30 * time.Millisecond)
		}
	})
	kills := 0
	for ; kills < 10; kills++ {
		pause(time.Duration(300+rand.IntN(900)) * time.Millisecond)
		worker.restart()
	}
	sending.Wait()
	if kills != 10 {
		t.Fatalf("%d kills", kills)
	}
	for _, d := range docs {
		if s := p.api.final(d.MessageID, d.ID); s.Status != "indexed" {
			t.Errorf("%s is %s (%+v)", d.ID, s.Status, s.Error)
		}
	}
	total := 0
	for _, d := range docs {
		hits := p.api.served(d.ID)
		total += len(hits)
		if err := checkServed(d.ID, d.Text, hits); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "the store to hold exactly what is served", func() error { return p.stored(total) })

	// The same messages once more change nothing, and are recognised.
	before := p.stats()
	for _, d := range docs {
		p.api.ingest(d)
	}
	eventually(t, "the duplicates to be counted", func() error {
		if n := p.stats().Lag["chunker"]; n != 0 {
			return fmt.Errorf("lag %d", n)
		}
		return nil
	})
	after := p.stats()
	if fmt.Sprint(before.Documents, before.Store) != fmt.Sprint(after.Documents, after.Store) {
		t.Errorf("the duplicates changed %v %v to %v %v", before.Documents, before.Store, after.Documents, after.Store)
	}
	for _, d := range docs {
		if s := p.api.final(d.MessageID, d.ID); s.Status != "indexed" {
			t.Errorf("after it was sent again %s is %s", d.ID, s.Status)
		}
	}
}

type stats struct {
	Documents   map[string]int64 `json:"documents"`
	DeadLetters map[string]int64 `json:"dead_letters"`
	Lag         map[string]int64 `json:"lag"`
	Store       struct {
		Chunks int64 `json:"chunks"`
	} `json:"store"`
}

func (p *pods) stats() stats {
	var s stats
	p.api.get("/v1/stats", &s)
	return s
}

func (p *pods) stored(want int) error {
	if got := p.stats().Store.Chunks; got != int64(want) {
		return fmt.Errorf("the store has %d chunks, served are %d", got, want)
	}
	return nil
}
