// Command mutants is the mutation gate: it brings back each bug of the package mutant and shows which test notices. A test
// that notices nothing shows nothing when it passes.
//
// It runs in the root of the module. It ends with 0 when every mutant was caught, with 1 when one survived or could not be
// judged, and with 2 when it was called wrongly.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options of one call.
type options struct {
	only   string
	rotate int
	commit string
	all    bool
	// outside: what is asked is whether the end-to-end scenarios notice.
	outside bool
	limit   time.Duration
	write   string
	list    bool
}

var errUsage = errors.New("wrong usage")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var entries []entry
	if err == nil {
		entries, err = choose(ctx, o)
	}
	if err == nil && o.list {
		list(stdout, entries)
		return 0
	}
	if err == nil {
		err = newGate(stdout, o).run(ctx, entries)
	}
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "mutants:", err)
		return 2
	case err != nil:
		fmt.Fprintln(stderr, "mutants:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("mutants", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.only, "only", "", "mutants to try, separated by commas; all of them if empty")
	fs.IntVar(&o.rotate, "rotate", 0, "how many to try of all, beginning at one that the commit decides")
	fs.StringVar(&o.commit, "commit", "", "commit for -rotate; the one that is checked out if empty")
	fs.BoolVar(&o.all, "all", false, "run every command of a mutant, not only up to the first that catches it")
	fs.BoolVar(&o.outside, "outside", false, "ask the end-to-end scenarios instead, of the mutants that they can see: minutes for each")
	fs.DurationVar(&o.limit, "limit", 0, "time limit of the tests of one command, without building them (90s, 8m with -outside)")
	fs.StringVar(&o.write, "write", "", "file whose table is written again: the rows of the mutants that were tried")
	fs.BoolVar(&o.list, "list", false, "list the mutants and do nothing")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if o.limit == 0 {
		o.limit = 90 * time.Second
		if o.outside {
			o.limit = 8 * time.Minute
		}
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("%w: unexpected %q", errUsage, fs.Arg(0))
	case o.rotate < 0 || o.rotate > 0 && o.only != "":
		return o, fmt.Errorf("%w: -rotate is a number above 0, without -only", errUsage)
	case o.limit < 0:
		return o, fmt.Errorf("%w: -limit must be above 0", errUsage)
	}
	return o, nil
}

// choose returns the entries of the catalogue that are to be tried.
func choose(ctx context.Context, o options) ([]entry, error) {
	all := catalogue()
	if o.outside {
		all = fromOutside(all)
	}
	switch {
	case o.only != "":
		return named(all, o.only)
	case o.rotate > 0:
		commit := o.commit
		if commit == "" {
			out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
			if err != nil {
				return nil, fmt.Errorf("which commit is checked out: %w", err)
			}
			commit = strings.TrimSpace(string(out))
		}
		return rotated(all, o.rotate, commit), nil
	}
	return all, nil
}
