package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag/blob"
)

func TestBlobsCollectPrints(t *testing.T) {
	t.Chdir(t.TempDir())
	runtime := &fakeRuntime{blobs: blob.Collected{Blobs: 1205, Kept: 5, Deleted: 1200, Abandoned: 1, Bytes: 3_000_000, DeletedBytes: 2_000_000}}
	for _, args := range []string{"blobs collect", "blobs collect --dry-run", "--json blobs collect"} {
		s := command(strings.Fields(args)...)
		s.runtime = runtime
		if code := s.do(t); code != exitDone {
			t.Fatalf("%s: exit code %d: %s", args, code, s.err.String())
		}
		golden(t, strings.ReplaceAll(strings.ReplaceAll(args, "--", ""), " ", "-"), s.out.String())
	}
	if url := runtime.cfg.Blobs.URL; !strings.HasPrefix(url, "file:///") || !strings.HasSuffix(url, "/waymark-data/blobs") {
		t.Errorf("blobs at %q", url)
	}
}

// The whole of it: large documents travel by reference, and those that nothing refers to go once they are old, beside the
// running pipeline and without it.
func TestBlobsOfTheWholePipeline(t *testing.T) {
	large := func(name string) string {
		var b strings.Builder
		for i := 0; b.Len() < 400_000; i++ {
			fmt.Fprintf(&b, "Paragraph %d of %s tells of rivers, harbours and bridges.\n\n", i, name)
		}
		return b.String()
	}
	folder(t, map[string]string{"docs/a.txt": large("a"), "docs/b.txt": large("b"), "docs/small.txt": "A short text about rivers."})
	up := command(append([]string{"up", "docs"}, quick...)...)
	up.runtime = nodeRuntime{}
	ended := up.start(t)
	eventually(t, "the documents", func() bool { return strings.Contains(up.out.String(), "3 documents: 3 indexed") })
	blobs := func() []string {
		names, err := filepath.Glob("data/blobs/documents/*/*")
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if len(blobs()) != 2 {
		t.Fatalf("blobs %q", blobs())
	}
	// Two more that nothing refers to: one of long ago, and one of today, which may be on its way.
	day := filepath.Dir(blobs()[0])
	hash := strings.Repeat("ab", 32)
	put(t, "data/blobs/documents/2020-01-01/"+hash, "orphan")
	put(t, day+"/"+hash, "orphan of today")
	collect := func(args ...string) string {
		t.Helper()
		s := command(append([]string{"--json", "blobs", "collect", "--data-dir", "data"}, args...)...)
		s.runtime = nodeRuntime{}
		if code := s.do(t); code != exitDone {
			t.Fatalf("exit code %d: %s", code, s.err.String())
		}
		return s.out.String()
	}
	if got := collect("--dry-run"); !strings.Contains(got, `"deleted":1,`) || len(blobs()) != 4 {
		t.Errorf("dry run: %s %q", got, blobs())
	}
	if got := collect(); !strings.Contains(got, `"kept":3,"deleted":1,"deleted_bytes":6,`) || len(blobs()) != 3 {
		t.Errorf("collected: %s %q", got, blobs())
	}
	up.signal(errInterrupted)
	if code := up.wait(t, ended); code != exitDone {
		t.Fatalf("exit code %d: %s", code, up.err.String())
	}
	if got := collect(); !strings.Contains(got, `"kept":3,"deleted":0,`) {
		t.Errorf("collected without the pipeline: %s", got)
	}
	if _, err := os.Stat("data/blobs/waymark-blobs"); err != nil {
		t.Error(err)
	}
}
