package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/rag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and a client of it.
func serve(t *testing.T, opts client.Options, h http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return connect(t, server.URL, opts)
}

func connect(t *testing.T, url string, opts client.Options) *client.Client {
	t.Helper()
	c, err := client.New(url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// problem answers with problem+json.
func problem(w http.ResponseWriter, status int, kind, rest string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":"urn:waymark:problem:%s","title":"A title","status":%d%s}`, kind, status, rest)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func TestNewRefusesURLs(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:8484", "ftp://h", "http://", "http://u:p@h", "http://h?x=1", "http://h#x", "http://%zz"} {
		if _, err := client.New(url, client.Options{}); err == nil {
			t.Errorf("%q was accepted", url)
		}
	}
	if c := connect(t, "http://h:1/prefix/", client.Options{}); c.URL() != "http://h:1/prefix" {
		t.Errorf("got %q", c.URL())
	}
}

func TestUploadSendsTheBytes(t *testing.T) {
	var got *http.Request
	var body []byte
	c := serve(t, client.Options{Token: "s3cret", UserAgent: "test/1"}, func(w http.ResponseWriter, r *http.Request) {
		got, body = r, nil
		body, _ = io.ReadAll(r.Body)
		answer(w, 202, client.Accepted{MessageID: r.Header.Get("Idempotency-Key"), DocumentID: "d"})
	})
	a, err := c.Upload(t.Context(), client.Upload{ID: "a b/ü?.txt", MessageID: "m1", Title: "T", Source: "S", Body: client.Bytes([]byte("hello"))})
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != "PUT" || got.RequestURI != "/v1/documents/a%20b%2F%C3%BC%3F.txt?source=S&title=T" || string(body) != "hello" || got.ContentLength != 5 {
		t.Errorf("%s %s %q of %d bytes", got.Method, got.RequestURI, body, got.ContentLength)
	}
	if _, typed := got.Header["Content-Type"]; typed {
		t.Errorf("the content type %q was made up", got.Header["Content-Type"])
	}
	if got.Header.Get("Authorization") != "Bearer s3cret" || got.Header.Get("User-Agent") != "test/1" || a.MessageID != "m1" {
		t.Errorf("headers %v, answer %+v", got.Header, a)
	}
}

// Whatever an id holds, it arrives as one segment of the path.
func TestIDsSurviveThePath(t *testing.T) {
	var id string
	c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		id = strings.TrimPrefix(r.URL.Path, "/v1/documents/")
		answer(w, 202, client.Accepted{})
	})
	check := func(want string) error {
		if _, err := c.Delete(context.Background(), want, ""); err != nil {
			return err
		}
		if id != want {
			return fmt.Errorf("%q arrived as %q", want, id)
		}
		return nil
	}
	for _, want := range []string{".", "..", "...", "/", "a/../b", "//", "%2F", "a?b#c", "x:batch", "ünï"} {
		if err := check(want); err != nil {
			t.Error(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if err := check(rapid.StringMatching(`[a-z./%?#: é日]{1,20}`).Draw(t, "id")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestProblemsAreTyped(t *testing.T) {
	c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		problem(w, 413, "too-large", `,"detail":"above 8","in":"body","field":"text","reason":"too_large","limit":{"name":"body_bytes","value":8}`)
	})
	_, err := c.Document(t.Context(), "x")
	var e *client.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %T %v", err, err)
	}
	if e.Kind() != "too-large" || e.Status != 413 || e.Field != "text" || e.Reason != "too_large" || e.Limit.Value != 8 || e.RetryAfter != 3*time.Second {
		t.Errorf("got %+v", e)
	}
	if want := "A title: text: above 8 (413)"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !client.IsKind(err, "too-large") || client.IsKind(err, "other") || client.IsKind(io.EOF, "too-large") {
		t.Error("IsKind is wrong")
	}
}

func TestAnswersThatAreNotOurs(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"html":     {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", 502) }, "Bad Gateway (502)"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "https://other/", 302) }, "Found: redirected to https://other/ (302)"},
		"broken problem": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"title":`)
		}, "Bad Request (400)"},
		"not JSON": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hi") },
			"GET /v1/stats: read the answer: invalid character 'h' looking for beginning of value"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, client.Options{}, tc.handler)
			if _, err := c.Stats(t.Context()); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestUploadOfAFileThatCannotBeSent(t *testing.T) {
	c := serve(t, client.Options{Retry: client.Retry{For: time.Hour, Unreachable: true}}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, 202, client.Accepted{})
	})
	waits := c.FakeClock()
	sized := func(text string, size int64) client.Body {
		return client.Body{Open: func() (io.ReadCloser, int64, error) { return io.NopCloser(strings.NewReader(text)), size, nil }}
	}
	broken := client.Body{Open: func() (io.ReadCloser, int64, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("a"), errReader{})), 2, nil
	}}
	for name, body := range map[string]client.Body{
		"missing": client.File(filepath.Join(t.TempDir(), "none")), "shrunk": sized("ab", 3), "grown": sized("abcd", 3), "broken": broken,
	} {
		_, err := c.Upload(t.Context(), client.Upload{ID: "x", Body: body})
		var unread *client.BodyError
		if !errors.As(err, &unread) {
			t.Errorf("%s: got %T %v", name, err, err)
		}
	}
	if len(*waits) != 0 {
		t.Errorf("it was tried again, after %v", *waits)
	}
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, body := range []client.Body{client.File(name), sized("abc", -1), client.Bytes(nil)} {
		if _, err := c.Upload(t.Context(), client.Upload{ID: "x", Body: body}); err != nil {
			t.Error(err)
		}
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("bad sector") }

func TestSearchParameters(t *testing.T) {
	var uri string
	c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		uri = r.RequestURI
		_, _ = io.WriteString(w, `{"hits":[{"document_id":"d","score":0.5,"metadata":{"a":"b"}}]}`)
	})
	hits, err := c.Search(t.Context(), client.Query{Text: "a&b", K: 3, Mode: "text", DocumentID: "d", Filters: []string{"lang:en", "year:2026"}})
	if err != nil || len(hits) != 1 || hits[0].Score != 0.5 || hits[0].Metadata["a"] != "b" {
		t.Errorf("got %+v, %v", hits, err)
	}
	if want := "/v1/search?document_id=d&filter=lang%3Aen&filter=year%3A2026&k=3&mode=text&q=a%26b"; uri != want {
		t.Errorf("got %s, want %s", uri, want)
	}
}

func TestListsWalkThroughPages(t *testing.T) {
	var uris []string
	c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		uris = append(uris, r.RequestURI)
		switch r.URL.Query().Get("cursor") {
		case "":
			_, _ = io.WriteString(w, `{"dead_letters":[{"id":"1"},{"id":"2"}],"next_cursor":"c1"}`)
		case "c1":
			_, _ = io.WriteString(w, `{"dead_letters":[{"id":"3"}]}`)
		}
	})
	var ids []string
	for l, err := range c.DeadLetters(t.Context(), client.LetterFilter{Reason: "no_text", State: rag.LetterWaiting,
		Since: time.Date(2026, 3, 1, 1, 0, 0, 5, time.FixedZone("", 3600)), Until: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, l.ID)
	}
	if !slices.Equal(ids, []string{"1", "2", "3"}) {
		t.Errorf("got %q", ids)
	}
	if want := []string{
		"/v1/dead-letters?limit=200&reason=no_text&since=2026-03-01T00%3A00%3A00.000000005Z&state=waiting&until=2026-03-02T00%3A00%3A00Z",
		"/v1/dead-letters?cursor=c1&limit=200&reason=no_text&since=2026-03-01T00%3A00%3A00.000000005Z&state=waiting&until=2026-03-02T00%3A00%3A00Z",
	}; !slices.Equal(uris, want) {
		t.Errorf("got %q", uris)
	}
	failing := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) { problem(w, 500, "internal-error", "") })
	for _, err := range failing.Documents(t.Context(), "") {
		if err == nil {
			t.Error("no error")
		}
	}
}

func TestLetters(t *testing.T) {
	var seen []string
	c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
		switch {
		case strings.HasSuffix(r.URL.Path, "/payload"):
			w.Header().Set("Original-Content-Type", "text/html")
			_, _ = w.Write([]byte{0, 1, 255})
		case r.URL.Path == "/v1/dead-letters/replay":
			answer(w, 202, client.ReplayResult{Replayed: 7})
		case r.URL.Path == "/v1/dead-letters/discard":
			answer(w, 202, client.DiscardResult{Discarded: 3, NextCursor: "c"})
		default:
			answer(w, 202, client.DeadLetter{ID: "t@0-1-2"})
		}
	})
	ctx := t.Context()
	l, err := c.DeadLetter(ctx, "t@0-1-2")
	var out bytes.Buffer
	p, err2 := c.Payload(ctx, "t@0-1-2", &out)
	r, err3 := c.ReplayAll(ctx, client.WaitingFilter{Reason: "x"})
	_, err4 := c.ReplayAll(ctx, client.WaitingFilter{Cursor: "c"})
	d, err5 := c.DiscardAll(ctx, client.WaitingFilter{Until: time.Unix(0, 0).UTC()}, "old")
	_, err6 := c.DiscardAll(ctx, client.WaitingFilter{}, "")
	if err := errors.Join(err, err2, err3, err4, err5, err6, c.Replay(ctx, "i"), c.Discard(ctx, "i", "old & done")); err != nil {
		t.Fatal(err)
	}
	if l.ID != "t@0-1-2" || p.ContentType != "text/html" || p.Null || !bytes.Equal(out.Bytes(), []byte{0, 1, 255}) || r.Replayed != 7 || d.Discarded != 3 || d.NextCursor != "c" {
		t.Errorf("got %+v %+v %v %+v", l, p, out.Bytes(), r)
	}
	want := []string{
		"GET /v1/dead-letters/t@0-1-2", "GET /v1/dead-letters/t@0-1-2/payload", `POST /v1/dead-letters/replay {"reason":"x"}`,
		`POST /v1/dead-letters/replay {"cursor":"c","all":true}`, `POST /v1/dead-letters/discard {"until":"1970-01-01T00:00:00Z","why":"old"}`,
		`POST /v1/dead-letters/discard {"all":true}`, "POST /v1/dead-letters/i/replay", "DELETE /v1/dead-letters/i?why=old+%26+done",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got:\n%s", strings.Join(seen, "\n"))
	}
}

func TestMessagesAndProbes(t *testing.T) {
	var seen []string
	c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
		switch r.URL.Path {
		case "/readyz":
			problem(w, 503, "not-ready", `,"reasons":[{"reason":"kafka_away","message":"no broker answers"}]`)
		case "/v1/messages:wait":
			_, _ = io.WriteString(w, `{"final":[{"message_id":"m","document_id":"d","status":"dead","error":{"reason":"no_text"}}],"pending":1,"statuses":{"retrying":1}}`)
		default:
			_, _ = io.WriteString(w, `{"message_id":"m","status":"indexed","final":true,"events":[{"stage":"indexer","outcome":"indexed"}]}`)
		}
	})
	ctx := t.Context()
	m, err := c.Message(ctx, "m/1", "d")
	if err != nil || !m.Final || m.Events[0].Outcome != rag.StatusIndexed {
		t.Errorf("got %+v, %v", m, err)
	}
	w, err := c.Wait(ctx, []client.WaitFor{{MessageID: "m", DocumentID: "d"}}, time.Minute)
	if err != nil || w.Pending != 1 || w.Final[0].Error.Reason != "no_text" || w.Statuses["retrying"] != 1 {
		t.Errorf("got %+v, %v", w, err)
	}
	if err := c.Alive(ctx); err != nil {
		t.Error(err)
	}
	if err := c.Ready(ctx); err == nil || err.Error() != "A title; kafka_away: no broker answers (503)" {
		t.Errorf("got %v", err)
	}
	want := []string{
		"GET /v1/messages/m%2F1?document_id=d", `POST /v1/messages:wait {"messages":[{"message_id":"m","document_id":"d"}],"timeout_seconds":30}`,
		"GET /healthz", "GET /readyz",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got:\n%s", strings.Join(seen, "\n"))
	}
}

// The bodies here and those of the server have the same fields of the same kinds.
func TestTypesMatchTheServers(t *testing.T) {
	for _, pair := range []struct{ ours, theirs any }{
		{client.DocumentStatus{}, api.DocumentStatus{}}, {client.MessageStatus{}, api.MessageStatus{}}, {client.DeadLetter{}, api.DeadLetter{}},
		{client.Hit{}, api.Hit{}}, {client.Stats{}, api.Stats{}}, {client.Accepted{}, api.Accepted{}}, {client.BatchResult{}, api.BatchResult{}},
		{client.Error{}, api.Problem{}}, {client.WaitResult{}, api.WaitResult{}}, {client.WaitFor{}, api.WaitFor{}}, {client.ReplayResult{}, api.ReplayResult{}},
		{client.WaitingFilter{}, api.ReplayBody{}}, {client.DiscardResult{}, api.DiscardResult{}}, {client.Document{}, api.DocumentBody{}},
	} {
		ours, theirs := shape(reflect.TypeOf(pair.ours)), shape(reflect.TypeOf(pair.theirs))
		for name, kind := range theirs {
			if name == "all" { // ReplayAll says it itself
				continue
			}
			if ours[name] != kind {
				t.Errorf("%T: %s is %q, the server's is %q", pair.ours, name, ours[name], kind)
			}
		}
		for name := range ours {
			if _, ok := theirs[name]; !ok {
				t.Errorf("%T: the server has no %s", pair.ours, name)
			}
		}
	}
}

// shape maps the JSON paths of a type to their kinds.
func shape(t reflect.Type) map[string]string {
	out := map[string]string{}
	var walk func(prefix string, t reflect.Type)
	walk = func(prefix string, t reflect.Type) {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
			out[prefix] = "string" // base64
		case t == reflect.TypeFor[time.Time]():
			out[prefix] = "string" // RFC 3339
		case t.Kind() == reflect.Slice:
			walk(prefix+"[]", t.Elem())
		case t.Kind() == reflect.Struct:
			for i := range t.NumField() {
				f := t.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				switch {
				case f.Anonymous:
					walk(prefix, f.Type)
				case name != "" && name != "-":
					walk(strings.TrimPrefix(prefix+"."+name, "."), f.Type)
				}
			}
		default:
			out[prefix] = t.Kind().String()
		}
	}
	walk("", t)
	return out
}
