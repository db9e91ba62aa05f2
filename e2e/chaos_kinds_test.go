package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
)

// kind is one way to do harm. Of those that stand alone there is at most one in a round: they use the broker's faults, or
// take the broker away.
type kind struct {
	alone bool
	make  func(r *rand.Rand) action
}

func (c *chaotic) kinds() []kind {
	return []kind{
		{make: c.killed}, {make: c.killed}, {make: c.killedAtPoint}, {make: c.killedAtPoint}, {make: c.stopped}, {make: c.stoppedAtPoint},
		{make: c.ended}, {make: c.gatewayKilled}, {make: c.stateLost}, {make: c.stateDamaged}, {make: c.clockOff}, {make: c.embedderFails},
		{make: c.embedderFails}, {make: c.poisoned}, {make: c.parserBreaks}, {make: c.resent},
		{alone: true, make: c.appendsFail}, {alone: true, make: c.commitsFail}, {alone: true, make: c.lettersFail}, {alone: true, make: c.brokerRestarts},
	}
}

// readChaos is the JSON of the API; what the parser breaks on, and what is poison, dies.
func readChaos(r *kgo.Record) checker.Meaning { return readParser(r) }

func (c *chaotic) worker(r *rand.Rand) (*supervised, string) {
	i := r.IntN(len(c.workers))
	return c.workers[i], fmt.Sprintf("worker %d", i)
}

func once() int { return 1 }

func (c *chaotic) killed(r *rand.Rand) action {
	p, name := c.worker(r)
	return action{name: name + " is killed", begin: func() { p.kill(syscall.SIGKILL) }, end: once}
}

func (c *chaotic) gatewayKilled(r *rand.Rand) action {
	n := 1 + r.IntN(5)
	before := 0
	return action{
		name: fmt.Sprintf("the API is killed before its reply %d", n),
		begin: func() {
			before = c.w.happened(fault.BeforeReply)
			c.again(c.gateway, func() { c.gateway.setEnv("FAULT_POINT", fmt.Sprintf("%s:%d", fault.BeforeReply, n)) })
		},
		end: func() int {
			c.gateway.setEnv("FAULT_POINT", "")
			return c.w.happened(fault.BeforeReply) - before
		},
	}
}

// again kills a process, does something, and starts it again.
func (c *chaotic) again(p *supervised, meanwhile func()) {
	p.hold.Lock()
	defer p.hold.Unlock()
	p.kill(syscall.SIGKILL)
	meanwhile()
	p.launch()
}

func point(r *rand.Rand) (string, int) {
	points := fault.Points()
	for {
		if p := points[r.IntN(len(points))]; p != fault.BeforeReply && p != fault.BeforeLetter {
			return p, 1 + r.IntN(4)
		}
	}
}

func (c *chaotic) killedAtPoint(r *rand.Rand) action {
	p, name := c.worker(r)
	at, n := point(r)
	before := 0
	return action{
		name:  fmt.Sprintf("%s is killed at %s:%d", name, at, n),
		lasts: 6 * time.Second, // it has to join first
		begin: func() {
			before = c.w.happened(at)
			c.again(p, func() { p.setEnv("FAULT_POINT", fmt.Sprintf("%s:%d", at, n)) })
		},
		end: func() int {
			p.setEnv("FAULT_POINT", "")
			return c.w.happened(at) - before
		},
	}
}

// beyond is longer than a session lasts.
const beyond = 8 * time.Second

func (c *chaotic) stopped(r *rand.Rand) action {
	p, name := c.worker(r)
	return action{name: name + " is stopped for longer than its session", lasts: beyond,
		begin: func() { p.kill(syscall.SIGSTOP) }, end: func() int { p.kill(syscall.SIGCONT); return 1 }}
}

func (c *chaotic) stoppedAtPoint(r *rand.Rand) action {
	p, name := c.worker(r)
	at, n := point(r)
	before := 0
	return action{
		name:  fmt.Sprintf("%s is stopped at %s:%d", name, at, n),
		lasts: beyond + 2*time.Second,
		begin: func() {
			before = c.w.happened(at)
			c.again(p, func() { p.setEnv("FAULT_POINT", fmt.Sprintf("%s:%d:stop", at, n)) })
		},
		end: func() int {
			p.setEnv("FAULT_POINT", "")
			p.kill(syscall.SIGCONT)
			return c.w.happened(at) - before
		},
	}
}

func (c *chaotic) ended(r *rand.Rand) action {
	p, name := c.worker(r)
	return action{name: name + " is asked to end", begin: func() {
		p.hold.Lock()
		defer p.hold.Unlock()
		p.kill(syscall.SIGCONT) // one that is stopped cannot end
		p.kill(syscall.SIGTERM)
		p.launch()
	}, end: once}
}

func (c *chaotic) stateLost(r *rand.Rand) action {
	p, name := c.worker(r)
	return action{name: name + " loses its state", begin: func() {
		c.again(p, func() {
			if err := os.RemoveAll(c.w.dir + "/" + p.name); err != nil {
				c.t.Error(err)
			}
		})
	}, end: once}
}

func (c *chaotic) stateDamaged(r *rand.Rand) action {
	p, name := c.worker(r)
	n := 0
	return action{name: name + "'s state is damaged", begin: func() {
		c.again(p, func() {
			if folder := c.w.dir + "/" + p.name; exists(folder) { // another fault may have taken it away
				n = c.w.damage(folder, false)
			}
		})
	}, end: func() int { return n }}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func (c *chaotic) clockOff(r *rand.Rand) action {
	p, name := c.worker(r)
	seconds := 1 + r.IntN(7200)
	if seconds%2 == 0 { // what it plans is hours ahead of the others; behind them, what they plan is hours ahead of it
		seconds = -seconds
	}
	off := fmt.Sprintf("%ds", seconds)
	return action{name: name + "'s clock is off by " + off, begin: func() {
		c.again(p, func() { p.setEnv("FAULT_CLOCK", off) })
	}, end: func() int {
		c.again(p, func() { p.setEnv("FAULT_CLOCK", "") })
		return 1
	}}
}

func (c *chaotic) embedderFails(r *rand.Rand) action {
	faults := []embedtest.Fault{
		{Kind: embedtest.FaultStatus, Status: 429, RetryAfter: "2"}, {Kind: embedtest.FaultStatus, Status: 500}, {Kind: embedtest.FaultStatus, Status: 401},
		{Kind: embedtest.FaultHang}, {Kind: embedtest.FaultReset}, {Kind: embedtest.FaultGarbage}, {Kind: embedtest.FaultCut}, {Kind: embedtest.FaultShort},
		{Kind: embedtest.FaultReordered}, {Kind: embedtest.FaultDelay, Delay: 2 * time.Second},
	}
	f := faults[r.IntN(len(faults))]
	before := 0
	return action{
		name: fmt.Sprintf("the embedder answers with %s %d", f.Kind, f.Status),
		begin: func() {
			before = c.w.embedder.Stats().Faults[f.Kind]
			if err := c.w.embedder.Inject(f); err != nil {
				c.t.Error(err)
			}
		},
		end: func() int {
			c.w.embedder.Clear()
			return c.w.embedder.Stats().Faults[f.Kind] - before
		},
	}
}

func (c *chaotic) poisoned(r *rand.Rand) action {
	n := 1 + r.IntN(4)
	return action{name: fmt.Sprintf("%d records are poison", n), begin: func() {
		for range n {
			c.w.poison()
		}
	}, end: func() int { return n }}
}

func (c *chaotic) parserBreaks(r *rand.Rand) action {
	text, what := fault.PanicText, "parser-panic"
	if r.IntN(2) == 0 {
		text, what = fault.KillText, "parser-kill"
	}
	before := 0
	return action{name: "a document: " + what, begin: func() {
		before = c.w.happened(what)
		c.w.put(fmt.Sprintf("breaks-%d", c.w.intn(3)), c.w.text(2)+" "+text)
	}, end: func() int { return c.w.happened(what) - before }}
}

func (c *chaotic) resent(r *rand.Rand) action {
	n := 1 + r.IntN(20)
	return action{name: fmt.Sprintf("%d old messages are sent again", n), begin: func() {
		c.w.mu.Lock()
		old := append([][2]string(nil), c.w.submissions[:min(n, len(c.w.submissions))]...)
		c.w.mu.Unlock()
		for _, s := range old {
			if !strings.HasPrefix(s[0], "poison") {
				c.w.resend(s[0], s[1])
			}
		}
	}, end: func() int { return n }}
}

// brokerFault fails requests at the broker for a while.
func (c *chaotic) brokerFault(name string, f kfake.Fault) action {
	f.Count = -1
	var h *kfake.FaultHandle
	return action{name: name, begin: func() { h = c.w.cluster().Fault(f) }, end: func() int {
		h.Remove()
		return h.Hits()
	}}
}

func (c *chaotic) appendsFail(r *rand.Rand) action {
	topics := []string{"waymark.documents", "waymark.chunks", "waymark.vectors", "waymark.progress", "waymark.events", "waymark-chunker-table", "waymark-indexer-table"}
	errs := []*kerr.Error{kerr.NotEnoughReplicasAfterAppend, kerr.NotEnoughReplicas, kerr.NotLeaderForPartition, kerr.RequestTimedOut}
	f := kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topics[r.IntN(len(topics))], Err: errs[r.IntN(len(errs))]}
	return c.brokerFault(fmt.Sprintf("appends to %s are answered with %s", f.Topic, f.Err.Message), f)
}

func (c *chaotic) commitsFail(r *rand.Rand) action {
	errs := []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.UnknownMemberID, kerr.IllegalGeneration}
	keys := []kmsg.Key{kmsg.OffsetCommit, kmsg.Heartbeat}
	f := kfake.Fault{Keys: []kmsg.Key{keys[r.IntN(2)]}, Err: errs[r.IntN(len(errs))]}
	return c.brokerFault(fmt.Sprintf("%s is answered with %s", f.Keys[0].Name(), f.Err.Message), f)
}

func (c *chaotic) lettersFail(r *rand.Rand) action {
	a := c.brokerFault("letters are refused", kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "waymark.dead-letters", Err: kerr.TopicAuthorizationFailed})
	begin, n := a.begin, 1+r.IntN(3)
	a.begin = func() {
		begin()
		for range n {
			c.w.poison()
		}
	}
	return a
}

func (c *chaotic) brokerRestarts(*rand.Rand) action {
	var restarts atomic.Int32
	return action{name: "the broker is away", begin: func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := c.w.inside.Close(ctx); err != nil {
			c.t.Error(err)
		}
	}, end: func() int {
		c.w.startEmbedded()
		restarts.Add(1)
		return int(restarts.Load())
	}}
}
