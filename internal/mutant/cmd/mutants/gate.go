package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/internal/mutant"
)

// entry is a mutant with the commands that ought to catch it: the fastest first, and behind it, if any, those that look
// from further outside.
type entry struct {
	name    mutant.Name
	what    string // is wrong, in a few words
	catches []command
	outside []command // scenarios of real processes that see it too
}

// fromOutside leaves the entries that scenarios of real processes see, with these as their commands.
func fromOutside(all []entry) (seen []entry) {
	for _, e := range all {
		if len(e.outside) > 0 {
			seen = append(seen, entry{name: e.name, what: e.what, catches: e.outside})
		}
	}
	return seen
}

// named returns the entries of a comma-separated list, in its order.
func named(all []entry, names string) (chosen []entry, err error) {
	for name := range strings.SplitSeq(names, ",") {
		found := false
		for _, e := range all {
			if string(e.name) == strings.TrimSpace(name) {
				chosen, found = append(chosen, e), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%w: there is no mutant %q; -list names them", errUsage, name)
		}
	}
	return chosen, nil
}

// rotated returns n neighbours of all, at a place that the commit decides: after many commits each has been tried.
func rotated(all []entry, n int, commit string) (chosen []entry) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(commit)) // never fails
	first := int(h.Sum32() % uint32(len(all)))
	for i := range min(n, len(all)) {
		chosen = append(chosen, all[(first+i)%len(all)])
	}
	return chosen
}

// gate tries mutants.
type gate struct {
	out     io.Writer
	options options
	execute func(ctx context.Context, c command, m mutant.Name) report
	close   func()            // removes what execute has left
	sound   map[string]report // what the ordinary build says, by command
}

func newGate(out io.Writer, o options) *gate {
	tests := &goTest{limit: o.limit}
	return &gate{out: out, options: o, execute: tests.run, close: tests.close, sound: map[string]report{}}
}

// result is what became of a mutant; err is nil if it was caught.
type result struct {
	entry  entry
	caught []catch // the first one decides; the others are there if all commands were asked for
	err    error
}

type catch struct {
	by     command
	report report
}

var errSurvived = errors.New("SURVIVED")

func (g *gate) run(ctx context.Context, entries []entry) error {
	defer g.close()
	start := time.Now()
	var results []result
	missed := 0
	for _, e := range entries {
		r := g.try(ctx, e)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: %w", ctx.Err())
		}
		results = append(results, r)
		g.tell(r)
		if r.err != nil {
			missed++
		}
	}
	fmt.Fprintf(g.out, "%d of %d mutants caught, in %s\n", len(results)-missed, len(results), time.Since(start).Round(time.Second))
	var err error
	if missed > 0 {
		err = fmt.Errorf("%d mutants were not caught", missed)
	}
	if g.options.write == "" {
		return err
	}
	all := catalogue()
	if g.options.outside {
		all = fromOutside(all)
	}
	return errors.Join(err, writeTable(g.options.write, g.options.outside, results, all))
}

// try runs the commands of a mutant until one catches it.
func (g *gate) try(ctx context.Context, e entry) result {
	r := result{entry: e, err: errSurvived}
	for _, c := range e.catches {
		if err := g.ordinary(ctx, c); err != nil {
			r.err = err
			return r
		}
		report := g.execute(ctx, c, e.name)
		switch report.outcome {
		case failed:
			r.caught, r.err = append(r.caught, catch{c, report}), nil
		case passed:
			if g.options.all {
				r.err = fmt.Errorf("%w: %s does not notice it", errSurvived, c)
				return r
			}
		case broken:
			r.err = fmt.Errorf("%s cannot be judged: %s", c, report.says)
			return r
		}
		if r.err == nil && !g.options.all {
			break
		}
	}
	return r
}

// ordinary is nil if the command passes without a mutant: else its failure would say nothing about one.
func (g *gate) ordinary(ctx context.Context, c command) error {
	report, known := g.sound[c.String()]
	if !known {
		report = g.execute(ctx, c, "")
		g.sound[c.String()] = report
	}
	switch report.outcome {
	case failed:
		return fmt.Errorf("%s fails without a mutant too: %s", c, report.says)
	case broken:
		return fmt.Errorf("%s cannot be judged, without a mutant: %s", c, report.says)
	}
	return nil
}

func (g *gate) tell(r result) {
	if r.err != nil {
		fmt.Fprintf(g.out, "%-24s !!! %v\n", r.entry.name, r.err)
		return
	}
	for _, c := range r.caught {
		fmt.Fprintf(g.out, "%-24s caught in %6.1fs by %s %s: %s\n", r.entry.name, c.report.took.Seconds(), c.by.pkg, few(c.report.tests), c.report.says)
	}
}

func list(out io.Writer, entries []entry) {
	for _, e := range entries {
		fmt.Fprintf(out, "%-24s %s\n", e.name, e.what)
		for _, c := range append(slices.Clone(e.catches), e.outside...) {
			fmt.Fprintf(out, "%-24s   %s\n", "", c)
		}
	}
}
