package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test. It is never spent when the code is right.
const patience = 20 * time.Second

// site is a running server with its fakes.
type site struct {
	t      *testing.T
	world  *apitest.World
	server *api.Server
	addr   string
	url    string
	client *http.Client
}

// start runs a server on a free loopback port; it is shut down with the test.
func start(t *testing.T, cfg api.Config, world *apitest.World) *site {
	t.Helper()
	return startWith(t, cfg, world, world.Dependencies())
}

func startWith(t *testing.T, cfg api.Config, world *apitest.World, deps api.Dependencies) *site {
	t.Helper()
	server, err := api.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(ln); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	s := &site{
		t: t, world: world, server: server, addr: ln.Addr().String(), url: "http://" + ln.Addr().String(),
		client: &http.Client{Transport: transport, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return s
}

// on is the same site for a subtest.
func (s *site) on(t *testing.T) *site {
	c := *s
	c.t = t
	return &c
}

// answer is what a call got.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// send makes one request; header holds name, value pairs.
func (s *site) send(method, path string, body io.Reader, header ...string) answer {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	return answer{t: s.t, status: resp.StatusCode, header: resp.Header, body: b}
}

func (s *site) get(path string, header ...string) answer {
	s.t.Helper()
	return s.send(http.MethodGet, path, nil, header...)
}

func (s *site) post(path, contentType, body string, header ...string) answer {
	s.t.Helper()
	return s.send(http.MethodPost, path, strings.NewReader(body), append([]string{"Content-Type", contentType}, header...)...)
}

func (s *site) postJSON(path, body string, header ...string) answer {
	s.t.Helper()
	return s.post(path, "application/json", body, header...)
}

// serve gives a request to the handler without a network.
func serve(server *api.Server, r *http.Request) answer {
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return answer{status: w.Code, header: w.Header(), body: w.Body.Bytes()}
}

// decode reads the answer's JSON strictly.
func (a answer) decode(into any) {
	a.t.Helper()
	dec := json.NewDecoder(bytes.NewReader(a.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		a.t.Fatalf("the answer %q cannot be decoded: %v", a.body, err)
	}
}

// wants fails the test unless the answer has the status.
func (a answer) wants(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d; body %s", a.status, status, a.body)
	}
	return a
}

// problem checks that the answer is a problem of the kind and gives it.
func (a answer) problem(status int, kind string) api.Problem {
	a.t.Helper()
	a.wants(status)
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		a.t.Fatalf("the Content-Type of a refusal is %q; body %s", ct, a.body)
	}
	var p api.Problem
	a.decode(&p)
	if p.Type != "urn:waymark:problem:"+kind || p.Status != status || p.Title == "" {
		a.t.Fatalf("problem %+v, want status %d and type %s", p, status, kind)
	}
	return p
}

// blames checks which field a problem names.
func blames(t *testing.T, p api.Problem, in, field string) {
	t.Helper()
	if p.In != in || p.Field != field {
		t.Errorf("it blames %s %q, want %s %q (%s)", p.In, p.Field, in, field, p.Detail)
	}
}

// limits checks which limit a problem names.
func limits(t *testing.T, p api.Problem, name string, value int64) {
	t.Helper()
	if p.Limit == nil || p.Limit.Name != name || p.Limit.Value != value {
		t.Errorf("it names the limit %+v, want %s = %d", p.Limit, name, value)
	}
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			t.Fatalf("it did not come to it that %s", what)
		case <-tick.C:
		}
	}
}

// receive waits for a value.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// newRequest is a request as the server would read it from the wire.
func newRequest(method, target string, body io.Reader) *http.Request {
	r := httptest.NewRequest(method, target, body)
	r.Host = "127.0.0.1"
	return r
}

// readAnswer reads a response to its end.
func readAnswer(t *testing.T, resp *http.Response) answer {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	return answer{t: t, status: resp.StatusCode, header: resp.Header, body: b}
}

// decodeJSON reads the JSON of an answer of success.
func decodeJSON(a answer, into any) error {
	if a.status != http.StatusOK {
		return fmt.Errorf("status %d: %s", a.status, a.body)
	}
	return json.Unmarshal(a.body, into)
}
