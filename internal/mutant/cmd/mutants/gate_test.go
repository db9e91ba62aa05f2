package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/internal/mutant"
)

// The catalogue has every mutant once, and names tests that exist.
func TestCatalogue(t *testing.T) {
	var names []mutant.Name
	known := map[string][]string{}
	for _, e := range catalogue() {
		names = append(names, e.name)
		if e.what == "" || len(e.catches) == 0 || len(e.outside) == 0 {
			t.Errorf("%s: %+v", e.name, e)
		}
		for _, c := range append(slices.Clone(e.catches), e.outside...) {
			if known[c.pkg] == nil {
				known[c.pkg] = testsOf(t, c.pkg)
			}
			for _, test := range c.tests {
				name, _, _ := strings.Cut(test, "/")
				if !slices.Contains(known[c.pkg], name) {
					t.Errorf("%s: there is no test %s in %s", e.name, name, c.pkg)
				}
			}
		}
	}
	if want := mutant.All(); !slices.Equal(names, want) {
		t.Errorf("the catalogue has %v, want %v", names, want)
	}
}

// testsOf lists the test functions of a package.
func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../../..", pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", pkg, err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}

// fakeRuns answers commands by package and mutant, "" for the ordinary build; what it has no answer for passes.
type fakeRuns struct {
	answers map[string]report
	asked   []string
}

func (f *fakeRuns) execute(_ context.Context, c command, m mutant.Name) report {
	key := c.pkg + " " + string(m)
	f.asked = append(f.asked, strings.TrimSpace(key))
	if r, ok := f.answers[key]; ok {
		return r
	}
	return report{outcome: passed}
}

func TestGate(t *testing.T) {
	two := entry{name: "two", what: "it has two commands", catches: []command{at("near", "TestA"), at("far", "TestB")}}
	caughtBy := func(test string) report {
		return report{outcome: failed, tests: []string{test}, says: "as it should", took: time.Second}
	}
	for name, tc := range map[string]struct {
		answers map[string]report
		all     bool
		asked   string
		out     string // of the mutant
		caught  bool
	}{
		"the first command catches it": {map[string]report{"near two": caughtBy("TestA")}, false, "near, near two", "caught in    1.0s by near TestA: as it should", true},
		"a later one does":             {map[string]report{"far two": caughtBy("TestB")}, false, "near, near two, far, far two", "by far TestB", true},
		"none does":                    {nil, false, "near, near two, far, far two", "!!! SURVIVED", false},
		"all are asked for":            {map[string]report{"near two": caughtBy("TestA"), "far two": caughtBy("TestB")}, true, "near, near two, far, far two", "by far TestB", true},
		"of all one does not":          {map[string]report{"near two": caughtBy("TestA")}, true, "near, near two, far, far two", "!!! SURVIVED: far TestB does not notice it", false},
		"the test fails anyway":        {map[string]report{"near ": caughtBy("TestA"), "near two": caughtBy("TestA")}, false, "near", "!!! near TestA fails without a mutant too: as it should", false},
		"the test never works":         {map[string]report{"near ": {says: "no test ran"}}, false, "near", "!!! near TestA cannot be judged, without a mutant: no test ran", false},
		"the mutant does not compile":  {map[string]report{"near two": {says: "it does not compile"}}, false, "near, near two", "!!! near TestA cannot be judged: it does not compile", false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			runs := &fakeRuns{answers: tc.answers}
			g := newGate(&out, options{all: tc.all})
			g.execute = runs.execute
			err := g.run(t.Context(), []entry{two})
			if (err == nil) != tc.caught {
				t.Errorf("the gate says %v", err)
			}
			if got := strings.Join(runs.asked, ", "); got != tc.asked {
				t.Errorf("ran %s, want %s", got, tc.asked)
			}
			if !strings.Contains(out.String(), tc.out) {
				t.Errorf("printed\n%s, want %q", &out, tc.out)
			}
		})
	}
}

// From outside other commands are run, of the mutants that have some.
func TestFromOutside(t *testing.T) {
	seen := fromOutside([]entry{{name: "unseen", catches: []command{at("p", "TestA")}},
		{name: "seen", what: "w", catches: []command{at("p", "TestA")}, outside: []command{end("TestB")}}})
	if len(seen) != 1 || seen[0].name != "seen" || seen[0].what != "w" || len(seen[0].catches) != 1 || seen[0].catches[0].pkg != "e2e" {
		t.Errorf("%+v", seen)
	}
}

// What the ordinary build says of a command is asked once.
func TestGateAsksTheOrdinaryBuildOnce(t *testing.T) {
	runs := &fakeRuns{answers: map[string]report{"p one": {outcome: failed}, "p two": {outcome: failed}}}
	g := newGate(&bytes.Buffer{}, options{})
	g.execute = runs.execute
	c := []command{at("p", "TestA")}
	if err := g.run(t.Context(), []entry{{name: "one", catches: c}, {name: "two", catches: c}}); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(runs.asked); got != "[p p one p two]" {
		t.Errorf("ran %s", got)
	}
}

func TestInterruptedGate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := newGate(&bytes.Buffer{}, options{})
	g.execute = (&fakeRuns{}).execute
	if err := g.run(ctx, catalogue()); !errors.Is(err, context.Canceled) {
		t.Errorf("the gate says %v", err)
	}
}

func TestRotation(t *testing.T) {
	all := catalogue()
	tried := map[mutant.Name]bool{}
	for i := range 200 {
		commit := fmt.Sprintf("%040x", i)
		chosen := rotated(all, 5, commit)
		if again := rotated(all, 5, commit); len(chosen) != 5 || fmt.Sprint(chosen) != fmt.Sprint(again) {
			t.Fatalf("%s: %v, then %v", commit, chosen, again)
		}
		here := map[mutant.Name]bool{}
		for _, e := range chosen {
			tried[e.name], here[e.name] = true, true
		}
		if len(here) != 5 {
			t.Errorf("%s: %v", commit, chosen)
		}
	}
	if len(tried) != len(all) {
		t.Errorf("200 commits try %d mutants of %d", len(tried), len(all))
	}
	if n := len(rotated(all, 100, "x")); n != len(all) {
		t.Errorf("%d chosen of %d", n, len(all))
	}
}

func TestCommandLine(t *testing.T) {
	for args, want := range map[string]int{
		"-list": 0, "-h": 0, "-list -only acks_one,drop_on_seen": 0, "-list -rotate 5 -commit abc": 0,
		"-only nothing": 2, "-rotate -1": 2, "-rotate 2 -only acks_one": 2, "-limit -1s": 2, "what": 2, "-what": 2,
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), &out, &errs); code != want || code == 2 && errs.Len() == 0 {
			t.Errorf("%q: code %d, want %d\n%s%s", args, code, want, &out, &errs)
		}
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"-list", "-outside"}, &out, &out); code != 0 || strings.Contains(out.String(), "processors") {
		t.Errorf("code %d, and from outside are listed\n%s", code, &out)
	}
	out.Reset()
	run(t.Context(), []string{"-list", "-only", "drop_on_seen"}, &out, &out)
	if !strings.HasPrefix(out.String(), "drop_on_seen") || strings.Contains(out.String(), "acks_one") {
		t.Errorf("listed\n%s", &out)
	}
}

func TestTable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "mutants.md")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, b, c := entry{name: "a", what: "it is wrong"}, entry{name: "b", what: "so is it"}, entry{name: "c"}
	results := []result{{entry: a, caught: []catch{
		{at("p", "TestA"), report{outcome: failed, tests: []string{"TestA/x", "TestA/y", "TestA/z"}, says: "a|b <c> d_e", took: 1540 * time.Millisecond}},
		{at("q", "TestB"), report{outcome: failed, tests: []string{"TestB"}, says: "no"}}}},
		{entry: c, err: errSurvived}}
	// The row of b was written before, in a run of b alone; z is no more in the catalogue.
	write("Before.\n" + tableBegin + "| old |\n|---|\n| `b` | so is it | by b |\n|  |  | by c |\n| `a` | old |\n|  |  | older |\n| `z` | gone |\n| `c` | it was caught once |\n" +
		tableEnd + "Behind.\n" + outsideBegin + tableEnd)
	if err := writeTable(name, false, results, []entry{a, b, c}); err != nil {
		t.Fatal(err)
	}
	want := "Before.\n" + tableBegin + "| mutant | what is wrong | caught by | in | with the words |\n|---|---|---|---|---|\n" +
		"| `a` | it is wrong | `p`: `TestA/x`, `TestA/y` and 1 more | 1.5 s | a\\|b &lt;c> d\\_e |\n|  |  | `q`: `TestB` | 0.0 s | no |\n" +
		"| `b` | so is it | by b |\n|  |  | by c |\n" + tableEnd + "Behind.\n" + outsideBegin + tableEnd
	if b, err := os.ReadFile(name); err != nil || string(b) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b, want)
	}
	write("Before.\n" + tableBegin + tableEnd)
	if err := writeTable(name, true, results, []entry{a}); err == nil {
		t.Error("a table was written where the other one stands")
	}
	write("no place for it\n")
	if err := writeTable(name, false, results, []entry{a}); err == nil {
		t.Error("a file without a place for the table was written")
	}
}
