package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/verify"
)

func TestVerifyPrintsWhatDiffers(t *testing.T) {
	folder(t, nil)
	found := verify.Report{Documents: 3, Chunks: 1200, Objects: 1201, Findings: []verify.Finding{
		{Kind: verify.Missing, DocumentID: "a", Revision: rag.Revision{Version: 7}, Chunks: ledger.Bitmap{}.With(0, 3).With(9, 10), Objects: 4, Repaired: 3, Note: "gone"},
		{Kind: verify.Stale, DocumentID: "b\x1b[2J", Revision: rag.Revision{Version: 5, Generation: 2}, Chunks: ledger.Bitmap{}.With(1, 2), Objects: 1, Repaired: 1},
	}}
	undecided := verify.Report{Documents: 1, Undecided: 2}
	var all strings.Builder
	for _, line := range []struct {
		args   string
		report verify.Report
		code   int
	}{
		{"verify", verify.Report{Documents: 1, Chunks: 1, Objects: 1}, exitDone}, {"verify", found, exitFailed}, {"verify --repair", found, exitFailed},
		{"verify --repair --json", found, exitFailed}, {"verify", undecided, exitFailed}, {"verify --json", undecided, exitFailed},
	} {
		c := command(strings.Fields(line.args)...)
		runtime := &fakeRuntime{report: line.report}
		c.runtime = runtime
		if code := c.do(t); code != line.code || c.err.String() != "" {
			t.Errorf("%s: exit code %d, want %d; errors %q", line.args, code, line.code, c.err.String())
		}
		if repair := strings.Contains(line.args, "--repair"); repair != (runtime.what == "repair") {
			t.Errorf("%s: the runtime was asked to %s", line.args, runtime.what)
		}
		all.WriteString("$ waymark " + line.args + "\n" + c.out.String() + "\n")
	}
	golden(t, "verify", all.String())
	c := command("verify")
	c.runtime = &fakeRuntime{early: errBroken}
	if code := c.do(t); code != exitFailed || c.err.String() != "waymark: the store is broken\n" {
		t.Errorf("exit code %d, errors %q", code, c.err.String())
	}
}

func TestVerifyNeedsSomethingToCompare(t *testing.T) {
	folder(t, map[string]string{"store.db": ""})
	for line, want := range map[string]string{
		"verify --data-dir none":                       "there is no store to compare",
		"verify --data-dir none --store.path store.db": "no broker has run in the data folder none",
	} {
		c := command(strings.Fields(line)...)
		c.runtime = nodeRuntime{}
		if code := c.do(t); code != exitFailed || !strings.Contains(c.err.String(), want) {
			t.Errorf("%s: exit code %d, errors %q", line, code, c.err.String())
		}
	}
	if _, err := os.Stat("none"); err == nil {
		t.Error("a data folder was made")
	}
}

// quick are settings with which removals come soon.
var quick = []string{"--data-dir", "data", "--api.listen", "127.0.0.1:0", "--delivery.view_lag", "1s", "--delivery.removal_delay", "2s"}

// The whole of it: the pipeline runs, somebody changes the store behind its back, and exactly that is found and mended, beside
// the running pipeline and without it.
func TestVerifyFindsWhatWasDoneBehindItsBack(t *testing.T) {
	folder(t, map[string]string{
		"docs/a.txt": strings.Repeat("The harbour of Hamburg is a port on the Elbe. Ships come from everywhere, and go there. ", 120),
		"docs/b.txt": "A short text about rivers and the bridges that lead over them.",
	})
	up := command(append([]string{"up", "docs"}, quick...)...)
	up.runtime = nodeRuntime{}
	ended := up.start(t)
	eventually(t, "both documents", func() bool { return strings.Contains(up.out.String(), "2 documents: 2 indexed") })
	wantsVerify(t, exitDone, "")

	db := openSQLite(t)
	version := column(t, db, "SELECT min(version) FROM chunk WHERE document = 'docs/a.txt'")
	exec(t, db, "DELETE FROM text_index WHERE rowid = (SELECT key FROM chunk WHERE document = 'docs/a.txt' AND number = 0)",
		"DELETE FROM vector WHERE chunk = (SELECT key FROM chunk WHERE document = 'docs/a.txt' AND number = 0)",
		"DELETE FROM metadata WHERE chunk = (SELECT key FROM chunk WHERE document = 'docs/a.txt' AND number = 0)",
		"DELETE FROM chunk WHERE document = 'docs/a.txt' AND number = 0",
		"UPDATE meta SET value = value - 1 WHERE name = 'chunks'",
		"DELETE FROM vector WHERE chunk = (SELECT key FROM chunk WHERE document = 'docs/a.txt' AND number = 1)")
	copyChunk(t, db, "docs/nobody.txt", 3, 4)  // of a document that nobody has sent
	copyChunk(t, db, "docs/a.txt", version, 2) // chunk 2 again
	const found = "doubled docs/a.txt [2]; missing docs/a.txt [0]; unsearchable docs/a.txt [1]; stale docs/nobody.txt [4]"
	wantsVerify(t, exitFailed, found)
	wantsVerify(t, exitDone, found+"; all repaired", "--repair")
	wantsVerify(t, exitDone, "")
	if n := column(t, db, "SELECT count(*) FROM chunk WHERE document = 'docs/nobody.txt' OR version = 0"); n != 0 {
		t.Errorf("%d chunks of nobody are there", n)
	}

	up.signal(errInterrupted)
	if code := up.wait(t, ended); code != exitDone {
		t.Fatalf("exit code %d: %s", code, up.err.String())
	}
	exec(t, db, "DELETE FROM vector WHERE chunk = (SELECT key FROM chunk WHERE document = 'docs/b.txt')")
	wantsVerify(t, exitDone, "unsearchable docs/b.txt [0]; all repaired", "--repair")
	wantsVerify(t, exitDone, "")
}

// wantsVerify runs the command and compares its findings, written as "kind document chunks; …".
func wantsVerify(t *testing.T, code int, want string, flags ...string) {
	t.Helper()
	c := command(append(append([]string{"verify", "--json"}, quick...), flags...)...)
	c.runtime = nodeRuntime{}
	if got := c.do(t); got != code {
		t.Errorf("exit code %d, want %d: %s%s", got, code, c.out.String(), c.err.String())
	}
	var got []string
	repaired := 0
	for line := range strings.Lines(c.out.String()) {
		if !strings.Contains(line, `"kind"`) {
			continue // the summary
		}
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %v", f.Kind, f.DocumentID, f.Chunks))
		repaired += f.Repaired
	}
	if len(got) > 0 && repaired == len(got) {
		got = append(got, "all repaired")
	}
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("found %q, want %q", text, want)
	}
}

func openSQLite(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:data/store.db?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func column(t *testing.T, db *sql.DB, query string) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// copyChunk puts the last chunk of docs/a.txt to another place, under an id that is not that of the place.
func copyChunk(t *testing.T, db *sql.DB, document string, version int64, number int) {
	t.Helper()
	const source = "(SELECT max(key) FROM chunk WHERE document = 'docs/a.txt' AND id != zeroblob(16))"
	exec(t, db, fmt.Sprintf(`INSERT INTO chunk SELECT (SELECT max(key) + 1 FROM chunk), randomblob(16), '%s', %d, 0, %d, count, start, "end", page,
		title, source, heading, metadata, text, parent_start, parent_end, parent_text FROM chunk WHERE key = %s`, document, version, number, source))
	exec(t, db, "INSERT INTO vector SELECT (SELECT max(key) FROM chunk), value FROM vector LIMIT 1",
		"INSERT INTO text_index (rowid, text, title) SELECT max(key), 'x', '' FROM chunk",
		"UPDATE meta SET value = value + 1 WHERE name = 'chunks'")
}
