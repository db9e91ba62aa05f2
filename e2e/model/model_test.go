package model

import (
	"fmt"
	"testing"
)

// first runs seeds until one violates a promise.
func first(c Cfg, from, n uint64) (uint64, string) {
	for seed := from; seed < from+n; seed++ {
		c.Seed = seed
		if v := New(c).Run(); v != "" {
			return seed, v
		}
	}
	return 0, ""
}

func TestTheProtocolKeepsItsPromises(t *testing.T) {
	for _, c := range []Cfg{{}, {Keep: 2}} {
		t.Run(fmt.Sprintf("keep %d", c.Keep), func(t *testing.T) {
			t.Parallel()
			if seed, v := first(c, 1, 120); v != "" {
				t.Errorf("seed %d: %s", seed, v)
			}
		})
	}
}

func TestASeedIsARun(t *testing.T) {
	a, b := New(Cfg{Seed: 5, Trace: true}), New(Cfg{Seed: 5, Trace: true})
	a.Run()
	b.Run()
	if a.Story() != b.Story() || a.Story() == "" {
		t.Error("a seed does not replay its run")
	}
}

func TestMutantsAreCaught(t *testing.T) {
	for _, m := range Mutants() {
		t.Run(string(m.Mutant), func(t *testing.T) {
			t.Parallel()
			if _, v := first(Cfg{Mutant: m.Mutant}, m.Seed, 1); v == "" {
				t.Errorf("survives seed %d", m.Seed)
			}
		})
	}
}

func TestHolesOpenAgain(t *testing.T) {
	for _, h := range Holes() {
		t.Run(fmt.Sprint(h.Unfix), func(t *testing.T) {
			t.Parallel()
			if _, v := first(Cfg{Unfix: h.Unfix, Keep: h.Keep}, h.Seed, 1); v == "" {
				t.Errorf("seed %d does not show it", h.Seed)
			}
		})
	}
}

func TestScenarios(t *testing.T) {
	for _, sc := range Scenarios() {
		t.Run(string(sc.Hole), func(t *testing.T) {
			t.Parallel()
			seed, v := first(Cfg{Unfix: []Hole{sc.Hole}, Keep: sc.Keep, Events: sc.Events, NoAssert: true}, 1, 1500) // a promise breaks, not only an assertion
			if v == "" {
				t.Error("the hole does not show")
			}
			t.Logf("open, seed %d: %s", seed, v)
			if seed, v := first(Cfg{Keep: sc.Keep, Events: sc.Events}, 1, 60); v != "" {
				t.Errorf("closed, seed %d: %s", seed, v)
			}
		})
	}
}

func TestShrinkKeepsTheViolation(t *testing.T) {
	c := Cfg{Seed: 1, Mutant: MutNewestOffset}
	v := New(c).Run()
	small, story := Shrink(c, v, 300)
	if again := New(small).Run(); Kind(again) != Kind(v) || len(small.Events) >= len(makeSchedule(c)) || story == "" {
		t.Errorf("%q shrunk to %d events and %q", v, len(small.Events), again)
	}
}
