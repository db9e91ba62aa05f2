package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// writerVariable makes the test binary write to the file that it names instead of running tests.
const writerVariable = "WAYMARK_TEST_SQLITE_WRITER"

func TestMain(m *testing.M) {
	if job := os.Getenv(writerVariable); job != "" {
		if err := writeForEver(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// writeForEver writes versions of documents until it is killed, and says which it has acknowledged.
func writeForEver(job string) error {
	name, path, _ := strings.Cut(job, "=")
	ctx := context.Background()
	s, err := Open(ctx, path, testOptions)
	if err != nil {
		return err
	}
	for version := 1; ; version++ {
		rev := rag.Revision{Version: rag.Version(version)}
		if err := untilFree(func() error {
			for _, r := range s.Upsert(ctx, chunks(name, rev, 40), nil) {
				if r.Err != nil {
					return r.Err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if err := untilFree(func() error { return s.Remove(ctx, name, rag.Removal{Revision: rev}).Err }); err != nil {
			return err
		}
		fmt.Println(version)
	}
}

// untilFree does it again as long as others hold the lock, as the pipeline does after an outage: who waits for SQLite's lock has
// no place in a queue, and the other writers here never pause.
func untilFree(do func() error) error {
	for {
		if err := do(); !isBusy(err) {
			return err
		}
	}
}

// writerProcess is a process that writes until it is killed.
type writerProcess struct {
	name   string
	cmd    *exec.Cmd
	output *bufio.Scanner
	stderr *strings.Builder
}

func startWriter(t *testing.T, name, path string) *writerProcess {
	t.Helper()
	w := &writerProcess{name: name, cmd: exec.Command(os.Args[0]), stderr: &strings.Builder{}}
	w.cmd.Env = append(os.Environ(), writerVariable+"="+name+"="+path)
	w.cmd.Stderr = w.stderr
	var stdout io.ReadCloser
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.output = bufio.NewScanner(stdout)
	return w
}

// waitFor returns when the writer has acknowledged a version at or above want.
func (w *writerProcess) waitFor(t *testing.T, want int) {
	t.Helper()
	for w.output.Scan() {
		if version, err := strconv.Atoi(w.output.Text()); err == nil && version >= want {
			return
		}
	}
	err := w.cmd.Wait() // which ends the writing of stderr too
	t.Fatalf("writer %s ended: %v: %s", w.name, err, w.stderr)
}

// kill ends the writer without warning and returns the last version that it had acknowledged.
func (w *writerProcess) kill(t *testing.T) (last int) {
	t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for w.output.Scan() {
		last, _ = strconv.Atoi(w.output.Text())
	}
	_ = w.cmd.Wait() // killed
	if w.stderr.Len() > 0 {
		t.Errorf("writer %s: %s", w.name, w.stderr)
	}
	return last
}

func upsertMine(t *testing.T, s *Store, mine []sinks.Object) {
	t.Helper()
	var results []sinks.Result
	_ = untilFree(func() error {
		results = s.Upsert(t.Context(), mine, nil)
		return results[0].Err
	})
	wantOutcome(t, results, sinks.Done)
}

// Several processes write to one file and are killed in the middle: what was acknowledged is there, whole, and what was not
// is there wholly or not at all.
func TestProcessesShareAFileAndDie(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path, testOptions)
	ctx := context.Background()
	for round := range 3 {
		writers := []*writerProcess{startWriter(t, "a", path), startWriter(t, "b", path)}
		mine := chunks("mine", rag.Revision{Version: rag.Version(round + 1)}, 25)
		upsertMine(t, s, mine)
		for _, w := range writers {
			w.waitFor(t, 3+round)
		}
		for _, w := range writers {
			wantWhole(t, s, w.name, w.kill(t))
		}
		upsertMine(t, s, mine)
		for _, w := range writers { // the next round begins with version 1 again
			if err := untilFree(func() error { return s.Remove(ctx, w.name, rag.Removal{Revision: rag.Revision{Version: 1 << 40}}).Err }); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantCount(t, s, 75)
	if _, err := s.writer.db.Exec("INSERT INTO text_index (text_index) VALUES ('integrity-check')"); err != nil {
		t.Errorf("text index: %v", err)
	}
}

// wantWhole checks that the store holds whole versions of a document, the last acknowledged one or the two around it.
func wantWhole(t *testing.T, s *Store, document string, acknowledged int) {
	t.Helper()
	ctx := context.Background()
	held := make(map[rag.Version][]sinks.Object)
	if err := s.Scan(ctx, document, func(o sinks.Object) error {
		held[o.Chunk.Revision.Version] = append(held[o.Chunk.Revision.Version], o)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	newest := 0
	for version, objects := range held {
		newest = max(newest, int(version))
		want := chunks(document, rag.Revision{Version: version}, 40)
		if len(objects) != len(want) {
			t.Errorf("%s holds %d of the %d chunks of version %d", document, len(objects), len(want), version)
		}
		if missing, err := s.Missing(ctx, want); err != nil || len(missing) > 0 {
			t.Errorf("%s version %d: Missing = %v, %v", document, version, missing, err)
		}
	}
	if newest < acknowledged {
		t.Errorf("%s holds version %d, but %d was acknowledged", document, newest, acknowledged)
	}
}
