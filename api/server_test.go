package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
)

func TestNewNamesEveryFault(t *testing.T) {
	_, err := api.New(api.Config{MaxBodyBytes: 1, MaxBatchLines: 5000, IdleTimeout: -1, Tokens: []api.Token{{Name: "bad"}}}, api.Dependencies{})
	if err == nil {
		t.Fatal("a wrong configuration was taken")
	}
	for _, want := range []string{"MaxBodyBytes", "MaxBatchLines", "IdleTimeout", `"bad"`, "Publisher", "Gatherer", "Searcher"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s:\n%v", want, err)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	if err := (api.Config{}).Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	token := api.Token{Name: "t", SHA256: api.HashToken("secret"), Scopes: []api.Scope{api.ScopeRead}}
	for name, c := range map[string]api.Config{
		"MaxBodyBytes":     {MaxBodyBytes: 65 << 20},
		"MaxHeaderBytes":   {MaxHeaderBytes: 100},
		"MaxConnections":   {MaxConnections: -1},
		"MaxInFlight":      {MaxInFlight: -1},
		"MaxInFlightBytes": {MaxInFlightBytes: 1 << 20},
		"MaxWaiting":       {MaxWaiting: -1},
		"MaxSearches":      {MaxSearches: -1},
		"MessageWait":      {MessageWait: time.Minute},
		"the hash":         {Tokens: []api.Token{{Scopes: token.Scopes}}},
		"hash is empty":    {Tokens: []api.Token{{SHA256: api.HashToken(""), Scopes: token.Scopes}}},
		"no scopes":        {Tokens: []api.Token{{SHA256: token.SHA256}}},
		"the scope":        {Tokens: []api.Token{{SHA256: token.SHA256, Scopes: []api.Scope{"write"}}}},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (api.Config{Tokens: []api.Token{token}, MaxBodyBytes: 64 << 20}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	world := apitest.NewWorld()
	s := start(t, api.Config{}, world)
	var h api.Health
	s.get("/healthz").wants(http.StatusOK).decode(&h)
	var r api.Ready
	s.get("/readyz").wants(http.StatusOK).decode(&r)
	if h.Status != "ok" || !r.Ready {
		t.Errorf("%+v %+v", h, r)
	}
	world.Readiness.Reasons = []api.NotReady{{Reason: "views_recovering", Message: "3 of 12 partitions"}, {Reason: "kafka_away"}}
	p := s.get("/readyz").problem(503, "not-ready")
	if len(p.Reasons) != 2 || p.Reasons[0] != world.Readiness.Reasons[0] {
		t.Errorf("reasons %+v", p.Reasons)
	}
	s.get("/healthz").wants(http.StatusOK)
}

func TestStats(t *testing.T) {
	world := apitest.NewWorld()
	world.Stats.Counts = api.Stats{
		Documents: map[rag.Status]int64{rag.StatusIndexed: 3}, DeadLetters: map[rag.LetterState]int64{rag.LetterWaiting: 1},
		Lag: map[string]int64{"chunker": 2}, Store: api.StoreStats{Chunks: 9},
	}
	s := start(t, api.Config{}, world)
	var got api.Stats
	s.get("/v1/stats").wants(http.StatusOK).decode(&got)
	if got.Documents[rag.StatusIndexed] != 3 || got.DeadLetters[rag.LetterWaiting] != 1 || got.Lag["chunker"] != 2 || got.Store.Chunks != 9 {
		t.Errorf("stats %+v", got)
	}
	world.Stats.Err = errors.New("store: connection refused")
	if p := s.get("/v1/stats").problem(503, "unavailable"); p.Reason != "counts_unavailable" {
		t.Errorf("reason %q", p.Reason)
	}
}

func TestMetricsCountOperationsNeverIDs(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	s.get("/v1/documents/secret-id")
	s.get("/nothing/secret-path")
	a := s.get("/metrics").wants(http.StatusOK)
	text := string(a.body)
	for _, want := range []string{
		`waymark_http_requests_total{operation="get-document",status="404"} 1`,
		`waymark_http_requests_total{operation="none",status="404"} 1`,
		`waymark_http_request_seconds_count{operation="get-document"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(text, "secret") || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
		t.Errorf("Content-Type %q:\n%s", a.header.Get("Content-Type"), text)
	}
}

// syncBuffer is a log that tests read while the server writes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// panicking is a reader with a fault.
type panicking struct{}

func (panicking) Stats(context.Context) (api.Stats, error) { panic("the fault") }

func TestAPanicIsAnInternalError(t *testing.T) {
	world := apitest.NewWorld()
	deps := world.Dependencies()
	deps.Stats = panicking{}
	var log syncBuffer
	deps.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := startWith(t, api.Config{}, world, deps)
	p := s.get("/v1/stats").problem(500, "internal-error")
	if strings.Contains(p.Detail, "the fault") || !strings.Contains(log.String(), "the fault") {
		t.Errorf("answered %q, logged %q", p.Detail, log.String())
	}
	s.get("/healthz").wants(http.StatusOK)
}

func TestShutdownFinishesSubmissionsAndEndsWaiting(t *testing.T) {
	world := apitest.NewWorld()
	world.Publisher.Hold = make(chan struct{})
	world.Publisher.Entered = make(chan rag.Document)
	s := start(t, api.Config{MessageWait: patience}, world)
	submitted, waited := make(chan answer, 1), make(chan answer, 1)
	go func() { submitted <- s.postJSON("/v1/documents", `{"text":"x"}`) }()
	go func() {
		waited <- s.postJSON("/v1/messages:wait", `{"messages":[{"message_id":"m"}],"timeout_seconds":30}`)
	}()
	receive(t, "the submission", world.Publisher.Entered)
	eventually(t, "one request waits", func() bool { return world.Messages.Looks() > 1 })
	down := make(chan error, 1)
	go func() { down <- s.server.Shutdown(t.Context()) }()
	var r api.WaitResult
	receive(t, "the answer of who waits", waited).wants(http.StatusOK).decode(&r)
	if r.Pending != 1 {
		t.Errorf("wait result %+v", r)
	}
	select {
	case err := <-down:
		t.Fatalf("shutdown returned %v while a submission was in hand", err)
	default:
	}
	eventually(t, "it listens no more", func() bool {
		conn, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(world.Publisher.Hold)
	receive(t, "the answer of the submission", submitted).wants(http.StatusAccepted)
	if err := receive(t, "shutdown", down); err != nil {
		t.Error(err)
	}
	receive(t, "the end", s.server.Done())
	if err := s.server.Err(); err != nil {
		t.Error(err)
	}
}

func TestShutdownOutOfTimeGivesWorkUp(t *testing.T) {
	world := apitest.NewWorld()
	world.Publisher.Hold = make(chan struct{}) // never
	world.Publisher.Entered = make(chan rag.Document)
	s := start(t, api.Config{}, world)
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp, err := s.client.Post(s.url+"/v1/documents", "application/json", strings.NewReader(`{"text":"x"}`))
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusAccepted {
				t.Error("202 for a submission that was given up")
			}
		}
	}()
	receive(t, "the submission", world.Publisher.Entered)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown says %v", err)
	}
	receive(t, "the end of the submission", done)
}

func TestShutdownWithoutStartAndTwice(t *testing.T) {
	world := apitest.NewWorld()
	server, err := api.New(api.Config{}, world.Dependencies())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if a := serve(server, newRequest(http.MethodGet, "/readyz", nil)); a.status != 503 || !strings.Contains(string(a.body), "shutting_down") {
		t.Errorf("ready after shutdown: %d %s", a.status, a.body)
	}
}

func TestStartTwiceAndAListenerThatFails(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	if err := s.server.Start(nil); err == nil {
		t.Error("started twice")
	}
	server, err := api.New(api.Config{}, apitest.NewWorld().Dependencies())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(failingListener{}); err != nil {
		t.Fatal(err)
	}
	receive(t, "the end", server.Done())
	if err := server.Err(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("it says %v", err)
	}
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

type failingListener struct{}

func (failingListener) Accept() (net.Conn, error) { return nil, io.ErrClosedPipe }
func (failingListener) Close() error              { return nil }
func (failingListener) Addr() net.Addr            { return &net.TCPAddr{} }
