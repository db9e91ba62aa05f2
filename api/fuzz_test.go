package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag/wire"
)

// fuzzed is a server for all inputs.
func fuzzed(f *testing.F, cfg api.Config) (*api.Server, *apitest.World) {
	f.Helper()
	world := apitest.NewWorld()
	server, err := api.New(cfg, world.Dependencies())
	if err != nil {
		f.Fatal(err)
	}
	return server, world
}

// sane fails unless the answer is one that a caller's input may have: no fault of the program, and every refusal a
// whole problem.
func sane(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code >= http.StatusInternalServerError {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if w.Code < http.StatusBadRequest {
		return
	}
	var p api.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || !strings.HasPrefix(p.Type, "urn:waymark:problem:") || p.Title == "" {
		t.Fatalf("a refusal with %d that is no problem (%v): %s", w.Code, err, w.Body)
	}
	if !utf8.Valid(w.Body.Bytes()) || len(w.Body.Bytes()) > 16<<10 {
		t.Fatalf("a refusal of %d bytes: %q", w.Body.Len(), w.Body)
	}
}

func FuzzSubmit(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","text":"x"}`, `{"content":"eA==","content_type":"application/pdf","message_id":"m","metadata":{"a":1}}`, `{"text":""}`, `[[[[`, "\xff",
	} {
		f.Add(seed, "key")
	}
	server, world := fuzzed(f, api.Config{MaxBodyBytes: 4 << 10})
	f.Fuzz(func(t *testing.T, body, key string) {
		before := len(world.Publisher.Published())
		r := newRequest(http.MethodPost, "/v1/documents", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		sane(t, w)
		published := world.Publisher.Published()[before:]
		if (w.Code == http.StatusAccepted) != (len(published) == 1) {
			t.Fatalf("status %d with %d published", w.Code, len(published))
		}
		for _, p := range published {
			if wire.CheckDocumentID(p.Document.ID) != nil || wire.CheckMessageID(p.Document.MessageID) != nil || len(p.Document.Content) == 0 && !strings.Contains(body, "content") {
				t.Fatalf("published %+v", p.Document)
			}
		}
	})
}

func FuzzBatch(f *testing.F) {
	f.Add("{\"id\":\"a\",\"text\":\"1\"}\n\n{\"id\":\"a\",\"text\":\"2\"}\r\nnonsense\n")
	f.Add(strings.Repeat("{\"text\":\"x\"}\n", 20))
	f.Add(strings.Repeat("x", 3000) + "\n{\"text\":\"x\"}")
	const lines = 10
	server, world := fuzzed(f, api.Config{MaxBodyBytes: 2 << 10, MaxBatchLines: lines})
	f.Fuzz(func(t *testing.T, body string) {
		before := len(world.Publisher.Published())
		w := httptest.NewRecorder()
		server.ServeHTTP(w, newRequest(http.MethodPost, "/v1/documents:batch", strings.NewReader(body)))
		sane(t, w)
		accepted, last := 0, 0
		for dec := json.NewDecoder(bytes.NewReader(w.Body.Bytes())); ; {
			var r api.BatchResult
			err := dec.Decode(&r)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			if r.Line <= last || (r.Problem == nil) != (r.Status == http.StatusAccepted) {
				t.Fatalf("result %+v after line %d", r, last)
			}
			last = r.Line
			if r.Problem == nil {
				accepted++
			}
		}
		if n := len(world.Publisher.Published()) - before; n != accepted || n > lines {
			t.Fatalf("%d published, %d said to be accepted", n, accepted)
		}
		if count := strings.Count(body, "\n") + 1; last > count {
			t.Fatalf("a result for line %d of %d", last, count)
		}
	})
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"q=x&k=3&mode=text&filter=a:b&filter=c:d", "status=indexed&limit=5&cursor=AQAAAAAAAAAAAAAAAGE", "q=%zz", "k=%31;", "=&=&q", "state=waiting&reason=x", "document_id=%00"} {
		f.Add(seed)
	}
	server, _ := fuzzed(f, api.Config{MessageWait: 1})
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/v1/search", "/v1/documents", "/v1/dead-letters", "/v1/messages/m", "/healthz"} {
			r := newRequest(http.MethodGet, path, nil)
			r.URL.RawQuery, r.RequestURI = query, path+"?"+query
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			sane(t, w)
		}
	})
}

func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"", "AQ", "AQAAAAAAAAAAAAAAAGE", "AgAAAAAAAAAAAAAAAGE", "////", "AQAAAAAAAAAAAAAAAP8"} {
		f.Add(seed)
	}
	server, _ := fuzzed(f, api.Config{})
	f.Fuzz(func(t *testing.T, cursor string) {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, newRequest(http.MethodGet, "/v1/documents?cursor="+url.QueryEscape(cursor), nil))
		sane(t, w)
	})
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/", "/v1/documents/a/b", "/v1/messages/..", "/v1/documents/%2E%2E", "//", "*", "/v1/dead-letters/x/replay", "/assets/../x"} {
		f.Add(http.MethodGet, seed)
		f.Add(http.MethodDelete, seed)
	}
	server, _ := fuzzed(f, api.Config{MessageWait: 1})
	f.Fuzz(func(t *testing.T, method, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || method == "" {
			return // net/http refuses it before a handler is called
		}
		r := newRequest(http.MethodGet, "/", nil)
		r.Method, r.URL, r.RequestURI = method, u, path
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		sane(t, w)
	})
}

func FuzzStrictJSON(f *testing.F) {
	for _, seed := range []string{`{"all":true}`, `{"stage":"a","stage":"b"}`, `{"a":{"all":1}}`, `[]`, `{"all":true}{}`, `{"messages":[{"message_id":"m"}],"timeout_seconds":0}`} {
		f.Add(seed)
	}
	running, _ := fuzzed(f, api.Config{MaxBodyBytes: 2 << 10})
	draining, _ := fuzzed(f, api.Config{MaxBodyBytes: 2 << 10}) // a wait answers at once
	if err := draining.Shutdown(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for path, server := range map[string]*api.Server{"/v1/dead-letters/replay": running, "/v1/messages:wait": draining} {
			w := httptest.NewRecorder()
			server.ServeHTTP(w, newRequest(http.MethodPost, path, strings.NewReader(body)))
			sane(t, w)
		}
	})
}
