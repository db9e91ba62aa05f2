package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/servertest"
)

// sorted orders the lines of a text, but for the last one.
func sorted(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines[:max(0, len(lines)-2)])
	return strings.Join(lines, "")
}

func documents() map[string]string {
	return map[string]string{
		"docs/a.txt": "one\n\ntwo", "docs/dead.txt": servertest.NoText, "docs/empty.txt": "", "docs/.hidden": "x",
		"docs/lines.jsonl": "{\"id\":\"l1\",\"text\":\"x\"}\n{\"id\":\"l2\"}\n",
	}
}

func TestIngestPiped(t *testing.T) {
	s := servertest.Start(t)
	folder(t, documents())
	c := command("ingest", "docs", "--api", s.URL)
	if code := c.do(t); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	golden(t, "ingest", steady(sorted(c.out.String())))
	if c.err.String() != "skipped: 1 hidden\n" {
		t.Errorf("standard error: %q", c.err.String())
	}
	again := command("ingest", "docs/a.txt", "--api", s.URL)
	if code := again.do(t); code != exitDone || steady(again.out.String()) != "1 document: 1 indexed (T s, 2 chunks)\n" {
		t.Errorf("exit code %d, output %q", code, again.out.String())
	}
	again = command("ingest", "docs", "--api", s.URL)
	again.do(t)
	golden(t, "ingest-again", steady(sorted(again.out.String())))
}

func TestIngestJSON(t *testing.T) {
	s := servertest.Start(t)
	folder(t, documents())
	c := command("ingest", "docs", "--json", "--api", s.URL)
	if code := c.do(t); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	golden(t, "ingest-json", steady(sorted(c.out.String())))
}

func TestIngestExitCodes(t *testing.T) {
	s := servertest.Start(t)
	folder(t, map[string]string{"good": "x", "dead": servertest.NoText, "empty": ""})
	for line, want := range map[string]int{"good": exitDone, "dead": exitDead, "good dead": exitDead, "dead empty": exitFailed, "empty --no-wait": exitFailed, "dead --no-wait": exitDone} {
		c := command(append([]string{"ingest", "--api", s.URL}, strings.Fields(line)...)...)
		if code := c.do(t); code != want {
			t.Errorf("%s: exit code %d, want %d:\n%s%s", line, code, want, c.out.String(), c.err.String())
		}
	}
}

func TestIngestFromStandardInput(t *testing.T) {
	s := servertest.Start(t)
	c := command("ingest", "-", "--api", s.URL)
	c.stdin = strings.NewReader("{\"id\":\"a\",\"text\":\"x\"}\n{\"text\":\"y\"}\n")
	if code := c.do(t); code != 0 || steady(c.out.String()) != "2 documents: 2 indexed (T s, 2 chunks)\n" {
		t.Errorf("exit code %d, output %q %q", code, c.out.String(), c.err.String())
	}
	c = command("ingest", "--id", "report", "-", "--api", s.URL)
	c.stdin = strings.NewReader("the report")
	if code := c.do(t); code != 0 || string(s.Content("report")) != "the report" {
		t.Errorf("exit code %d, content %q", code, s.Content("report"))
	}
}

func TestNothingListens(t *testing.T) {
	folder(t, map[string]string{"a": "x"})
	for _, args := range [][]string{{"ingest", "a"}, {"delete", "a"}, {"status"}, {"search", "x"}, {"dlq", "list"}} {
		c := command(append(args, "--api", "http://127.0.0.1:1")...)
		if code := c.do(t); code != exitFailed {
			t.Errorf("%q: exit code %d", args, code)
		}
		if got := c.err.String(); !strings.HasPrefix(got, "waymark: the API does not answer: dial tcp 127.0.0.1:1: ") || !strings.HasSuffix(got, "\nStart it with 'waymark up', or name another address with --api.\n") {
			t.Errorf("%q: %q", args, got)
		}
	}
}

func TestIngestInterrupted(t *testing.T) {
	asked := make(chan struct{}, 100)
	s := servertest.Start(t, servertest.WithRefusals(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ":wait") {
			asked <- struct{}{}
		}
		return false
	}))
	folder(t, map[string]string{"a": servertest.Held})
	c := command("ingest", "a", "--api", s.URL)
	code := c.start(t)
	<-asked
	c.signal(errInterrupted)
	if got := c.wait(t, code); got != exitInterrupted {
		t.Errorf("exit code %d, want %d", got, exitInterrupted)
	}
	if steady(c.out.String()) != "1 document: 1 accepted (T s)\n" || c.err.String() != "waymark: interrupted\n" {
		t.Errorf("output %q, errors %q", c.out.String(), c.err.String())
	}
}

func TestIngestGivesUp(t *testing.T) {
	s := servertest.Start(t)
	folder(t, map[string]string{"a": servertest.Held})
	c := command("ingest", "a", "--timeout", "300ms", "--api", s.URL)
	if code := c.do(t); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if steady(c.out.String()) != "1 document: 1 accepted (T s)\n" || c.err.String() != "waymark: gave up after 300ms: 1 document without a final status; they go on\n" {
		t.Errorf("output %q, errors %q", c.out.String(), c.err.String())
	}
}

func TestIngestOnATerminal(t *testing.T) {
	s := servertest.Start(t)
	folder(t, map[string]string{"docs/a": servertest.Held, "docs/b": servertest.NoText})
	c := command("ingest", "docs", "--api", s.URL)
	c.width, c.environ = 70, []string{"LANG=en_US.UTF-8"}
	code := c.start(t)
	eventually(t, "the bar is half full", func() bool {
		return strings.Contains(c.err.String(), "█▒▒▒") && strings.Contains(c.err.String(), "  1/2  1 failed  0:0")
	})
	s.Release()
	if got := c.wait(t, code); got != exitDead {
		t.Errorf("exit code %d", got)
	}
	if out := steady(c.out.String()); out != "docs/b: dead (no_text): The document has no text.\n2 documents: 1 indexed, 1 dead (T s, 1 chunk)\n" {
		t.Errorf("output %q", out)
	}
	if !strings.HasSuffix(c.err.String(), "\r\x1b[K") {
		t.Errorf("the bar is still there: %q", c.err.String())
	}
}

func TestDelete(t *testing.T) {
	s := servertest.Start(t)
	folder(t, map[string]string{"a": "x"})
	command("ingest", "a", "--api", s.URL).do(t)
	c := command("delete", "a", "nothing/there", "--api", s.URL)
	if code := c.do(t); code != 0 || steady(c.out.String()) != "2 documents: 2 deleted (T s)\n" || s.Content("a") != nil {
		t.Errorf("exit code %d, output %q %q", code, c.out.String(), c.err.String())
	}
	c = command("delete", strings.Repeat("x", 600), "--api", s.URL)
	if code := c.do(t); code != exitFailed || !strings.Contains(c.out.String(), "cannot be a document id") {
		t.Errorf("exit code %d, output %q", code, c.out.String())
	}
}

func TestTokens(t *testing.T) {
	s := servertest.Start(t, servertest.WithTokens(api.Token{Name: "t", SHA256: api.HashToken("s3cret"), Scopes: []api.Scope{api.ScopeAdmin}}))
	folder(t, map[string]string{"a": "x", "token": "s3cret\n"})
	c := command("ingest", "a", "--api", s.URL)
	if code := c.do(t); code != exitFailed || !strings.Contains(c.err.String(), "Give a token with the variable WAYMARK_API_TOKEN or with --api-token-file.") {
		t.Errorf("exit code %d, errors %q", code, c.err.String())
	}
	c = command("ingest", "a", "--api", s.URL, "--api-token-file", "token")
	if code := c.do(t); code != 0 {
		t.Errorf("exit code %d, errors %q", code, c.err.String())
	}
	c = command("ingest", "a", "--api", s.URL)
	c.environ = []string{"WAYMARK_API_TOKEN=s3cret"}
	if code := c.do(t); code != 0 {
		t.Errorf("exit code %d, errors %q", code, c.err.String())
	}
	c = command("ingest", "a", "--api", s.URL, "--api-token-file", "token")
	c.environ = []string{"WAYMARK_API_TOKEN=s3cret"}
	if code := c.do(t); code != exitUsage {
		t.Errorf("exit code %d, errors %q", code, c.err.String())
	}
}

func TestTheAddressOfTheAPI(t *testing.T) {
	s := servertest.Start(t)
	host := strings.TrimPrefix(s.URL, "http://")
	folder(t, map[string]string{"w.yaml": "api: {listen: \"" + host + "\"}\n", "wrong.yaml": "api: {listen: \"127.0.0.1:1\"}\n"})
	if code := command("status", "--config", "w.yaml").do(t); code != 0 {
		t.Errorf("by the file: exit code %d", code)
	}
	c := command("status")
	c.environ = []string{"WAYMARK_API_LISTEN=" + host}
	if code := c.do(t); code != 0 {
		t.Errorf("by the variable of the configuration: exit code %d", code)
	}
	t.Setenv("WAYMARK_API", s.URL)
	if code := command("status", "--config", "wrong.yaml").do(t); code != 0 {
		t.Errorf("by the variable: exit code %d", code)
	}
	if code := command("status", "--api", "http://127.0.0.1:1").do(t); code != exitFailed {
		t.Errorf("by the flag: exit code %d", code)
	}
}

func TestIngestThroughAnOverload(t *testing.T) {
	n := 0
	s := servertest.Start(t, servertest.WithRefusals(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		if n++; n > 2 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}))
	folder(t, map[string]string{"a": "x"})
	c := command("ingest", "a", "--api", s.URL)
	if code := c.do(t); code != 0 || n != 3 || len(s.Submitted()) != 1 {
		t.Errorf("exit code %d, %d attempts, submitted %q: %s", code, n, s.Submitted(), c.err.String())
	}
}
