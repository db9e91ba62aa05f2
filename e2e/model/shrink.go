package model

import "strings"

// Steps is how many steps the run took.
func (s *Sim) Steps() int { return s.now }

// Story is the trace of a run with Cfg.Trace.
func (s *Sim) Story() string { return strings.Join(s.trace, "\n") }

// Seen counts what happened in the run, by name: faults above all.
func (s *Sim) Seen() map[string]int { return s.seen }

// Kind is the class of a violation: the text up to the first colon.
func Kind(v string) string { k, _, _ := strings.Cut(v, ":"); return k }

// interleavings is how many orders of the same schedule Shrink tries.
const interleavings = 60

// Shrink removes events from the schedule of a failing run as long as one of some interleavings still fails in the same
// way, in at most so many runs. It returns the smallest run, and its story.
func Shrink(cfg Cfg, violation string, runs int) (Cfg, string) {
	if cfg.Events == nil {
		cfg.Events = makeSchedule(cfg)
	}
	try := func(evs []Ev) (Cfg, bool) {
		for i := range uint64(interleavings) {
			c := cfg
			c.Events = evs
			if i > 0 {
				c.Seed = cfg.Seed*1000 + i
			}
			if runs--; runs < 0 {
				break
			}
			if Kind(New(c).Run()) == Kind(violation) {
				return c, true
			}
		}
		return cfg, false
	}
	for size := max(1, len(cfg.Events)/2); size >= 1 && runs > 0; {
		smaller := false
		for i := 0; i+size <= len(cfg.Events) && size < len(cfg.Events); {
			evs := append(append([]Ev{}, cfg.Events[:i]...), cfg.Events[i+size:]...)
			if c, ok := try(evs); ok {
				cfg, smaller = c, true
			} else {
				i += size
			}
		}
		if size == 1 && !smaller {
			break
		}
		size = max(1, size/2)
	}
	cfg.Trace = true
	s := New(cfg)
	s.Run()
	return cfg, s.Story() + "\n"
}
