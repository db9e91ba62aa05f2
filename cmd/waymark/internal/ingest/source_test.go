package ingest_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/ingest"
)

// tree writes files, by slash path, into a folder and makes it the current one.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// walk returns "id path" of what a walk comes to, and errors as "id: error".
func walk(t *testing.T, arg string, hidden bool) ([]string, ingest.Skipped) {
	t.Helper()
	sources, err := ingest.Resolve([]string{arg})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	var skipped ingest.Skipped
	err = sources[0].Walk(t.Context(), hidden, &skipped, func(f ingest.File) error {
		line := f.ID + " " + filepath.ToSlash(f.Path)
		if f.Err != nil {
			line = f.ID + ": " + f.Err.Error()
		}
		seen = append(seen, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen, skipped
}

func TestWalk(t *testing.T) {
	tree(t, map[string]string{
		"docs/b.txt": "", "docs/a/z.md": "", "docs/a/.secret": "", "docs/.git/config": "", "docs/a.txt": "", "other/x": "", ".hidden/y.txt": "",
		"docs/" + strings.Repeat("long/", 101) + "file.txt": "", "docs/bad\nname": "",
	})
	for from, to := range map[string]string{"docs/link.txt": "../other/x", "docs/loop": "..", "named": "docs"} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", "docs/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	long := "docs/" + strings.Repeat("long/", 101) + "file.txt"
	errs := []string{
		"docs/bad\nname: the name has a control character and cannot be a document id",
		long + ": the path has 518 bytes and cannot be a document id of at most 512",
	}
	files := func(prefix string) []string {
		return []string{"docs/a/z.md " + prefix + "/a/z.md", "docs/a.txt " + prefix + "/a.txt", "docs/b.txt " + prefix + "/b.txt"}
	}
	want := func(prefix string) []string {
		f := files(prefix)
		return []string{f[0], f[1], f[2], errs[0], errs[1]}
	}
	seen, skipped := walk(t, "docs", false)
	if !slices.Equal(seen, want("docs")) {
		t.Errorf("got:\n%s", strings.Join(seen, "\n"))
	}
	if skipped != (ingest.Skipped{Hidden: 2, Links: 2, Special: 1}) {
		t.Errorf("skipped %+v", skipped)
	}
	if seen, _ := walk(t, "docs", true); len(seen) != 7 {
		t.Errorf("with hidden ones:\n%s", strings.Join(seen, "\n"))
	}
	// A trailing slash, a detour and the folder itself give the same ids.
	abs, err := filepath.Abs("docs")
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range []string{"docs/", "./other/../docs", abs} {
		if seen, _ := walk(t, arg, false); seen[0] != "docs/a/z.md "+filepath.ToSlash(filepath.Join(arg, "a/z.md")) {
			t.Errorf("%s gives %q", arg, seen[0])
		}
	}
	// An argument itself is taken even if it is a link or hidden; its own name counts.
	if seen, _ := walk(t, "named", false); seen[0] != "named/a/z.md named/a/z.md" {
		t.Errorf("a link gives %q", seen[0])
	}
	if seen, _ := walk(t, ".hidden", false); !slices.Equal(seen, []string{".hidden/y.txt .hidden/y.txt"}) {
		t.Errorf("a hidden folder gives %q", seen)
	}
	if seen, _ := walk(t, "docs/link.txt", false); !slices.Equal(seen, []string{"link.txt docs/link.txt"}) {
		t.Errorf("a link to a file gives %q", seen)
	}
	t.Chdir("docs")
	if seen, _ := walk(t, ".", false); seen[0] != "docs/a/z.md a/z.md" {
		t.Errorf("the current folder gives %q", seen[0])
	}
}

func TestWalkEndsWithItsContext(t *testing.T) {
	tree(t, map[string]string{"docs/a": "", "docs/b": ""})
	sources, err := ingest.Resolve([]string{"docs"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err = sources[0].Walk(ctx, false, &ingest.Skipped{}, func(ingest.File) error { n++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("%d files, error %v", n, err)
	}
}

func TestResolveRefuses(t *testing.T) {
	tree(t, map[string]string{"a/docs/x": "", "b/docs/x": "", "a/x": "", "b/x": ""})
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"none"}, "none: no such file or directory"},
		{[]string{"a/docs", "b/docs"}, `a/docs and b/docs would give the same ids, which begin with "docs"`},
		{[]string{"a/x", "b/x"}, `a/x and b/x would give the same ids, which begin with "x"`},
		{[]string{"-", "-"}, `- and - would give the same ids, which begin with "-"`},
		{[]string{os.DevNull}, os.DevNull + " is neither a file nor a folder; to read a pipe give it as standard input: -"},
	} {
		_, err := ingest.Resolve(tc.args)
		var usage *ingest.UsageError
		if !errors.As(err, &usage) || err.Error() != tc.want {
			t.Errorf("%q: got %v", tc.args, err)
		}
	}
}
