package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

const testDimensions = 8

var testOptions = Options{Model: "test", Dimensions: testDimensions}

// chunks makes n objects of a document, each with a direction of its own.
func chunks(document string, rev rag.Revision, n int) []sinks.Object {
	out := make([]sinks.Object, n)
	for i := range out {
		vector := make([]float32, testDimensions)
		vector[i%testDimensions], vector[(i/testDimensions)%testDimensions] = 1, 0.5
		out[i] = sinks.Object{ID: rag.ChunkID("", document, rev, i).String(), Vector: vector, Chunk: rag.Chunk{
			Subject: rag.Subject{DocumentID: document, Revision: rev}, Index: i, Count: n,
			Text: fmt.Sprintf("chunk %d of %s", i, document), Metadata: rag.Metadata{"lang=en"},
		}}
	}
	return out
}

func wantOutcome(t *testing.T, results []sinks.Result, want sinks.Outcome) {
	t.Helper()
	for i, r := range results {
		if r.Outcome != want || (r.Err == nil) != (want == sinks.Done) {
			t.Errorf("object %d is %s, want %s: %v", i, r.Outcome, want, r.Err)
		}
	}
}

func wantCount(t *testing.T, s *Store, want int64) {
	t.Helper()
	if n, err := s.Count(context.Background()); err != nil || n != want {
		t.Errorf("Count = %d, %v, want %d", n, err, want)
	}
}

// impatient shortens the wait for locks.
func impatient(dsn string) string {
	return strings.Replace(dsn, fmt.Sprintf("busy_timeout%%28%d%%29", busyTimeout.Milliseconds()), "busy_timeout%2820%29", 1)
}

func openImpatient(t *testing.T, path string) *Store {
	t.Helper()
	s, err := open(context.Background(), path, testOptions, (&faultDriver{dsn: impatient}).connect)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestFullDiskIsAnOutage(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"), testOptions)
	before := chunks("before", rag.Revision{Version: 1}, 10)
	wantOutcome(t, s.Upsert(context.Background(), before, nil), sinks.Done)
	setPragma(t, s, "max_page_count = 1") // SQLite takes the present size instead
	big := chunks("big", rag.Revision{Version: 1}, 400)
	for i := range big {
		big[i].Chunk.Text = strings.Repeat("more ", 500)
	}
	wantOutcome(t, s.Upsert(context.Background(), big, nil), sinks.Outage)
	wantCount(t, s, 10)
	if missing, err := s.Missing(context.Background(), before); err != nil || len(missing) > 0 {
		t.Errorf("Missing = %v, %v", missing, err)
	}
	setPragma(t, s, "max_page_count = 1000000")
	wantOutcome(t, s.Upsert(context.Background(), big, nil), sinks.Done)
	wantCount(t, s, 410)
}

func TestReadOnlyIsAnOutage(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"), testOptions)
	objects := chunks("d", rag.Revision{Version: 1}, 3)
	wantOutcome(t, s.Upsert(context.Background(), objects, nil), sinks.Done)
	setPragma(t, s, "query_only = 1")
	wantOutcome(t, s.Upsert(context.Background(), objects, nil), sinks.Outage)
	wantOutcome(t, []sinks.Result{s.Remove(context.Background(), "d", rag.Removal{Revision: rag.Revision{Version: 2}})}, sinks.Outage)
	if err := s.Canary(context.Background()); err == nil {
		t.Error("the canary lives in a read-only store")
	}
	setPragma(t, s, "query_only = 0")
	if err := s.Canary(context.Background()); err != nil {
		t.Errorf("canary: %v", err)
	}
	wantCount(t, s, 3)
}

func setPragma(t *testing.T, s *Store, pragma string) {
	t.Helper()
	if _, err := s.writer.db.Exec("PRAGMA " + pragma); err != nil {
		t.Fatal(err)
	}
}

// Another process that holds the lock too long is an outage; readers go on.
func TestLockedIsAnOutage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openImpatient(t, path)
	objects := chunks("d", rag.Revision{Version: 1}, 3)
	wantOutcome(t, s.Upsert(context.Background(), objects, nil), sinks.Done)
	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, s.Upsert(context.Background(), objects, nil), sinks.Outage)
	if err := s.Canary(context.Background()); err == nil {
		t.Error("the canary lives in a locked store")
	}
	hits, err := s.Search(context.Background(), sinks.Query{Mode: sinks.ModeHybrid, Vector: objects[0].Vector, Text: "chunk", K: 5})
	if err != nil || len(hits) != 3 {
		t.Errorf("search while another process writes: %d hits, %v", len(hits), err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, s.Upsert(context.Background(), objects, nil), sinks.Done)
}

// A damaged file gives errors, and blames no object.
func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path, testOptions)
	objects := chunks("d", rag.Revision{Version: 1}, 400)
	wantOutcome(t, s.Upsert(context.Background(), objects, nil), sinks.Done)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"header": func(b []byte) []byte { copy(b, "not a database at all"); return b },
		"middle": func(b []byte) []byte {
			for i := 3 * 8192; i < len(b); i++ {
				b[i] = 0xA5
			}
			return b
		},
		"end": func(b []byte) []byte { return b[:len(b)/2/8192*8192] },
	} {
		t.Run(name, func(t *testing.T) {
			damaged := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(damaged, damage([]byte(string(whole))), 0o600); err != nil {
				t.Fatal(err)
			}
			d, err := Open(context.Background(), damaged, testOptions)
			if err != nil {
				return // refused at once is best
			}
			defer d.Close()
			more := chunks("more", rag.Revision{Version: 1}, 3)
			for i, r := range d.Upsert(context.Background(), append(more, objects[:5]...), nil) {
				if r.Outcome == sinks.Rejected {
					t.Errorf("object %d is blamed: %v", i, r.Err)
				}
			}
			_, searchErr := d.Search(context.Background(), sinks.Query{Mode: sinks.ModeHybrid, Vector: objects[0].Vector, Text: "chunk", K: 1000})
			scanErr := d.Scan(context.Background(), "", func(sinks.Object) error { return nil })
			if searchErr == nil && scanErr == nil {
				t.Error("nobody notices the damage")
			}
		})
	}
}

func TestOutcomeOfErrors(t *testing.T) {
	for _, c := range []struct {
		code   int
		before sinks.Outcome // before the commit
		commit sinks.Outcome // of the commit itself
	}{
		{sqlite3.SQLITE_FULL, sinks.Outage, sinks.Outage},
		{sqlite3.SQLITE_IOERR_WRITE, sinks.Outage, sinks.Ambiguous},
		{sqlite3.SQLITE_IOERR_FSYNC, sinks.Outage, sinks.Ambiguous},
		{sqlite3.SQLITE_READONLY_DBMOVED, sinks.Outage, sinks.Outage},
		{sqlite3.SQLITE_CANTOPEN, sinks.Outage, sinks.Outage},
		{sqlite3.SQLITE_BUSY_SNAPSHOT, sinks.Outage, sinks.Outage},
		{sqlite3.SQLITE_CORRUPT_VTAB, sinks.Outage, sinks.Outage},
		{sqlite3.SQLITE_NOTADB, sinks.Outage, sinks.Outage},
		{sqlite3.SQLITE_NOMEM, sinks.Outage, sinks.Outage},
		{sqlite3.SQLITE_TOOBIG, sinks.Rejected, sinks.Rejected},
		{sqlite3.SQLITE_CONSTRAINT_DATATYPE, sinks.Rejected, sinks.Rejected},
		{sqlite3.SQLITE_ERROR, sinks.Transient, sinks.Transient},
		{sqlite3.SQLITE_INTERRUPT, sinks.Transient, sinks.Transient},
	} {
		err := fmt.Errorf("write: %w", &codeError{c.code, "x"})
		if got := outcome(err); got != c.before {
			t.Errorf("code %d is %s, want %s", c.code, got, c.before)
		}
		if got := outcome(&commitError{err}); got != c.commit {
			t.Errorf("code %d in the commit is %s, want %s", c.code, got, c.commit)
		}
	}
	if got := outcome(&commitError{context.Canceled}); got != sinks.Ambiguous {
		t.Errorf("a commit without a code is %s", got)
	}
	if got := outcome(context.DeadlineExceeded); got != sinks.Transient {
		t.Errorf("a wait that was given up is %s", got)
	}
}

// A transaction that runs is not given up with its caller, which would leave its outcome open.
func TestCancelInATransaction(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	faults := &faultDriver{onInsert: cancel}
	s, err := open(context.Background(), filepath.Join(t.TempDir(), "store.db"), testOptions, faults.connect)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantOutcome(t, s.Upsert(ctx, chunks("d", rag.Revision{Version: 1}, 20), nil), sinks.Done)
	if ctx.Err() == nil {
		t.Fatal("the context was not canceled in the transaction")
	}
	wantOutcome(t, s.Upsert(ctx, chunks("e", rag.Revision{Version: 1}, 2), nil), sinks.Transient)
	wantCount(t, s, 20)
}

// When every object fails, the batch is not run once for each.
func TestManyCulprits(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"), testOptions)
	if _, err := s.writer.db.Exec(`CREATE TRIGGER refuse BEFORE INSERT ON chunk WHEN NEW.number < 12
		BEGIN SELECT raise(ABORT, 'refused'); END`); err != nil {
		t.Fatal(err)
	}
	results := s.Upsert(context.Background(), chunks("d", rag.Revision{Version: 1}, 20), nil)
	var rejected, transient int
	for i, r := range results {
		switch {
		case r.Outcome == sinks.Rejected && i < 12:
			rejected++
		case r.Outcome == sinks.Transient && r.Err != nil:
			transient++
		default:
			t.Errorf("object %d: %s: %v", i, r.Outcome, r.Err)
		}
	}
	if rejected != maxCulprits+1 || transient != 20-rejected {
		t.Errorf("%d rejected and %d transient", rejected, transient)
	}
	wantCount(t, s, 0)
}

// The parts of chunks come and go together.
func TestNothingIsLeftBehind(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"), testOptions)
	ctx := context.Background()
	for version := range 4 {
		rev := rag.Revision{Version: rag.Version(version + 1)}
		wantOutcome(t, s.Upsert(ctx, chunks("d", rev, 30), nil), sinks.Done)
		wantOutcome(t, s.Upsert(ctx, chunks("d", rev, 30), nil), sinks.Done)
		s.Remove(ctx, "d", rag.Removal{Revision: rev})
	}
	if err := s.Canary(ctx); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"chunk", "vector", "metadata", "text_index", "text_index_content", "text_index_docsize"} {
		var n int
		if err := s.readers.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil || n != 30 {
			t.Errorf("%s has %d rows, %v, want 30", table, n, err)
		}
	}
	if _, err := s.writer.db.Exec("INSERT INTO text_index (text_index) VALUES ('integrity-check')"); err != nil {
		t.Errorf("text index: %v", err)
	}
	var check string
	if err := s.readers.QueryRow("PRAGMA integrity_check").Scan(&check); err != nil || check != "ok" {
		t.Errorf("integrity check: %s, %v", check, err)
	}
}
