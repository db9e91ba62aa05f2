package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/internal/mutant"
)

// module writes a module whose package p notices the mutant named bad, does not notice good, does not compile with broken
// and hangs with slow.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.org/m\n\ngo 1.26\n",
		"p/none.go":       "//go:build !mutant\n\npackage p\n\nconst active = \"\"\n",
		"p/bad.go":        "//go:build mutant && mutant_bad\n\npackage p\n\nconst active = \"bad\"\n",
		"p/good.go":       "//go:build mutant && mutant_good\n\npackage p\n\nconst active = \"good\"\n",
		"p/slow.go":       "//go:build mutant && mutant_slow\n\npackage p\n\nconst active = \"slow\"\n",
		"p/broken.go":     "//go:build mutant && mutant_broken\n\npackage p\n\nconst active = nonsense\n",
		"p/p_test.go":     "package p\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {\n\tif active == \"slow\" {\n\t\tselect {}\n\t}\n\tif active == \"bad\" {\n\t\tt.Error(\"it is bad\")\n\t}\n}\n",
		"e2e/e2e_test.go": "package e2e\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestIt(t *testing.T) {\n\tif tags := os.Getenv(\"MUTANT\"); tags != \"\" {\n\t\tt.Error(tags)\n\t}\n}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCommandsRun(t *testing.T) {
	g := &goTest{dir: module(t), limit: 2 * time.Second}
	t.Setenv("MUTANT", "")
	for _, tc := range []struct {
		c       command
		m       mutant.Name
		outcome outcome
		says    string
	}{
		{at("p", "TestIt"), "", passed, ""},
		{at("p", "TestIt"), "good", passed, ""},
		{at("p", "TestIt"), "bad", failed, "it is bad"},
		{at("p", "TestIt"), "broken", broken, "it does not compile: p/broken.go:5:16: undefined: nonsense"},
		{at("p", "TestIt"), "slow", broken, "test timed out after 2s"},
		{at("p", "TestThat"), "", broken, "no test ran"},
		{at("nowhere", "TestIt"), "", broken, "directory not found"},
		{end("TestIt"), "", passed, ""},
		{end("TestIt"), "bad", failed, "bad"},
	} {
		r := g.run(t.Context(), tc.c, tc.m)
		if r.outcome != tc.outcome || !strings.Contains(r.says, tc.says) {
			t.Errorf("%v with %q: %+v, want outcome %d with %q", tc.c, tc.m, r, tc.outcome, tc.says)
		}
	}
}
