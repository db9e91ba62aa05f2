//go:build unix

package external

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// one is the program of a configuration, for PDF documents.
func one(t *testing.T, limit int, c Config) *Parser {
	t.Helper()
	c.Types = []string{"application/pdf"}
	p, err := New(limit, time.Minute, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	x := p.For("application/pdf", Always)
	if x == nil {
		t.Fatal("no program reads PDF documents")
	}
	return x
}

func shell(script string) Config { return Config{Command: []string{"sh", "-c", script}} }

// outcome is a result or an error in short.
func outcome(r Result, err error) string {
	var x *Error
	switch {
	case errors.As(err, &x):
		return fmt.Sprintf("%s %s: %v", x.Class, x.Reason, err)
	case flow.IsReject(err):
		return fmt.Sprintf("dead %s: %v", flow.ReasonOf(err), err)
	case err != nil:
		return "error: " + err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q", r.Format, r.Title)
	for _, p := range r.Pages {
		fmt.Fprintf(&b, " %d:%q", p.Number, p.Text)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, " warning %q", w)
	}
	return b.String()
}

func TestACommandGetsTheDocumentAndItsEndIsUnderstood(t *testing.T) {
	t.Setenv("WAYMARK_KAFKA_SASL_PASSWORD", "secret")
	for name, c := range map[string]struct{ script, want string }{
		"text":           {`cat`, `text/plain "" 0:"the document"`},
		"type and name":  {`printf %s "$WAYMARK_CONTENT_TYPE $WAYMARK_NAME"`, `text/plain "" 0:"application/pdf a b.pdf"`},
		"no secrets":     {`env | grep -c PASSWORD; true`, `text/plain "" 0:"0\n"`},
		"pages":          {`printf 'one\ftwo\f'`, `text/plain "" 1:"one" 2:"two"`},
		"does not read":  {`echo x`, `text/plain "" 0:"x\n"`},
		"JSON":           {`echo '{"title": "T", "format": "text/markdown", "pages": [{"text": "# a"}, {"number": 3, "text": "b"}], "warnings": ["w"]}'`, `text/markdown "T" 1:"# a" 3:"b" warning "w"`},
		"not UTF-8":      {`printf 'a\377b'`, `text/plain "" 0:"a` + "\ufffd" + `b" warning "The parser's text is not valid UTF-8; what is not was replaced."`},
		"JSON refusal":   {`echo '{"error": {"reason": "encrypted", "message": "a password"}}'`, `dead encrypted: a password`},
		"refusal":        {`echo why >&2; exit 65`, `dead broken_file: the parser sh cannot read the document: why`},
		"both refusals":  {`echo '{"error": {"reason": "no_text", "message": "empty"}}'; exit 65`, `dead no_text: empty`},
		"unknown reason": {`echo '{"error": {"reason": "timeout", "message": "m"}}'`, `dead broken_file: m`},
		"unavailable":    {`echo later >&2; exit 75`, `outage parser_unavailable: the parser sh is not available: later`},
		"failure":        {`echo oops >&2; exit 7`, `transient parser_failed: the parser sh failed (exit status 7): oops`},
		"crash":          {`kill -SEGV $$`, `transient parser_failed: the parser sh failed (signal: segmentation fault`},
		"half JSON":      {`echo '{"text": '`, `transient parser_failed: the parser's reply is not the JSON`},
		"unknown field":  {`echo '{"txt": "a"}'`, `transient parser_failed: the parser's reply is not the JSON`},
		"pages disorder": {`echo '{"pages": [{"number": 2}, {"number": 2}]}'`, `transient parser_failed: the parser's reply has page 2 out of order`},
		"own folder":     {`ls -A | wc -l | tr -d ' \n'; touch x; [ "$TMPDIR" = "$(pwd)" ] && echo same`, `text/plain "" 0:"0same\n"`},
	} {
		got := outcome(one(t, 1<<20, shell(c.script)).Read(t.Context(), Input{Content: []byte("the document"), Type: "application/pdf", Name: "a b.pdf"}))
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s\nnot %s", name, got, c.want)
		}
	}
}

func TestLimitsOfACommandHold(t *testing.T) {
	if got := outcome(one(t, 1000, shell(`yes`)).Read(t.Context(), Input{})); !strings.HasPrefix(got, "dead too_large") {
		t.Errorf("endless output: %s", got)
	}
	hungry := shell(`exec python3 -c 'x = bytearray(200 << 20); import time; time.sleep(60)'`)
	if _, err := exec.LookPath("python3"); err != nil {
		hungry = shell(`x=$(head -c 200000000 /dev/zero | tr '\0' a); sleep 60`)
	}
	hungry.Memory = 50
	if got := outcome(one(t, 1000, hungry).Read(t.Context(), Input{})); !strings.HasPrefix(got, "dead memory") {
		t.Errorf("much memory: %s", got)
	}
	slow := one(t, 1000, shell(`sleep 1000`))
	slow.program.time = 50 * time.Millisecond
	if got := outcome(slow.Read(t.Context(), Input{})); got != "dead timeout: the parser sh takes longer than the limit of 50ms for the document" {
		t.Errorf("much time: %s", got)
	}
}

// A command that hangs is killed with all that it has started, also what holds its output open.
func TestACommandThatHangsIsKilledWithItsChildren(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	x := one(t, 1000, shell(`sleep 1000 & echo $! > `+pid+`.new; mv `+pid+`.new `+pid+`; trap "" TERM; wait`))
	done := make(chan error, 1)
	go func() {
		_, err := x.Read(ctx, Input{})
		done <- err
	}()
	var child int
	eventually(t, "the command has started its child", func() bool {
		b, err := os.ReadFile(pid)
		if err != nil {
			return false
		}
		child, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	eventually(t, "the child is gone", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// eventually polls until what is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestACommandThatIsGoneIsAnOutage(t *testing.T) {
	name := filepath.Join(t.TempDir(), "parser")
	if err := os.WriteFile(name, []byte("#!/bin/sh\necho x\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	x := one(t, 1000, Config{Command: []string{name}})
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if got := outcome(x.Read(t.Context(), Input{})); !strings.HasPrefix(got, "outage parser_unavailable") {
		t.Error(got)
	}
}

func TestAServiceIsAskedAndItsAnswerUnderstood(t *testing.T) {
	var asked *http.Request
	var answer func(http.ResponseWriter)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		answer(w)
	}))
	defer service.Close()
	x := one(t, 1000, Config{URL: service.URL + "/parse"})
	says := func(status int, kind, body string, header ...string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", kind)
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body)) // a client that has gone away is what some want to see
		}
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		"text":         {says(200, "text/plain; charset=utf-8", "a\fb"), `text/plain "" 1:"a" 2:"b"`},
		"Markdown":     {says(200, "text/markdown", "# a"), `text/markdown "" 0:"# a"`},
		"JSON":         {says(200, "application/json", `{"text": "a"}`), `text/plain "" 0:"a"`},
		"JSON refusal": {says(422, "application/json", `{"error": {"reason": "encrypted", "message": "m"}}`), "dead encrypted: m"},
		"refusal":      {says(400, "text/plain", "why"), "dead broken_file: the parser cannot read the document: why"},
		"too large":    {says(413, "text/plain", ""), "dead too_large"},
		"type":         {says(415, "text/plain", ""), "dead unsupported_type"},
		"much":         {says(200, "text/plain", strings.Repeat("a", 70<<10)), "dead too_large"},
		"failure":      {says(500, "text/plain", "oops"), "transient parser_failed: the parser failed (500 Internal Server Error): oops"},
		"overload":     {says(429, "text/plain", "", "Retry-After", "7"), "outage parser_unavailable"},
		"away":         {says(503, "text/plain", ""), "outage parser_unavailable"},
		"wrong place":  {says(404, "text/plain", ""), "outage parser_unavailable"},
		"elsewhere":    {says(307, "text/plain", "", "Location", "http://127.0.0.1:1/"), "outage parser_unavailable"},
		"odd type":     {says(200, "image/png", "x"), "transient parser_failed"},
	} {
		answer = c.answer
		if got := outcome(x.Read(t.Context(), Input{Content: []byte("x"), Type: "application/pdf", Name: "ä b.pdf"})); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s\nnot %s", name, got, c.want)
		}
		if asked.Method != http.MethodPost || asked.Header.Get("Content-Type") != "application/pdf" || asked.Header.Get("Waymark-Name") != "%C3%A4%20b.pdf" {
			t.Fatalf("asked %s %v", asked.Method, asked.Header)
		}
	}
	answer = says(429, "text/plain", "", "Retry-After", "7")
	var e *Error
	if _, err := x.Read(t.Context(), Input{}); !errors.As(err, &e) || e.After != 7*time.Second {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answer = func(http.ResponseWriter) { cancel(); <-asked.Context().Done() }
	if _, err := x.Read(ctx, Input{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a service that hangs: %v", err)
	}
	service.Close()
	if got := outcome(x.Read(t.Context(), Input{})); !strings.HasPrefix(got, "outage parser_unavailable") {
		t.Errorf("nobody there: %s", got)
	}
}

func TestConfigurationsAreChecked(t *testing.T) {
	sound := Config{Types: []string{"image/*", "application/pdf"}, When: NoText, Command: []string{"sh"}}
	if err := sound.Validate(); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no types": {func(c *Config) { c.Types = nil }, "types must name"},
		"type":     {func(c *Config) { c.Types = []string{"pdf", "*/*"} }, `types: "pdf"`},
		"case":     {func(c *Config) { c.Types = []string{"Image/PNG"} }, "in lower case"},
		"when":     {func(c *Config) { c.When = "sometimes" }, `when: "sometimes"`},
		"both":     {func(c *Config) { c.URL = "http://a" }, "one of command and url"},
		"neither":  {func(c *Config) { c.Command = nil }, "one of command and url"},
		"url":      {func(c *Config) { c.Command, c.URL = nil, "ftp://a" }, "url:"},
		"memory":   {func(c *Config) { c.Memory = -1 }, "memory must be"},
		"no use":   {func(c *Config) { c.Command, c.URL, c.Memory = nil, "http://a", 5 }, "for commands alone"},
	} {
		bad := sound
		c.change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(1, time.Minute, sound, Config{Types: sound.Types, Command: []string{"no-such-command"}}); err == nil || !strings.Contains(err.Error(), "parsers[1]: command") {
		t.Errorf("a command that is not there: %v", err)
	}
}

func TestProgramsAreChosenByTypeAndTime(t *testing.T) {
	p, err := New(1, time.Minute, Config{Types: []string{"image/*"}, When: NoText, Command: []string{"sh"}}, Config{Types: []string{"image/png"}, Command: []string{"sh"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind, when string
		want       bool
	}{
		{"image/png", Always, true}, {"image/png", NoText, true}, {"image/gif", Always, false}, {"image/gif", NoText, true},
		{"images/gif", NoText, false}, {"", NoText, false}, {"text/plain", Always, false},
	} {
		if got := p.For(c.kind, c.when) != nil; got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	none, err := New(1, time.Minute)
	if err != nil || none.Settings() != "" || p.Settings() == "" {
		t.Errorf("settings %q and %q, %v", none.Settings(), p.Settings(), err)
	}
}

// FuzzReply: no answer breaks what reads it.
func FuzzReply(f *testing.F) {
	for _, s := range []string{`{"text": "a"}`, `{"pages": [{"number": 1, "text": "b"}]}`, `{"error": {}}`, `{"title": "\ud800"}`, `{} x`, `{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := understand(content)
		var e *Error
		if err != nil && !errors.As(err, &e) && !flow.IsReject(err) {
			t.Fatalf("%v", err)
		}
		if err == nil && (len(r.Warnings) > maxWarnings || r.Format == "") {
			t.Fatalf("%+v", r)
		}
		if e != nil && e.Class == rag.ClassOutage {
			t.Fatalf("a reply is no outage: %v", err)
		}
	})
}
