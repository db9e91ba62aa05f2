package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const examples = "../examples/articles"

// expected are the documents of the examples: all but four are good.
func expected(t *testing.T) (good int, bad map[string]string) {
	t.Helper()
	bad = map[string]string{"broken_json": ".json", "unsupported_type": ".dat", "no_text": ".html", "scan_without_text": ".pdf"}
	entries, err := os.ReadDir(examples)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries) - len(bad), bad
}

// The README's first command: every good document is indexed, the others are dead with a reason that is told; the
// second time everything good is unchanged, nothing is written and nothing embedded.
func TestUpWithExamples(t *testing.T) {
	good, bad := expected(t)
	dir := t.TempDir()
	args := []string{"up", examples, "--exit-when-idle", "--data-dir", dir, "--listen", "127.0.0.1:0"}
	out, errs, code := waymark(t, nil, args...)
	if code != 3 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	if want := fmt.Sprintf("%d documents: %d indexed, %d dead", good+len(bad), good, len(bad)); !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	for reason, ext := range bad {
		if !regexp.MustCompile(`(?m)^articles/\S+` + regexp.QuoteMeta(ext) + `: dead \(` + reason + `\): \S.+$`).MatchString(out + errs) {
			t.Errorf("no line tells of the %s document that died of %s:\n%s%s", ext, reason, out, errs)
		}
	}
	out, errs, code = waymark(t, nil, args...)
	if want := fmt.Sprintf("%d unchanged, %d dead", good, len(bad)); code != 3 || !strings.Contains(out, want) {
		t.Fatalf("the second time: exit code %d, no %q in\n%s%s", code, want, out, errs)
	}

	// Once more, and look at the metrics of that very process.
	at := freeAddress(t)
	start(t, "up", nil, "up", examples, "--data-dir", dir, "--listen", at)
	a := api{t, "http://" + at}
	a.waitReady()
	eventually(t, "all to be recognised", func() error {
		if n := a.metric("waymark_documents_total", `status="unchanged"`); int(n) != good {
			return fmt.Errorf("%v unchanged", n)
		}
		return nil
	})
	for _, zero := range [][]string{{"waymark_embedding_texts_total", `source="service"`}, {"waymark_store_objects_total", `outcome="done"`}} {
		if n := a.metric(zero[0], zero[1:]...); n != 0 {
			t.Errorf("%v is %v, want 0", zero, n)
		}
	}
	if n := a.metric("waymark_duplicates_total", `kind="unchanged"`); int(n) != good {
		t.Errorf("%v duplicates of kind unchanged, want %d", n, good)
	}
}

// One process on a data folder; a second is refused with the pid of the first, and a killed one leaves it free and whole.
func TestDataFolderHasOneProcessAndSurvivesKill(t *testing.T) {
	dir, at := t.TempDir(), freeAddress(t)
	up := start(t, "up", nil, "up", "--data-dir", dir, "--listen", at)
	a := api{t, "http://" + at}
	a.waitReady()
	_, errs, code := waymark(t, nil, "up", "--data-dir", dir, "--listen", "127.0.0.1:0")
	if code == 0 || !strings.Contains(errs, strconv.Itoa(up.cmd.Process.Pid)) {
		t.Errorf("a second process: code %d, pid %d is not named: %s", code, up.cmd.Process.Pid, errs)
	}
	doc := articles(t, 1)[0]
	a.ingest(doc)
	if s := a.final(doc.MessageID, doc.ID); s.Status != "indexed" {
		t.Fatalf("%+v", s)
	}
	up.restart()
	a.waitReady()
	if err := checkServed(doc.ID, doc.Text, a.served(doc.ID)); err != nil {
		t.Errorf("after kill -9: %v", err)
	}
	up.kill(syscall.SIGTERM)
	up.launch()
	a.waitReady()
	if err := checkServed(doc.ID, doc.Text, a.served(doc.ID)); err != nil {
		t.Errorf("after a stop: %v", err)
	}
}

// A document that died of a limit in the configuration is indexed by a replay once the limit is raised.
func TestReplayAfterALimitWasRaised(t *testing.T) {
	dir, at := t.TempDir(), freeAddress(t)
	up := start(t, "up", []string{"WAYMARK_LIMITS_CHUNKS=3"}, "up", "--data-dir", dir, "--listen", at)
	a := api{t, "http://" + at}
	a.waitReady()
	doc := articles(t, 1)[0]
	doc.Text = strings.Repeat("This sentence is one of very many that say the same. ", 400)
	a.ingest(doc)
	if s := a.final(doc.MessageID, doc.ID); s.Status != "dead" || s.Error.Reason != "too_many_chunks" {
		t.Fatalf("%+v", s)
	}
	up.kill(syscall.SIGTERM)
	up.env = nil
	up.launch()
	a.waitReady()
	out, errs, code := waymark(t, nil, "dlq", "replay", "--all", "--reason", "too_many_chunks", "--api", a.base)
	if code != 0 {
		t.Fatalf("code %d\n%s%s", code, out, errs)
	}
	eventually(t, "the replay", func() error {
		if s := a.final(doc.MessageID, doc.ID); s.Status != "indexed" {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	if err := checkServed(doc.ID, doc.Text, a.served(doc.ID)); err != nil {
		t.Error(err)
	}
	var list struct {
		Letters []letter `json:"dead_letters"`
	}
	b := a.insist(200, "GET", "/v1/dead-letters?state=resolved", nil, nil)
	if err := json.Unmarshal(b, &list); err != nil || len(list.Letters) != 1 {
		t.Errorf("resolved letters: %s (%v)", b, err)
	}
}
