package journal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/waymarkhq/waymark/engine/internal/journal"
)

// The file may hold anything: it was written by a process that was killed, or by another release.
func FuzzOpen(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4})
	f.Add([]byte{2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	path := filepath.Join(f.TempDir(), "running")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		j, left, err := journal.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) > journal.Slots {
			t.Errorf("%d entries", len(left))
		}
		j.Begin(journal.Entry{Input: 1, Partition: 2, Offset: 3})
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j, left, err = journal.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) != 1 || left[0] != (journal.Entry{Input: 1, Partition: 2, Offset: 3}) {
			t.Errorf("left %+v", left)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
