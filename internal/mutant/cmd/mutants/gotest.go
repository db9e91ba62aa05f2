package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/internal/mutant"
)

// command is some tests of one package.
type command struct {
	pkg   string   // below the module's root
	tests []string // names of test functions, or of subtests behind a slash
	// binary: the tests run processes of the binary, and it is the binary that has the mutant.
	binary bool
}

// at makes a command of tests of a package.
func at(pkg string, tests ...string) command { return command{pkg: pkg, tests: tests} }

// end makes a command of end-to-end tests.
func end(tests ...string) command { return command{pkg: "e2e", tests: tests, binary: true} }

func (c command) String() string { return c.pkg + " " + strings.Join(c.tests, " ") }

// pattern is the -run of go test.
func (c command) pattern() string {
	var top, sub []string
	for _, t := range c.tests {
		name, rest, _ := strings.Cut(t, "/")
		top = append(top, regexp.QuoteMeta(name))
		if rest != "" {
			sub = append(sub, regexp.QuoteMeta(rest))
		}
	}
	p := "^(" + strings.Join(top, "|") + ")$"
	if len(sub) > 0 {
		p += "/^(" + strings.Join(sub, "|") + ")$"
	}
	return p
}

type outcome int

const (
	broken outcome = iota // nothing can be said: it does not compile, the process crashed, no test ran, time is up
	passed
	failed
)

// report is what a run of a command came to.
type report struct {
	outcome outcome
	tests   []string // that failed
	says    string   // one line: the first failure's words, or what is broken
	took    time.Duration
}

// buildAllowance is how long building may take on top of the tests' own limit: a mutant changes packages near the bottom.
const buildAllowance = 10 * time.Minute

// goTest runs commands with the go command.
type goTest struct {
	dir   string // the module's root; "" is the current folder
	limit time.Duration

	binary string // what end-to-end tests run; "" before the first of them
	remove func()
}

// close removes what was built.
func (g *goTest) close() {
	if g.remove != nil {
		g.remove()
	}
}

func (g *goTest) run(ctx context.Context, c command, m mutant.Name) report {
	ctx, cancel := context.WithTimeout(ctx, g.limit+buildAllowance)
	defer cancel()
	args := []string{"test", "-json", "-vet=off", "-timeout", g.limit.String(), "-run", c.pattern()}
	tags := "mutant,mutant_" + string(m)
	switch {
	case c.binary: // the cache does not know the binary
		args = append(args, "-count=1")
	case m == "": // the ordinary build's answer may come from the cache
	default:
		args = append(args, "-count=1", "-tags", tags)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+c.pkg)...)
	cmd.Dir, cmd.Env = g.dir, os.Environ()
	if c.binary {
		if err := g.build(ctx); err != nil {
			return report{says: err.Error()}
		}
		cmd.Env = append(cmd.Env, "MUTANT="+string(m), "E2E_TAGS="+allMutants, "E2E_BINARY="+g.binary, "E2E_FAULTS_BINARY="+g.binary)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the go command ends its tests then
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return report{says: err.Error()}
	}
	r := judge(stdout)
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return report{says: fmt.Sprintf("it was not done after %s", g.limit+buildAllowance)}
	case r.outcome == passed && err != nil:
		return report{says: fmt.Sprintf("all tests pass, but go test says %v: %s", err, oneLine(stderr.String()))}
	case r.outcome == broken && r.says == "":
		r.says = oneLine(stderr.String())
	}
	return r
}

// allMutants are the tags of a binary that is whichever mutant MUTANT names.
const allMutants = "mutant,mutant_any"

// build builds what the tests run, once: a binary of the test build, which without faults does what the ordinary one does, and
// without a mutant too. It is built here so that building counts for the allowance and not for the tests' limit: the go command
// kills a test that prepares itself for longer.
func (g *goTest) build(ctx context.Context) error {
	const source = "cmd/waymark"
	if _, err := os.Stat(filepath.Join(g.dir, source)); err != nil || g.binary != "" {
		return nil // the tests have none, or it is there
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return fmt.Errorf("a folder for the binary: %w", err)
	}
	g.remove = func() { _ = os.RemoveAll(dir) } // in the system's folder for such things
	name := filepath.Join(dir, "waymark")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "faults,"+allMutants, "-o", name, "./"+source)
	build.Dir = g.dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the binary does not compile: %s (%w)", oneLine(string(out)), err)
	}
	g.binary = name
	return nil
}

// event is a line of go test -json.
type event struct {
	Action  string
	Test    string
	Output  string
	Elapsed float64
}

var (
	// crashed is how the Go runtime begins when it ends a process.
	crashed = regexp.MustCompile(`^(panic: |fatal error: |unexpected fault address|SIG[A-Z]+: )`)
	// located is a line of t.Log and its like.
	located = regexp.MustCompile(`^\s+\S+\.go:\d+: `)
)

// judge reads the events of one package. Only a test that fails by its own words is a failure: what does not compile, a
// process that crashes, or that fails before and after its tests, says nothing about them.
func judge(events io.Reader) report {
	j := judgement{said: map[string]*words{}}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) == nil { // else it is a line of the go command itself
			j.add(e)
		}
	}
	return j.report()
}

// judgement is what the events have told so far.
type judgement struct {
	built, crash, aside string // first lines: of the compiler, of a crash, of the package beside its tests
	ended               string // how the package ended
	took                time.Duration
	ran                 int
	failed              []string
	said                map[string]*words
}

func (j *judgement) add(e event) {
	switch e.Action {
	case "build-output":
		if j.built == "" && !strings.HasPrefix(e.Output, "#") {
			j.built = oneLine(e.Output)
		}
	case "build-fail":
		j.ended = e.Action
	case "output":
		j.output(e)
	case "pass", "fail", "skip":
		if e.Test == "" {
			j.took = time.Duration(e.Elapsed * float64(time.Second))
			if j.ended == "" {
				j.ended = e.Action
			}
			return
		}
		if e.Action != "skip" {
			j.ran++
		}
		if e.Action == "fail" {
			j.failed = append(j.failed, e.Test)
		}
	}
}

func (j *judgement) output(e event) {
	if j.crash == "" && crashed.MatchString(e.Output) {
		j.crash = oneLine(e.Output)
	}
	if e.Test == "" {
		if j.aside == "" && !strings.HasPrefix(e.Output, "FAIL") {
			j.aside = oneLine(e.Output)
		}
		return
	}
	if j.said[e.Test] == nil {
		j.said[e.Test] = &words{}
	}
	j.said[e.Test].add(e.Output)
}

func (j *judgement) report() report {
	r := report{took: j.took}
	switch {
	case j.ended == "build-fail":
		r.says = "it does not compile: " + j.built
	case j.crash != "":
		r.says = "the process of the tests crashed: " + j.crash
	case j.ran == 0:
		r.says = "no test ran: " + j.aside
	case j.ended == "pass":
		r.outcome = passed
	case j.ended == "fail" && len(j.failed) == 0:
		r.says = "it fails outside of its tests: " + j.aside
	case j.ended == "fail":
		r.outcome, r.tests = failed, innermost(j.failed)
		for _, t := range r.tests {
			if w := j.said[t]; w != nil && r.says == "" {
				r.says = oneLine(w.text)
			}
		}
	default:
		r.says = "its end was not told: " + j.aside
	}
	return r
}

// noted begins the messages of a test that are no complaints: go test does not tell the two apart.
const noted = "noted: "

// words are the first complaint of a test, with the lines that belong to it.
type words struct {
	text  string
	begun bool
	over  bool
}

func (w *words) add(line string) {
	at := located.FindString(line)
	switch {
	case w.over:
	case strings.HasPrefix(line[len(at):], noted) && !w.begun:
	case at != "" && !w.begun:
		w.text, w.begun = strings.TrimSpace(line[len(at):]), true
	case at != "" || w.begun && !strings.HasPrefix(line, " "):
		w.over = w.begun
	case w.begun:
		w.text += " " + strings.TrimSpace(line)
	}
}

// innermost leaves out tests that failed because a subtest did.
func innermost(tests []string) []string {
	return slices.DeleteFunc(slices.Clone(tests), func(t string) bool {
		return slices.ContainsFunc(tests, func(other string) bool { return strings.HasPrefix(other, t+"/") })
	})
}

// oneLine is the first line of a text that says something.
func oneLine(text string) string {
	const longest = 160
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if r := []rune(line); len(r) > longest {
			return string(r[:longest]) + "…"
		}
		return line
	}
	return ""
}
