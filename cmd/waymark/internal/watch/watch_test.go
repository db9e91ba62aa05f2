package watch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/ingest"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, args ...string) *watch.Watcher {
	t.Helper()
	sources, err := ingest.Resolve(args)
	if err != nil {
		t.Fatal(err)
	}
	w, err := watch.New(t.Context(), sources, false)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// look tells the changes of one look in one line.
func look(t *testing.T, w *watch.Watcher) string {
	t.Helper()
	c, err := w.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, f := range c.Files {
		parts = append(parts, "+"+f.ID)
	}
	for _, id := range c.Deleted {
		parts = append(parts, "-"+id)
	}
	for _, path := range c.Orphaned {
		parts = append(parts, "?"+path)
	}
	if c.Empty() != (len(parts) == 0) {
		t.Errorf("Empty is %t for %q", c.Empty(), parts)
	}
	return strings.Join(parts, " ")
}

// expect compares the next looks.
func expect(t *testing.T, w *watch.Watcher, what string, looks ...string) {
	t.Helper()
	for i, want := range looks {
		if got := look(t, w); got != want {
			t.Errorf("%s, look %d: got %q, want %q", what, i+1, got, want)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "docs/a.txt", "1")
	put(t, "docs/b.txt", "1")
	put(t, "docs/c.jsonl", "{}")
	put(t, "one.txt", "1")
	w := start(t, "docs", "one.txt")
	expect(t, w, "nothing", "", "")

	put(t, "docs/a.txt", "12")
	put(t, "docs/deep/new.txt", "1")
	put(t, "docs/.hidden", "1")
	expect(t, w, "changed and new", "", "+docs/a.txt +docs/deep/new.txt", "")

	put(t, "docs/a.txt", "123")
	expect(t, w, "being written", "")
	put(t, "docs/a.txt", "1234")
	expect(t, w, "still being written", "", "+docs/a.txt", "")

	if err := os.Chtimes("docs/b.txt", time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "same size, other time", "", "+docs/b.txt")

	for _, name := range []string{"docs/b.txt", "docs/c.jsonl", "docs/deep/new.txt", "one.txt"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, w, "gone", "", "-docs/b.txt -docs/deep/new.txt -one.txt ?docs/c.jsonl", "")

	put(t, "one.txt", "2")
	expect(t, w, "back", "", "+one.txt", "")
}

func TestReplacedFileIsNotDeleted(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "docs/a.txt", "1")
	w := start(t, "docs")
	if err := os.Remove("docs/a.txt"); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "gone for a moment", "")
	put(t, "docs/a.txt", "22")
	expect(t, w, "replaced", "", "+docs/a.txt", "")
}

func TestAFolderThatIsAwayKeepsItsDocuments(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "docs/a.txt", "1")
	put(t, "docs/sub/b.txt", "1")
	w := start(t, "docs/")
	if err := os.Rename("docs", "away"); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "away", "", "", "")
	put(t, "away/a.txt", "22")
	if err := os.Rename("away", "docs"); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "back", "", "+docs/a.txt", "")
}

func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "docs/a.txt", "1")
	w := start(t, "docs")
	put(t, "docs/a.txt", "22")
	ctx, cancel := context.WithCancel(t.Context())
	var got string
	err := w.Run(ctx, func(c watch.Changes) error {
		got = fmt.Sprint(len(c.Files))
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || got != "1" {
		t.Errorf("got %q, %v", got, err)
	}
	put(t, "docs/a.txt", "333")
	failure := errors.New("no")
	if err := w.Run(t.Context(), func(watch.Changes) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}
