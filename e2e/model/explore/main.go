// Command explore runs the model over many seeds: as the protocol is, with a mutant, with holes open or rules left out. It
// shrinks what fails and prints its story.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/waymarkhq/waymark/e2e/model"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// explorer is one call of the command.
type explorer struct {
	out     io.Writer
	cfg     model.Cfg
	from, n uint64
	limit   time.Duration
	all     bool
	shrink  bool
	trace   bool
}

func run(args []string, stdout io.Writer) error {
	e := explorer{out: stdout}
	fs := flag.NewFlagSet("explore", flag.ContinueOnError)
	fs.Uint64Var(&e.from, "from", 1, "first seed")
	fs.Uint64Var(&e.n, "n", 1000, "number of seeds")
	fs.DurationVar(&e.limit, "t", 25*time.Second, "time limit, of each line of a table")
	fs.BoolVar(&e.all, "all", false, "go on after a failure, and count the kinds")
	fs.BoolVar(&e.shrink, "shrink", false, "shrink the first failure and print its story")
	fs.BoolVar(&e.trace, "trace", false, "print the story of the first failure")
	fs.IntVar(&e.cfg.Keep, "keep", 0, "message ids remembered per document (0: all)")
	fs.BoolVar(&e.cfg.NoAssert, "noassert", false, "check promises only, not the model's own assertions")
	mutant := fs.String("mutant", "", "mutant to bring back")
	unfix := fs.String("unfix", "", "holes to open again, as H1,H4 (all: every one)")
	drop := fs.String("drop", "", "rules to leave out")
	table := fs.String("table", "", "mutants, holes or rules: run each until it is caught")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var err error
	if e.cfg.Mutant, err = model.ParseMutant(*mutant); err != nil {
		return err
	}
	if e.cfg.Unfix, err = model.ParseHoles(*unfix); err != nil {
		return err
	}
	if e.cfg.Drop, err = model.ParseRules(*drop); err != nil {
		return err
	}
	switch *table {
	case "":
		return e.seeds()
	case "mutants":
		for _, m := range model.Mutants() {
			e.line(string(m.Mutant), func(c *model.Cfg) { c.Mutant = m.Mutant })
		}
	case "holes":
		for _, h := range model.Holes() {
			e.line(fmt.Sprint(h.Unfix), func(c *model.Cfg) { c.Unfix, c.Keep = h.Unfix, h.Keep })
		}
	case "rules":
		for _, r := range model.Rules() {
			e.line(string(r), func(c *model.Cfg) { c.Drop = append([]model.Rule{r}, c.Drop...) })
		}
	default:
		return fmt.Errorf("there is no table %q: mutants, holes or rules", *table)
	}
	return nil
}

// line of a table: how many seeds until a violation, and which.
func (e *explorer) line(name string, change func(*model.Cfg)) {
	c, start, steps, v := e.cfg, time.Now(), 0, ""
	change(&c)
	seed := e.from
	for ; v == "" && seed < e.from+e.n && time.Since(start) < e.limit; seed++ {
		c.Seed = seed
		s := model.New(c)
		v = s.Run()
		steps += s.Steps()
	}
	fmt.Fprintf(e.out, "| %s | %d | %d | %s |\n", name, seed-e.from, steps, v)
}

// seeds runs one configuration and reports every failure, or the first.
func (e *explorer) seeds() error {
	start, runs, steps, fails := time.Now(), 0, 0, 0
	kinds, seen := map[string]int{}, map[string]int{}
	for seed := e.from; seed < e.from+e.n && time.Since(start) < e.limit; seed++ {
		c := e.cfg
		c.Seed = seed
		s := model.New(c)
		v := s.Run()
		runs++
		steps += s.Steps()
		for k, n := range s.Seen() {
			seen[k] += n
		}
		if v == "" {
			continue
		}
		fails++
		kinds[model.Kind(v)]++
		if fails <= 5 {
			fmt.Fprintf(e.out, "seed %d: %s\n", seed, v)
		}
		if fails == 1 {
			e.tell(c, v)
		}
		if !e.all {
			break
		}
	}
	fmt.Fprintf(e.out, "%d runs, %d steps, %d failed %v, %.1fs; seen %v\n", runs, steps, fails, kinds, time.Since(start).Seconds(), seen)
	if fails > 0 {
		return fmt.Errorf("%d of %d runs broke a promise", fails, runs)
	}
	return nil
}

// tell prints the story of a failure.
func (e *explorer) tell(c model.Cfg, violation string) {
	if e.shrink {
		small, story := model.Shrink(c, violation, 20_000)
		fmt.Fprintf(e.out, "shrunk to %d events: %v\n%s", len(small.Events), small.Events, story)
	}
	if e.trace {
		c.Trace = true
		s := model.New(c)
		s.Run()
		fmt.Fprintln(e.out, s.Story())
	}
}
