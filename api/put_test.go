package api_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
)

// submissions knows one hash for every message id.
type submissions struct {
	hash rag.Hash
	err  error
}

func (s submissions) Submission(context.Context, string, string) (rag.Hash, bool, error) {
	return s.hash, s.err == nil, s.err
}

func TestPutKeepsTheBytes(t *testing.T) {
	for _, c := range []struct {
		name, contentType, kept string
	}{
		{"declared", "application/pdf", "application/pdf"},
		{"with a parameter", "text/html; charset=iso-8859-1", "text/html; charset=iso-8859-1"},
		{"JSON is a document like any other", "application/json", "application/json"},
		{"nothing declared", "", ""},
		{"bytes", "application/octet-stream", ""},
		{"what curl says by itself", "application/x-www-form-urlencoded", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, api.Config{}, apitest.NewWorld())
			var header []string
			if c.contentType != "" {
				header = []string{"Content-Type", c.contentType}
			}
			body := "{\"text\": 1}\x00\xff"
			var a api.Accepted
			s.send(http.MethodPut, "/v1/documents/a.bin?title=My+Title&source=https%3A%2F%2Fexample.org", strings.NewReader(body), header...).
				wants(http.StatusAccepted).decode(&a)
			p := s.world.Publisher.Published()[0]
			if !p.Raw || string(p.Document.Content) != body || p.Document.ContentType != c.kept {
				t.Errorf("published raw=%v content %q type %q", p.Raw, p.Document.Content, p.Document.ContentType)
			}
			if p.Document.Title != "My Title" || p.Document.Source != "https://example.org" || p.Document.MessageID != a.MessageID {
				t.Errorf("published %+v", p.Document)
			}
		})
	}
}

func TestPutRefuses(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	put := func(path, body string, header ...string) answer {
		return s.send(http.MethodPut, path, strings.NewReader(body), header...)
	}
	p := put("/v1/documents/a", "").problem(422, "invalid-field")
	blames(t, p, "body", "body")
	if p.Reason != "empty_text" {
		t.Errorf("reason %q", p.Reason)
	}
	blames(t, put("/v1/documents/a", "x", "Content-Type", "multipart/form-data; boundary=x").problem(415, "unsupported-media-type"), "header", "Content-Type")
	blames(t, put("/v1/documents/a", "x", "Content-Type", "nonsense").problem(415, "unsupported-media-type"), "header", "Content-Type")
	blames(t, put("/v1/documents/a", "x", "Content-Encoding", "gzip").problem(415, "unsupported-media-type"), "header", "Content-Encoding")
	p = put("/v1/documents/a?title="+strings.Repeat("t", 9000), "x").problem(422, "invalid-parameter")
	blames(t, p, "query", "title")
	limits(t, p, "title_bytes", 8<<10)
	blames(t, put("/v1/documents/a?author=me", "x").problem(422, "invalid-parameter"), "query", "author")
	if n := len(s.world.Publisher.Published()); n != 0 {
		t.Errorf("%d refused bodies were published", n)
	}
}

func TestDocumentIDsInThePath(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for _, c := range []struct{ path, id string }{
		{"articles/1790_x.txt", "articles/1790_x.txt"},
		{"articles%2F1790_x.txt", "articles/1790_x.txt"},
		{"a%2fb/c", "a/b/c"},
		{"a//b", "a//b"},
		{"https://example.org/x%3Fy=1", "https://example.org/x?y=1"},
		{"ends/", "ends/"},
		{"%2Fabsolute", "/absolute"},
		{"%2E%2E/up", "../up"},
		{"..", ".."},
		{"%2E", "."},
		{"100%25", "100%"},
		{"a+b%20c", "a+b c"},
		{"%C3%BC%E4%B8%AD", "ü中"},
		{"a;b:c@d", "a;b:c@d"},
		{"x:batch", "x:batch"},
	} {
		t.Run(c.path, func(t *testing.T) {
			s := s.on(t)
			var a api.Accepted
			// The path is sent as it stands here: a client must not tidy it up.
			req := s.request(http.MethodPut, "/v1/documents/"+c.path, "body")
			got := s.do(req)
			got.wants(http.StatusAccepted).decode(&a)
			if a.DocumentID != c.id {
				t.Errorf("document id %q, want %q", a.DocumentID, c.id)
			}
		})
	}
}

// request makes a request whose path travels untouched.
func (s *site) request(method, rawPath, body string) *http.Request {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	path, _, _ := strings.Cut(rawPath, "?")
	req.URL.Opaque = "//" + s.addr + path
	_, req.URL.RawQuery, _ = strings.Cut(rawPath, "?")
	return req
}

func (s *site) do(req *http.Request) answer {
	s.t.Helper()
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	return readAnswer(s.t, resp)
}

func TestDocumentIDsThatNobodyCanHave(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for name, path := range map[string]string{
		"control character": "a%00b", "line feed": "a%0Ab", "C1 control": "a%C2%85b", "invalid UTF-8": "a%FFb",
		"10 KB": strings.Repeat("x", 10_000), "513 bytes": strings.Repeat("x", 513),
	} {
		t.Run(name, func(t *testing.T) {
			s := s.on(t)
			for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodGet} {
				p := s.do(s.request(method, "/v1/documents/"+path, "")).problem(422, "invalid-parameter")
				blames(t, p, "path", "id")
				if len(path) > 512 {
					limits(t, p, "document_id_bytes", 512)
				}
			}
		})
	}
	s.get("/v1/documents/").problem(404, "not-found")
}

// Whatever valid id a client escapes by the book comes back as it was.
func TestEveryDocumentIDSurvivesThePath(t *testing.T) {
	world := apitest.NewWorld()
	server, err := api.New(api.Config{}, world.Dependencies())
	if err != nil {
		t.Fatal(err)
	}
	id := rapid.StringMatching(`[a-zA-Z0-9./%?#&=+:;@~ äöü中😀"<>\\|{}\[\]^-]{1,40}`)
	rapid.Check(t, func(t *rapid.T) {
		want := id.Draw(t, "id")
		escaped := url.PathEscape(want)
		if rapid.Bool().Draw(t, "slashes as they are") {
			escaped = strings.ReplaceAll(escaped, "%2F", "/")
		}
		r := newRequest(http.MethodDelete, "/v1/documents/"+escaped, nil)
		a := serve(server, r)
		if a.status != http.StatusAccepted {
			t.Fatalf("id %q: status %d: %s", want, a.status, a.body)
		}
		published := world.Publisher.Published()
		if got := published[len(published)-1].Document.ID; got != want {
			t.Fatalf("the id %q arrived as %q", want, got)
		}
	})
}

func TestDeleteIsASubmission(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	var a api.Accepted
	s.send(http.MethodDelete, "/v1/documents/a/b", nil).wants(http.StatusAccepted).decode(&a)
	p := s.world.Publisher.Published()[0].Document
	if !p.Delete || p.ID != "a/b" || p.MessageID != a.MessageID || p.Content != nil {
		t.Errorf("published %+v", p)
	}
	s.world.Messages.Put(apitest.Timeline("a/b", a.MessageID, rag.Revision{Version: 1}, time.Unix(1, 0), rag.StatusAccepted, rag.StatusDeleted))
	s.get(a.StatusURL).wants(http.StatusOK)
}
