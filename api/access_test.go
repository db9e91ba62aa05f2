package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
)

func tokens() []api.Token {
	return []api.Token{
		{Name: "ingest", SHA256: api.HashToken("i-secret"), Scopes: []api.Scope{api.ScopeIngest}},
		{Name: "read", SHA256: api.HashToken("r-secret"), Scopes: []api.Scope{api.ScopeRead}},
		{Name: "admin", SHA256: api.HashToken("a-secret"), Scopes: []api.Scope{api.ScopeAdmin}},
	}
}

func TestEachCallNeedsItsScope(t *testing.T) {
	world := apitest.NewWorld()
	world.AddIndexed("a", 1, time.Unix(1, 0), "x")
	s := start(t, api.Config{Tokens: tokens(), MessageWait: time.Millisecond}, world)
	for call, scope := range map[string]string{
		"POST /v1/documents": "ingest", "POST /ingest": "ingest", "PUT /v1/documents/a": "ingest", "DELETE /v1/documents/a": "ingest",
		"POST /v1/documents:batch": "ingest",
		"GET /v1/documents":        "read", "GET /v1/documents/a": "read", "GET /v1/messages/m": "read", "POST /v1/messages:wait": "read",
		"GET /v1/dead-letters": "read", "GET /v1/dead-letters/x": "read", "GET /v1/dead-letters/x/payload": "read",
		"GET /v1/search?q=x": "read", "GET /v1/stats": "read", "GET /metrics": "read", "HEAD /v1/stats": "read",
		"POST /v1/dead-letters/x/replay": "admin", "POST /v1/dead-letters/replay": "admin", "POST /v1/dead-letters/discard": "admin", "DELETE /v1/dead-letters/x": "admin",
	} {
		method, path, _ := strings.Cut(call, " ")
		for token, has := range map[string]string{"i-secret": "ingest", "r-secret": "read", "a-secret": "admin"} {
			a := s.send(method, path, nil, "Authorization", "Bearer "+token)
			allowed := has == scope || has == "admin"
			switch {
			case allowed && (a.status == 401 || a.status == 403):
				t.Errorf("%s with the scope %s: %d", call, has, a.status)
			case !allowed && method != http.MethodHead:
				a.problem(403, "forbidden")
				if h := a.header.Get("WWW-Authenticate"); !strings.Contains(h, `error="insufficient_scope"`) || !strings.Contains(h, scope) {
					t.Errorf("%s: WWW-Authenticate %q", call, h)
				}
			case !allowed && a.status != 403:
				t.Errorf("%s: %d", call, a.status)
			}
		}
	}
	if n := len(s.world.Publisher.Published()); n != 2 { // the two deletions
		t.Errorf("%d submissions were published", n)
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	s := start(t, api.Config{Tokens: tokens()}, apitest.NewWorld())
	for _, header := range []string{"", "r-secret", "Basic r-secret", "Bearer", "Bearer ", "Bearer wrong", "Bearer r-secret x", "Bearer R-SECRET"} {
		var pairs []string
		if header != "" {
			pairs = []string{"Authorization", header}
		}
		a := s.get("/v1/stats", pairs...)
		a.problem(401, "unauthorized")
		if h := a.header.Get("WWW-Authenticate"); !strings.HasPrefix(h, "Bearer ") {
			t.Errorf("%q: WWW-Authenticate %q", header, h)
		}
	}
	s.get("/v1/stats", "Authorization", "Bearer r-secret", "Authorization", "Bearer r-secret").problem(401, "unauthorized")
	s.get("/v1/stats", "Authorization", "bearer  r-secret").wants(http.StatusOK)
	s.get("/v1/search?q=r-secret&access_token=r-secret").problem(401, "unauthorized")
}

func TestWhatIsOpenWithTokensToo(t *testing.T) {
	s := start(t, api.Config{Tokens: tokens()}, apitest.NewWorld())
	for _, path := range []string{"/", "/docs", "/openapi.json", "/healthz", "/readyz", "/assets/app.js", "/assets/app.css"} {
		s.get(path).wants(http.StatusOK)
	}
}

func TestWithoutTokensOnlyLoopbackNamesAreAnswered(t *testing.T) {
	hosts := map[string]bool{
		"localhost": true, "localhost:8484": true, "LOCALHOST.": true, "app.localhost:1": true, "127.0.0.1": true, "127.1.2.3:80": true,
		"[::1]": true, "[::1]:8484": true,
		"rebind.example": false, "127.0.0.1.example": false, "localhost.example:8484": false, "10.0.0.1": false, "[::2]:1": false, "0.0.0.0": false,
	}
	for _, c := range []struct {
		cfg  api.Config
		open bool
	}{{api.Config{}, false}, {api.Config{Tokens: tokens()}, true}, {api.Config{Insecure: true}, true}} {
		s := start(t, c.cfg, apitest.NewWorld())
		for host, loopback := range hosts {
			req := s.request(http.MethodGet, "/healthz", "")
			req.Host = host
			req.URL.Opaque, req.URL.Path = "", "/healthz"
			a := s.do(req)
			if loopback || c.open {
				a.wants(http.StatusOK)
				continue
			}
			blames(t, a.problem(403, "forbidden-host"), "header", "Host")
		}
	}
}

func TestABrowserCannotWriteForAnotherSite(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	doc := `{"text":"x"}`
	for _, foreign := range [][]string{
		{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "null"},
	} {
		s.postJSON("/v1/documents", doc, foreign...).problem(403, "cross-origin")
		s.send(http.MethodDelete, "/v1/documents/a", nil, foreign...).problem(403, "cross-origin")
		s.send(http.MethodPost, "/v1/dead-letters/x/replay", nil, foreign...).problem(403, "cross-origin")
	}
	if n := len(s.world.Publisher.Published()); n != 0 {
		t.Errorf("%d submissions were published", n)
	}
	for _, own := range [][]string{{"Origin", s.url}, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, nil} {
		s.postJSON("/v1/documents", doc, own...).wants(http.StatusAccepted)
	}
	a := s.get("/healthz", "Origin", "https://evil.example").wants(http.StatusOK)
	if h := a.header.Get("Access-Control-Allow-Origin"); h != "" {
		t.Errorf("another site may read: %q", h)
	}
}

func TestCheckListen(t *testing.T) {
	for _, c := range []struct {
		addr     string
		tokens   bool
		insecure bool
		ok       bool
	}{
		{"127.0.0.1:8484", false, false, true}, {"127.9.9.9:0", false, false, true}, {"[::1]:8484", false, false, true},
		{"localhost:8484", false, false, true}, {"[::1%lo]:1", false, false, true},
		{":8484", false, false, false}, {"0.0.0.0:8484", false, false, false}, {"[::]:8484", false, false, false},
		{"10.1.2.3:8484", false, false, false}, {"example.org:8484", false, false, false}, {"localhost.example:1", false, false, false},
		{"0.0.0.0:8484", true, false, true}, {"0.0.0.0:8484", false, true, true},
		{"127.0.0.1", false, false, false}, {"", true, true, false}, {"[::1:8484", true, false, false},
	} {
		var list []api.Token
		if c.tokens {
			list = tokens()
		}
		if err := api.CheckListen(c.addr, list, c.insecure); (err == nil) != c.ok {
			t.Errorf("CheckListen(%q, tokens %v, insecure %v) = %v", c.addr, c.tokens, c.insecure, err)
		}
	}
}
