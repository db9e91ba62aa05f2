package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// chaosSeeds are those of the ordinary run.
var chaosSeeds = []uint64{1, 2, 3}

// Row 25: two or three faults of a seed's choice at once, round after round, while documents change. The same seed makes
// the same schedule. E2E_SEEDS is a number of seeds, from E2E_SEED_FROM (1) on; make chaos sets them.
func TestChaos(t *testing.T) {
	seeds, rounds := chaosSeeds, 2
	if n, err := strconv.Atoi(os.Getenv("E2E_SEEDS")); err == nil {
		from := uint64(1)
		if f, err := strconv.ParseUint(os.Getenv("E2E_SEED_FROM"), 10, 64); err == nil {
			from = f
		}
		seeds, rounds = nil, 3
		for i := range n {
			seeds = append(seeds, from+uint64(i))
		}
	} else {
		t.Logf("%d fixed seeds of %d rounds; 'make chaos SEEDS=n' runs more", len(seeds), rounds)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { chaos(t, seed, rounds) })
	}
}

func chaos(t *testing.T, seed uint64, rounds int) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("CHAOS: seed %d failed. Run it again: make chaos SEED=%d", seed, seed)
		}
	})
	c := newChaos(t, seed, 0)
	schedule := rand.New(rand.NewPCG(seed, 25))
	happened := 0
	for round := range rounds {
		plan := c.plan(schedule, c.kinds())
		var names []string
		for _, a := range plan {
			names = append(names, a.name)
		}
		t.Logf("seed %d, round %d: %s", seed, round, strings.Join(names, " + "))
		happened += c.play(plan)
	}
	c.calm()
	if happened == 0 {
		t.Error("no fault happened: nothing was tested")
	}
	c.w.check()
}

// chaotic is a world whose processes are started again by a supervisor whenever they end.
type chaotic struct {
	t       *testing.T
	w       *world
	gateway *supervised
	workers []*supervised // that faults are done to
	stop    func()
	ending  context.CancelFunc
	guards  sync.WaitGroup
}

// supervised is a process that is launched again when it has ended. Who holds the lock does what he wants with it first.
type supervised struct {
	*process
	hold sync.Mutex
}

// newChaos starts an API and two workers, of which so many are left in peace.
func newChaos(t *testing.T, seed uint64, steady int) *chaotic {
	t.Helper()
	w := newWorld(t, worldOptions{seed: seed, read: readChaos})
	c := &chaotic{t: t, w: w}
	ctx, cancel := context.WithCancel(t.Context())
	c.ending = cancel
	c.gateway = c.supervise(ctx, w.start("api", "api"))
	for i := range 2 {
		p := c.supervise(ctx, w.start(fmt.Sprintf("worker-%d", i), workers...))
		if i >= steady {
			c.workers = append(c.workers, p)
		}
	}
	t.Cleanup(func() {
		cancel()
		c.guards.Wait()
	})
	w.api.waitReady()
	w.watch()
	c.stop = w.changing(15, 60*time.Millisecond)
	t.Cleanup(func() { c.stop() })
	return c
}

func (c *chaotic) supervise(ctx context.Context, p *process) *supervised {
	s := &supervised{process: p}
	c.guards.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.ended():
			}
			s.hold.Lock()
			if ctx.Err() == nil && !s.running() {
				s.launch()
			}
			s.hold.Unlock()
			select { // as patient as a supervisor is, and no more
			case <-ctx.Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return s
}

// calm ends the changes and every fault that may still be waiting to happen.
func (c *chaotic) calm() {
	c.stop()
	for _, p := range append([]*supervised{c.gateway}, c.workers...) {
		p.setEnv("FAULT_POINT", "")
		p.kill(syscall.SIGCONT)
	}
	c.w.embedder.Clear()
	c.w.over()
}

// action is one fault: begin does it, end undoes it and says how often it happened.
type action struct {
	name  string
	after time.Duration // from the start of the round
	lasts time.Duration
	begin func()
	end   func() int
}

// play does all faults of a round, each in its time, and returns how many happened.
func (c *chaotic) play(plan []action) (happened int) {
	c.t.Helper()
	var mu sync.Mutex
	var playing sync.WaitGroup
	for _, a := range plan {
		playing.Go(func() {
			pause(a.after)
			a.begin()
			pause(a.lasts)
			n := a.end()
			mu.Lock()
			defer mu.Unlock()
			c.t.Logf("  %s happened %d times", a.name, n)
			if n > 0 {
				happened++
			}
		})
	}
	playing.Wait()
	return happened
}

// plan chooses two or three faults of different kinds. All choices are made here, so that a seed is a schedule.
func (c *chaotic) plan(r *rand.Rand, kinds []kind) (plan []action) {
	chosen, exclusive := map[int]bool{}, false
	for len(plan) < 2+r.IntN(2) {
		i := r.IntN(len(kinds))
		if chosen[i] || exclusive && kinds[i].alone {
			continue
		}
		chosen[i] = true
		exclusive = exclusive || kinds[i].alone
		a := kinds[i].make(r)
		a.after = time.Duration(r.IntN(1500)) * time.Millisecond
		if a.lasts == 0 {
			a.lasts = time.Duration(1000+r.IntN(3000)) * time.Millisecond
		}
		plan = append(plan, a)
	}
	return plan
}
