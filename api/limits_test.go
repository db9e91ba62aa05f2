package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
)

// endless gives n bytes without holding them.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.left)
	for i := range p[:n] {
		p[i] = 'a'
	}
	e.left -= n
	return int(n), nil
}

// watchMemory samples what the program has allocated, until stop is called; stop gives the highest growth.
func watchMemory() (stop func() uint64) {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak atomic.Uint64
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if m.HeapAlloc > before.HeapAlloc {
				peak.Store(max(peak.Load(), m.HeapAlloc-before.HeapAlloc))
			}
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 {
		close(quit)
		<-done
		return peak.Load()
	}
}

func TestABodyOf100MiBIsRefusedWithoutBeingHeld(t *testing.T) {
	const size = 100 << 20
	for _, c := range []struct {
		name, method, path, contentType string
		announced                       bool
	}{
		{"announced JSON", http.MethodPost, "/v1/documents", "application/json", true},
		{"chunked JSON", http.MethodPost, "/v1/documents", "application/json", false},
		{"announced bytes", http.MethodPut, "/v1/documents/a", "application/pdf", true},
		{"chunked bytes", http.MethodPut, "/v1/documents/a", "application/pdf", false},
		{"wait", http.MethodPost, "/v1/messages:wait", "application/json", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, api.Config{}, apitest.NewWorld())
			req, err := http.NewRequest(c.method, s.url+c.path, &endless{size})
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", c.contentType)
			if c.announced {
				req.ContentLength = size
			}
			growth := watchMemory()
			a := s.do(req)
			grown := growth()
			p := a.problem(413, "too-large")
			limits(t, p, "body_bytes", 8<<20)
			// The limit itself, what the steps of growth leave for the collector, and the test's own client.
			if grown > 32<<20 {
				t.Errorf("memory grew by %d MiB", grown>>20)
			}
			t.Logf("memory grew by %d KiB", grown>>10)
		})
	}
}

func TestALineOf100MiBIsRefusedAloneWithoutBeingHeld(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	body := io.MultiReader(strings.NewReader("{\"id\":\"a\",\"text\":\"x\"}\n"), &endless{100 << 20}, strings.NewReader("\n{\"id\":\"b\",\"text\":\"x\"}"))
	req, err := http.NewRequest(http.MethodPost, s.url+"/v1/documents:batch", body)
	if err != nil {
		t.Fatal(err)
	}
	growth := watchMemory()
	results := s.do(req).results()
	if grown := growth(); grown > 40<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	if len(results) != 3 || results[0].Status != 202 || results[1].Status != 413 || results[2].Status != 202 {
		t.Fatalf("results %+v", results)
	}
	limits(t, *results[1].Problem, "body_bytes", 8<<20)
}

func TestABodyAtTheLimitIsTaken(t *testing.T) {
	const limit = 64 << 10
	s := start(t, api.Config{MaxBodyBytes: limit}, apitest.NewWorld())
	for _, chunked := range []bool{false, true} {
		put := func(size int64) answer {
			req, err := http.NewRequest(http.MethodPut, s.url+"/v1/documents/a", &endless{size})
			if err != nil {
				t.Fatal(err)
			}
			if !chunked {
				req.ContentLength = size
			}
			return s.do(req)
		}
		put(limit).wants(http.StatusAccepted)
		limits(t, put(limit+1).problem(413, "too-large"), "body_bytes", limit)
	}
	for _, p := range s.world.Publisher.Published() {
		if len(p.Document.Content) != limit {
			t.Errorf("%d bytes were published", len(p.Document.Content))
		}
	}
}

func TestTooManyBytesInFlightAre429(t *testing.T) {
	world := apitest.NewWorld()
	world.Publisher.Hold = make(chan struct{})
	world.Publisher.Entered = make(chan rag.Document)
	s := start(t, api.Config{MaxBodyBytes: 1 << 20, MaxInFlightBytes: 1 << 20, AdmissionWait: time.Millisecond}, world)
	put := func(size int64) answer {
		return s.send(http.MethodPut, "/v1/documents/a", &endless{size}, "Content-Type", "text/plain")
	}
	held := make(chan answer, 1)
	go func() { held <- put(1 << 20) }()
	receive(t, "the body that fills the budget", world.Publisher.Entered)
	a := put(1000)
	limits(t, a.problem(429, "overloaded"), "in_flight_bytes", 1<<20)
	if a.header.Get("Retry-After") == "" {
		t.Error("a 429 lacks Retry-After")
	}
	close(world.Publisher.Hold)
	receive(t, "the first answer", held).wants(http.StatusAccepted)
	go func() { held <- put(1000) }()
	receive(t, "a body after the budget was given back", world.Publisher.Entered)
	receive(t, "its answer", held).wants(http.StatusAccepted)
}

func TestRefusedBodiesGiveTheBudgetBack(t *testing.T) {
	s := start(t, api.Config{MaxBodyBytes: 64 << 10, MaxInFlightBytes: 64 << 10, AdmissionWait: time.Millisecond}, apitest.NewWorld())
	for range 5 {
		s.postJSON("/v1/documents", `{"unknown":"`+strings.Repeat("x", 60<<10)+`"}`).problem(422, "invalid-field")
		s.send(http.MethodPut, "/v1/documents/a", io.MultiReader(&endless{65 << 10})).problem(413, "too-large")
		batch := s.post("/v1/documents:batch", "application/x-ndjson", strings.Repeat("x", 60<<10)+"\n"+strings.Repeat("y", 70<<10)).results()
		if batch[0].Status != 400 || batch[1].Status != 413 {
			t.Fatalf("results %+v", batch)
		}
	}
	s.send(http.MethodPut, "/v1/documents/a", &endless{64 << 10}).wants(http.StatusAccepted)
}

func TestHeadersAboveTheLimit(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	limits(t, s.get("/healthz", "X-Long", strings.Repeat("x", 40<<10)).problem(431, "headers-too-large"), "header_bytes", 32<<10)
	many := make([]string, 0, 2000)
	for i := range 1000 {
		many = append(many, fmt.Sprintf("X-%d", i), strings.Repeat("v", 30))
	}
	s.get("/healthz", many...).problem(431, "headers-too-large")
	s.get("/healthz", "X-Long", strings.Repeat("x", 30<<10)).wants(http.StatusOK)
	limits(t, s.get("/v1/search?q="+strings.Repeat("x", 17<<10)).problem(414, "uri-too-long"), "uri_bytes", 16<<10)
}

// dial opens a raw connection.
func (s *site) dial() net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// read reads one answer from a raw connection.
func (s *site) read(conn net.Conn) answer {
	s.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatalf("read the answer: %v", err)
	}
	return readAnswer(s.t, resp)
}

func write(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatalf("write: %v", err)
	}
}
