package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
)

func TestDocumentsThatAreRefused(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	for _, c := range []struct {
		name, body string
		status     int
		kind       string
		field      string
		reason     string
	}{
		{"no JSON", `hello`, 400, "malformed-json", "body", "broken_json"},
		{"cut off", `{"id":"a","text":"x`, 400, "malformed-json", "body", "broken_json"},
		{"empty", ``, 400, "malformed-json", "body", "broken_json"},
		{"no object", `["text"]`, 400, "malformed-json", "body", "broken_json"},
		{"two values", `{"text":"x"} {"text":"y"}`, 400, "malformed-json", "body", "broken_json"},
		{"nested 100,000 deep", deep, 400, "malformed-json", "body", "broken_json"},
		{"nested in a field", `{"text":"x","metadata":` + strings.Repeat("[", 100_000) + `}`, 400, "malformed-json", "body", "broken_json"},
		{"invalid UTF-8", "{\"text\":\"\xff\"}", 400, "malformed-json", "body", "broken_json"},
		{"unknown field", `{"text":"x","txet":"y"}`, 422, "invalid-field", "txet", "unknown_field"},
		{"other case", `{"Text":"x"}`, 422, "invalid-field", "Text", "unknown_field"},
		{"doubled field", `{"text":"x","text":"y"}`, 422, "invalid-field", "text", "invalid_field"},
		{"no text", `{"id":"a"}`, 422, "invalid-field", "text", "invalid_field"},
		{"empty text", `{"text":""}`, 422, "invalid-field", "text", "empty_text"},
		{"text is a number", `{"text":1}`, 422, "invalid-field", "text", "invalid_field"},
		{"text is null", `{"text":null}`, 422, "invalid-field", "text", "invalid_field"},
		{"text and content", `{"text":"x","content":"eA=="}`, 422, "invalid-field", "content", "invalid_field"},
		{"wrong base64", `{"content":"e_A="}`, 422, "invalid-field", "content", "invalid_field"},
		{"id with a control character", `{"id":"a\u0000","text":"x"}`, 422, "invalid-field", "id", "bad_key"},
		{"id of 10 KB", `{"id":"` + strings.Repeat("i", 10_000) + `","text":"x"}`, 422, "invalid-field", "id", "bad_key"},
		{"empty id", `{"id":"","text":"x"}`, 422, "invalid-field", "id", "bad_key"},
		{"nested metadata", `{"text":"x","metadata":{"a":{}}}`, 422, "invalid-field", "metadata.a", "invalid_field"},
		{"too much metadata", `{"text":"x","metadata":{` + manyPairs(65) + `}}`, 422, "invalid-field", "metadata", "invalid_field"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s.on(t)
			for _, path := range []string{"/v1/documents", "/ingest"} {
				p := s.postJSON(path, c.body).problem(c.status, c.kind)
				blames(t, p, "body", c.field)
				if p.Reason != c.reason {
					t.Errorf("reason %q, want %q (%s)", p.Reason, c.reason, p.Detail)
				}
				if p.Detail == "" || len(p.Detail) > 600 {
					t.Errorf("detail of %d bytes: %q", len(p.Detail), p.Detail)
				}
			}
		})
	}
	if n := len(s.world.Publisher.Published()); n != 0 {
		t.Errorf("%d refused documents were published", n)
	}
}

func manyPairs(n int) string {
	pairs := make([]string, n)
	for i := range pairs {
		pairs[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	return strings.Join(pairs, ",")
}

func TestContentIsTakenAsBase64(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	s.postJSON("/v1/documents", `{"content":"`+base64.StdEncoding.EncodeToString([]byte("\x00\xff"))+`","content_type":"application/pdf"}`).wants(http.StatusAccepted)
	d := s.world.Publisher.Published()[0].Document
	if string(d.Content) != "\x00\xff" || d.ContentType != "application/pdf" {
		t.Errorf("published %q of type %q", d.Content, d.ContentType)
	}
}

func TestRequestTypes(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	doc := `{"text":"x"}`
	for _, ok := range []string{"application/json", "application/json; charset=UTF-8", "Application/JSON"} {
		s.post("/v1/documents", ok, doc).wants(http.StatusAccepted)
	}
	s.send(http.MethodPost, "/v1/documents", strings.NewReader(doc)).wants(http.StatusAccepted) // none: JSON
	for _, bad := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "application/xml", "json", ";"} {
		p := s.post("/v1/documents", bad, doc).problem(415, "unsupported-media-type")
		blames(t, p, "header", "Content-Type")
	}
	blames(t, s.post("/v1/documents", "application/json", doc, "Content-Encoding", "gzip").problem(415, "unsupported-media-type"), "header", "Content-Encoding")
	blames(t, s.postJSON("/v1/documents", doc, "Content-Type", "text/plain").problem(400, "malformed-request"), "header", "Content-Type")
	s.post("/v1/documents:batch", "application/json", doc).problem(415, "unsupported-media-type")
	s.post("/v1/messages:wait", "text/plain", `{}`).problem(415, "unsupported-media-type")
}

func TestUnknownPathsAndMethods(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for _, path := range []string{"/nothing", "/v1", "/v1/", "/v2/documents", "/v1/documents:other", "//v1/stats", "/v1/./stats", "/v1/../v1/stats", "/v1/stats/", "/assets/nothing.js", "/assets/../server.go"} {
		s.do(s.request(http.MethodGet, path, "")).problem(404, "not-found")
	}
	for path, allow := range map[string]string{
		"/v1/documents":             "GET, HEAD, OPTIONS, POST",
		"/v1/documents/a/b":         "DELETE, GET, HEAD, OPTIONS, PUT",
		"/v1/documents:batch":       "OPTIONS, POST",
		"/v1/dead-letters/a/replay": "OPTIONS, POST",
		"/v1/search":                "GET, HEAD, OPTIONS",
		"/":                         "GET, HEAD, OPTIONS",
	} {
		for _, method := range []string{http.MethodPatch, http.MethodTrace, "BREW"} {
			a := s.send(method, path, nil)
			a.problem(405, "method-not-allowed")
			if got := a.header.Get("Allow"); got != allow {
				t.Errorf("%s %s: Allow %q, want %q", method, path, got, allow)
			}
		}
		a := s.send(http.MethodOptions, path, nil).wants(http.StatusNoContent)
		if got := a.header.Get("Allow"); got != allow {
			t.Errorf("OPTIONS %s: Allow %q, want %q", path, got, allow)
		}
	}
}

func TestHEADAnswersLikeGETWithoutABody(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for _, path := range []string{"/", "/docs", "/openapi.json", "/healthz", "/v1/documents", "/v1/documents/none", "/v1/search"} {
		get, head := s.get(path), s.send(http.MethodHead, path, nil)
		if head.status != get.status || head.header.Get("Content-Type") != get.header.Get("Content-Type") || len(head.body) != 0 {
			t.Errorf("HEAD %s: %d %q with %d bytes, GET: %d %q", path, head.status, head.header.Get("Content-Type"), len(head.body), get.status, get.header.Get("Content-Type"))
		}
	}
}

func TestQueryParametersThatAreRefused(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for _, c := range []struct {
		path   string
		status int
		kind   string
		field  string
	}{
		{"/v1/search?q=x&k=0", 422, "invalid-parameter", "k"},
		{"/v1/search?q=x&k=-1", 422, "invalid-parameter", "k"},
		{"/v1/search?q=x&k=1001", 422, "invalid-parameter", "k"},
		{"/v1/search?q=x&k=99999999999999999999", 422, "invalid-parameter", "k"},
		{"/v1/search?q=x&k=ten", 422, "invalid-parameter", "k"},
		{"/v1/search?q=x&k=1e2", 422, "invalid-parameter", "k"},
		{"/v1/search?q=x&mode=magic", 422, "invalid-parameter", "mode"},
		{"/v1/search", 422, "invalid-parameter", "q"},
		{"/v1/search?q=", 422, "invalid-parameter", "q"},
		{"/v1/search?q=%20%0A", 422, "invalid-parameter", "q"},
		{"/v1/search?q=" + strings.Repeat("x", 4097), 422, "invalid-parameter", "q"},
		{"/v1/search?q=x&filter=lang", 422, "invalid-parameter", "filter"},
		{"/v1/search?q=x&filter=:en", 422, "invalid-parameter", "filter"},
		{"/v1/search?q=x&document_id=%00", 422, "invalid-parameter", "document_id"},
		{"/v1/search?q=x&limit=3", 422, "invalid-parameter", "limit"},
		{"/v1/search?q=x&q=y", 400, "malformed-request", "q"},
		{"/v1/search?q=%FF", 400, "malformed-request", "q"},
		{"/v1/search?q=x&%FF=y", 400, "malformed-request", "\uFFFD"},
		{"/v1/search?q=%zz", 400, "malformed-request", ""},
		{"/v1/search?q=x;k=1", 400, "malformed-request", ""},
		{"/v1/documents?limit=0", 422, "invalid-parameter", "limit"},
		{"/v1/documents?limit=501", 422, "invalid-parameter", "limit"},
		{"/v1/documents?status=lost", 422, "invalid-parameter", "status"},
		{"/v1/documents?cursor=nonsense", 422, "invalid-parameter", "cursor"},
		{"/v1/documents?cursor=%00", 422, "invalid-parameter", "cursor"},
		{"/v1/documents?cursor=AQ", 422, "invalid-parameter", "cursor"},
		{"/v1/dead-letters?state=sent", 422, "invalid-parameter", "state"},
		{"/v1/dead-letters?cursor=x", 422, "invalid-parameter", "cursor"},
		{"/v1/messages/x?document_id=%00", 422, "invalid-parameter", "document_id"},
		{"/healthz?x=1", 422, "invalid-parameter", "x"},
	} {
		t.Run(c.path, func(t *testing.T) {
			s := s.on(t)
			blames(t, s.do(s.request(http.MethodGet, c.path, "")).problem(c.status, c.kind), "query", c.field)
		})
	}
	p := s.get("/v1/search?k=0&mode=magic").problem(422, "invalid-parameter")
	if len(p.Errors) != 3 {
		t.Errorf("of three faults it names %+v", p.Errors)
	}
}

func TestMalformedJSONBodies(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for _, c := range []struct {
		body   string
		status int
		kind   string
		field  string
	}{
		{``, 400, "malformed-json", "body"},
		{`{`, 400, "malformed-json", "body"},
		{`[]`, 400, "malformed-json", "body"},
		{`"all"`, 400, "malformed-json", "body"},
		{`{"all":true} x`, 400, "malformed-json", "body"},
		{strings.Repeat(`{"all":`, 100_000), 400, "malformed-json", "body"},
		{`{"all":true,"all":true}`, 422, "invalid-field", "all"},
		{`{"ALL":true}`, 422, "invalid-field", "ALL"},
		{`{"state":"waiting"}`, 422, "invalid-field", "state"},
		{`{"all":"yes"}`, 422, "invalid-field", "all"},
		{`{}`, 422, "invalid-field", "all"},
		{`{"all":false}`, 422, "invalid-field", "all"},
	} {
		t.Run(c.body[:min(len(c.body), 30)], func(t *testing.T) {
			s := s.on(t)
			blames(t, s.postJSON("/v1/dead-letters/replay", c.body).problem(c.status, c.kind), "body", c.field)
		})
	}
}
