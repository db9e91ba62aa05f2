package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/e2e/checker"
)

// A long run under changes and faults: one worker and the API live through all of it, the other worker suffers. At every
// quiet point everything must be done, and the two must not hold more than they did at first (I9). make soak sets
// E2E_SOAK_MINUTES and E2E_SEED_FROM.
func TestSoak(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv("E2E_SOAK_MINUTES"), 64)
	if err != nil {
		t.Skip("NOT RUN: it takes as long as it is told; 'make soak MINUTES=n' runs it")
	}
	seed := uint64(time.Now().UnixNano() % 1_000_000)
	if from, err := strconv.ParseUint(os.Getenv("E2E_SEED_FROM"), 10, 64); err == nil {
		seed = from
	}
	t.Logf("soak: %.1f minutes of seed %d; make soak MINUTES=%g SEED=%d runs it again", minutes, seed, minutes, seed)
	end := time.Now().Add(time.Duration(minutes * float64(time.Minute)))
	c := newChaos(t, seed, 1)
	schedule := rand.New(rand.NewPCG(seed, 26))
	s := soak{c: c}
	for cycle := 0; cycle == 0 || time.Now().Before(end); cycle++ {
		for range 4 {
			plan := c.plan(schedule, c.survivable())
			var names []string
			for _, a := range plan {
				names = append(names, a.name)
			}
			t.Logf("cycle %d: %s", cycle, strings.Join(names, " + "))
			c.play(plan)
		}
		c.calm()
		c.w.settle()
		s.measure(cycle)
		if t.Failed() {
			break
		}
		c.stop = c.w.changing(15, 60*time.Millisecond)
	}
	c.calm()
	c.w.check()
	if s.measured == 0 {
		t.Error("nothing was measured")
	}
}

// soak remembers what the long-lived processes held once they were warm.
type soak struct {
	c        *chaotic
	warm     map[string]checker.Usage
	measured int
}

// warmUp is the number of cycles after which a process holds what it needs.
const warmUp = 2

func (s *soak) measure(cycle int) {
	t := s.c.t
	t.Helper()
	if s.warm == nil {
		s.warm = map[string]checker.Usage{}
	}
	for _, p := range s.c.w.procs {
		if p.name == "worker-1" {
			continue
		}
		u, err := checker.API{Base: "http://" + p.monitor, Client: s.c.w.checkerAPI().Client}.Usage(t.Context())
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		t.Logf("I9: cycle %d: %s holds %.0f MB, %.0f files, %.0f goroutines", cycle, p.name, u.MemoryMB, u.Files, u.Goroutines)
		s.measured++
		if cycle < warmUp {
			s.warm[p.name] = u
			continue
		}
		w := s.warm[p.name]
		limit := checker.Usage{MemoryMB: 1.5*w.MemoryMB + 150, Files: 1.25*w.Files + 40, Goroutines: 1.25*w.Goroutines + 60}
		if err := u.Exceeds(limit); err != nil {
			t.Errorf("%s, which held %+v when it was warm: %v", p.name, w, err)
		}
	}
}

// survivable are the faults that leave the API and the first worker alive.
func (c *chaotic) survivable() []kind {
	return []kind{
		{make: c.killed}, {make: c.stopped}, {make: c.stoppedAtPoint}, {make: c.ended}, {make: c.stateLost}, {make: c.stateDamaged},
		{make: c.embedderFails}, {make: c.embedderFails}, {make: c.poisoned}, {make: c.resent},
		{alone: true, make: c.appendsFail}, {alone: true, make: c.commitsFail}, {alone: true, make: c.lettersFail}, {alone: true, make: c.brokerRestarts},
	}
}
