package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/servertest"
	"github.com/waymarkhq/waymark/rag"
)

// filled is a server with a few documents, sent one after the other.
func filled(t *testing.T) *servertest.Server {
	t.Helper()
	s := servertest.Start(t)
	folder(t, map[string]string{
		"docs/a.txt":    "A way is made by walking it.\n\nThe second paragraph of this document is much longer than the first one, so that the excerpt has to be wrapped into several lines, the last of which must end in an ellipsis when the text does not fit, because nobody wants to read all of it in a list of hits; there is a flag for those who do. And it goes on and on and on, as these texts do, until even four lines are not enough for it.",
		"docs/dead.txt": servertest.NoText, "docs/\u001b.txt": "x", "other.md": "Other.\x1b[2J Text",
	})
	c := command("ingest", "docs", "other.md", "--concurrency", "1", "--api", s.URL)
	if code := c.do(t); code != exitFailed {
		t.Fatalf("exit code %d: %s%s", code, c.out.String(), c.err.String())
	}
	s.Stats.Counts = api.Stats{
		Documents:   map[rag.Status]int64{rag.StatusIndexed: 2, rag.StatusDead: 1, rag.StatusEmbedded: 1200},
		DeadLetters: map[rag.LetterState]int64{rag.LetterWaiting: 1}, Lag: map[string]int64{"indexer": 1500, "chunker": 0, "embedder": 2},
		Store: api.StoreStats{Chunks: 3},
	}
	return s
}

// show runs command lines and keeps what they print in one golden file.
func show(t *testing.T, name string, s *servertest.Server, lines ...string) {
	t.Helper()
	var all strings.Builder
	for _, line := range lines {
		c := command(append(strings.Fields(line), "--api", s.URL)...)
		code := c.do(t)
		all.WriteString("$ waymark " + line + "\n" + c.out.String())
		for e := range strings.Lines(c.err.String()) {
			all.WriteString("! " + e)
		}
		if code != 0 {
			all.WriteString("exit code " + string(rune('0'+code)) + "\n")
		}
		all.WriteString("\n")
	}
	golden(t, name, steady(all.String()))
}

func TestStatus(t *testing.T) {
	s := filled(t)
	show(t, "status", s, "status", "status docs/a.txt", "status docs/dead.txt nothing other.md", "status --list all", "status --list dead",
		"status --list deleted", "status --list all --limit 1")
	show(t, "status-json", s, "status --json", "status --json docs/a.txt docs/dead.txt", "status --list dead --json", "status --list deleted --json")
}

func TestStatusOfASubmission(t *testing.T) {
	s := filled(t)
	c := command("status", "--json", "docs/dead.txt", "--api", s.URL)
	c.do(t)
	var doc struct {
		MessageID string `json:"message_id"`
	}
	if err := json.Unmarshal([]byte(c.out.String()), &doc); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, args := range [][]string{{"--message", doc.MessageID}, {"--message", doc.MessageID, "docs/dead.txt"}, {"--message", "none"}, {"--json", "--message", doc.MessageID}} {
		c := command(append([]string{"status", "--api", s.URL}, args...)...)
		code := c.do(t)
		out.WriteString(c.out.String() + c.err.String())
		if (code == 0) != (args[1] != "none") {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
	golden(t, "status-message", steady(out.String()))
}

func TestSearch(t *testing.T) {
	s := filled(t)
	show(t, "search", s, "search way walking", "search way -k 1 --full", "search x --document nothing", "search --mode text --filter lang:en x -k 1")
	show(t, "search-json", s, "search way -k 1 --json", "search x --document nothing --json")
}

func TestSearchOfADocumentWithoutATitle(t *testing.T) {
	s := filled(t)
	for i := range s.Searcher.Hits {
		s.Searcher.Hits[i].Chunk.Title, s.Searcher.Hits[i].Chunk.Page, s.Searcher.Hits[i].Chunk.Heading = "", 7, "Part > One"
	}
	c := command("search", "way", "-k", "1", "--api", s.URL)
	want := "1. docs/a.txt\n   chunk 0, page 7, score 1.000\n   Part > One\n   A way is made by walking it.\n"
	if c.do(t); c.out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", c.out.String(), want)
	}
}

func TestSearchOnATerminal(t *testing.T) {
	s := filled(t)
	var out strings.Builder
	for _, width := range []int{40, 200} {
		c := command("search", "way", "-k", "2", "--api", s.URL)
		c.width = width
		if code := c.do(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
		out.WriteString(c.out.String() + "\n")
	}
	golden(t, "search-terminal", out.String())
	c := command("search", "way", "--api", s.URL)
	c.width, c.environ = 80, []string{"NO_COLOR="}
	if c.do(t); !strings.Contains(c.out.String(), "1. \x1b[1mAbout docs/a.txt\x1b[0m\n") {
		t.Errorf("the title is not bold: %q", c.out.String())
	}
	if strings.Contains(c.out.String(), "\x1b[2J") {
		t.Error("a document's control characters got through")
	}
}

func TestDLQ(t *testing.T) {
	s := filled(t)
	const id = "waymark.documents@0-0-1"
	show(t, "dlq", s, "dlq list", "dlq list --state resolved", "dlq list --reason no_text --stage chunker --document docs/dead.txt", "dlq show "+id,
		"dlq show nothing", "dlq show --payload "+id, "dlq replay "+id, "dlq replay "+id+" nothing", "dlq list", "dlq discard "+id, "dlq replay --all")
}

func TestDLQDiscard(t *testing.T) {
	s := filled(t)
	const id = "waymark.documents@0-0-1"
	show(t, "dlq-discard", s, "dlq discard --why scanned "+id, "dlq discard "+id, "dlq show "+id)
}

// The letter of the tests failed at 2026-01-02 03:05:05.
func TestDLQByTime(t *testing.T) {
	s := filled(t)
	show(t, "dlq-time", s, "dlq list --since 2026-01-02T03:05:05Z", "dlq list --until 2026-01-02T04:05:05+01:00", "dlq list --since 1s",
		"dlq export --since 1s --json", "dlq replay --all --until 2026-01-02T03:05:05Z", "dlq discard --all --since 1s",
		"dlq discard --all --since 2026-01-02T03:05:05Z --until 1s --reason no_text --why scanned", "dlq list --state discarded --since 2026-01-02T03:05:05Z",
		"dlq discard --all --json")
}

func TestDLQReplayAll(t *testing.T) {
	s := filled(t)
	show(t, "dlq-replay-all", s, "dlq replay --all --reason other", "dlq replay --all --reason no_text --json")
	if n := len(s.Commander.Commands()); n != 1 {
		t.Errorf("%d commands", n)
	}
}

func TestDLQJSON(t *testing.T) {
	s := filled(t)
	const id = "waymark.documents@0-0-1"
	show(t, "dlq-json", s, "dlq list --json", "dlq show --json "+id, "dlq replay --json "+id+" nothing", "dlq list --state discarded --json")
}

func TestDLQExport(t *testing.T) {
	s := filled(t)
	c := command("dlq", "export", "--api", s.URL)
	if code := c.do(t); code != 0 {
		t.Fatalf("exit code %d: %s", code, c.err.String())
	}
	var line struct {
		ID      string `json:"id"`
		Payload string `json:"payload"`
	}
	if err := json.Unmarshal([]byte(c.out.String()), &line); err != nil {
		t.Fatal(err)
	}
	if b, err := base64.StdEncoding.DecodeString(line.Payload); err != nil || string(b) != servertest.NoText || line.ID != "waymark.documents@0-0-1" {
		t.Errorf("got %+v", line)
	}
	exported := c.out.String()
	c = command("dlq", "export", "-o", "letters.jsonl", "--api", s.URL)
	if code := c.do(t); code != 0 || c.out.String() != "Exported 1 dead letter to letters.jsonl.\n" {
		t.Errorf("exit code %d, output %q", code, c.out.String())
	}
	if file, err := os.ReadFile("letters.jsonl"); err != nil || string(file) != exported {
		t.Errorf("the file holds %q, %v", file, err)
	}
}
