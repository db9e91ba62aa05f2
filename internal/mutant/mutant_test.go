package mutant_test

import (
	"os"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/internal/mutant"
)

// Every mutant has its file, with the tag that its name says; there are no others.
func TestEveryMutantCanBeBuilt(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "active_") {
			have[f.Name()] = true
		}
	}
	delete(have, "active_none.go")
	delete(have, "active_any.go")
	seen := map[mutant.Name]bool{}
	for _, m := range mutant.All() {
		name := "active_" + string(m) + ".go"
		b, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if tag := "//go:build mutant && mutant_" + string(m) + "\n"; !strings.HasPrefix(string(b), tag) {
			t.Errorf("%s does not begin with %q", name, tag)
		}
		if seen[m] {
			t.Errorf("%s is listed twice", m)
		}
		seen[m] = true
		delete(have, name)
	}
	if len(seen) != 24 {
		t.Errorf("%d mutants", len(seen))
	}
	for name := range have {
		t.Errorf("%s belongs to no mutant", name)
	}
}
