package api_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
)

// wantClosed waits until the server has closed the connection.
func wantClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, conn)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatal("the server keeps the connection")
	}
}

func TestHeadersThatDoNotEnd(t *testing.T) {
	s := start(t, api.Config{HeaderTimeout: 30 * time.Millisecond}, apitest.NewWorld())
	conn := s.dial()
	write(t, conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
	wantClosed(t, conn)
}

func TestAnIdleConnectionIsClosed(t *testing.T) {
	s := start(t, api.Config{IdleTimeout: 30 * time.Millisecond}, apitest.NewWorld())
	conn := s.dial()
	write(t, conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	s.read(conn).wants(http.StatusOK)
	wantClosed(t, conn)
}

func TestConnectionsAreBounded(t *testing.T) {
	s := start(t, api.Config{MaxConnections: 1}, apitest.NewWorld())
	first := s.dial()
	write(t, first, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	s.read(first).wants(http.StatusOK)
	second := s.dial() // the system takes it, the server does not yet
	write(t, second, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if err := second.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := second.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the second connection was answered: %d bytes, %v", n, err)
	}
	if err := errors.Join(first.Close(), second.SetReadDeadline(time.Now().Add(patience))); err != nil {
		t.Fatal(err)
	}
	s.read(second).wants(http.StatusOK)
}

// Without a Host header no browser can be behind it.
func TestHTTP10WithoutAHost(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	conn := s.dial()
	write(t, conn, "GET /healthz HTTP/1.0\r\n\r\n")
	s.read(conn).wants(http.StatusOK)
}

func TestABodyThatStandsStillIs408(t *testing.T) {
	s := start(t, api.Config{BodyTimeout: 50 * time.Millisecond}, apitest.NewWorld())
	for _, head := range []string{
		"POST /v1/documents HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n",
		"PUT /v1/documents/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
	} {
		conn := s.dial()
		write(t, conn, head+"Host: localhost\r\n\r\n")
		s.read(conn).problem(408, "request-timeout")
		wantClosed(t, conn)
	}
	if n := len(s.world.Publisher.Published()); n != 0 {
		t.Errorf("%d unfinished bodies were published", n)
	}
}

func TestASlowButSteadyUploadIsTaken(t *testing.T) {
	// Twenty pieces, each well within the time for one, together far above it.
	const pieces, pause = 20, 10 * time.Millisecond
	s := start(t, api.Config{BodyTimeout: 100 * time.Millisecond}, apitest.NewWorld())
	conn := s.dial()
	write(t, conn, fmt.Sprintf("PUT /v1/documents/slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", pieces*100))
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for range pieces {
		<-tick.C
		write(t, conn, strings.Repeat("x", 100))
	}
	s.read(conn).wants(http.StatusAccepted)
	if d := s.world.Publisher.Published()[0].Document; len(d.Content) != pieces*100 {
		t.Errorf("%d bytes were published", len(d.Content))
	}
}

func TestADripOfBytesIs408(t *testing.T) {
	// A byte every few milliseconds is steady, but below the least speed.
	s := start(t, api.Config{BodyTimeout: 60 * time.Millisecond}, apitest.NewWorld())
	conn := s.dial()
	write(t, conn, "PUT /v1/documents/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
	answered := make(chan answer, 1)
	go func() { answered <- s.read(conn) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case a := <-answered:
			limits(t, a.problem(408, "request-timeout"), "body_bytes_per_second", api.MinBodyRate)
			return
		case <-tick.C:
			_, _ = io.WriteString(conn, "x") // fails once the server has closed
		}
	}
}

func TestAClientThatHalfClosesGetsItsAnswer(t *testing.T) {
	world := apitest.NewWorld()
	world.Publisher.Hold = make(chan struct{})
	world.Publisher.Entered = make(chan rag.Document)
	s := start(t, api.Config{}, world)
	conn := s.dial()
	body := `{"id":"half","text":"x"}`
	write(t, conn, fmt.Sprintf("POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	receive(t, "the submission", world.Publisher.Entered)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	close(world.Publisher.Hold)
	s.read(conn).wants(http.StatusAccepted)

	world.AddIndexed("half", apitest.Version(1), time.Unix(1, 0), "x")
	for _, path := range []string{"/v1/documents/half", "/v1/search?q=x", "/v1/stats"} {
		conn := s.dial()
		write(t, conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		s.read(conn).wants(http.StatusOK)
	}
}

func TestABodyThatEndsEarlyIs400(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for _, request := range []string{
		"PUT /v1/documents/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nshort",
		"PUT /v1/documents/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
		"PUT /v1/documents/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nshort\r\n0\r\n\r\n",
		"POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"text\":\"x\"}",
	} {
		conn := s.dial()
		write(t, conn, request)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		s.read(conn).problem(400, "malformed-request")
	}
	if n := len(s.world.Publisher.Published()); n != 0 {
		t.Errorf("%d cut bodies were published", n)
	}
}

func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	conn := s.dial()
	// The server must neither read the body first nor ask for it.
	write(t, conn, "POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n")
	s.read(conn).problem(415, "unsupported-media-type")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	wantClosed(t, conn)
	conn = s.dial()
	write(t, conn, "PUT /v1/documents/a HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100000000\r\n\r\n")
	s.read(conn).problem(413, "too-large")
}

func TestExpect100ContinueIsAnswered(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	conn := s.dial()
	write(t, conn, "PUT /v1/documents/a HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
	interim := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := io.ReadFull(conn, interim); err != nil || !strings.HasPrefix(string(interim), "HTTP/1.1 100") {
		t.Fatalf("%q %v", interim, err)
	}
	write(t, conn, "body")
	s.read(conn).wants(http.StatusAccepted)
}

// The answer before leaves its deadline on the connection; the 100 Continue must not meet it.
func TestExpect100ContinueOnAUsedConnection(t *testing.T) {
	const timeout = 20 * time.Millisecond
	s := start(t, api.Config{WriteTimeout: timeout}, apitest.NewWorld())
	conn := s.dial()
	write(t, conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	s.read(conn).wants(http.StatusOK)
	s.postJSON("/v1/messages:wait", `{"messages":[{"message_id":"none"}],"timeout_seconds":0.05}`).wants(http.StatusOK) // lets the time pass
	write(t, conn, "PUT /v1/documents/a HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
	interim := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := io.ReadFull(conn, interim); err != nil || !strings.HasPrefix(string(interim), "HTTP/1.1 100") {
		t.Fatalf("%q %v", interim, err)
	}
	write(t, conn, "body")
	s.read(conn).wants(http.StatusAccepted)
}

// Many clients send everything before they read anything: a refusal must reach them too, not a reset connection.
func TestAClientThatSendsBeforeItReadsGetsItsRefusal(t *testing.T) {
	const size = 40 << 20 // far more than the buffers between them
	s := start(t, api.Config{}, apitest.NewWorld())
	for _, length := range []string{fmt.Sprintf("Content-Length: %d", size), "Transfer-Encoding: chunked"} {
		conn := s.dial()
		write(t, conn, "PUT /v1/documents/a HTTP/1.1\r\nHost: localhost\r\n"+length+"\r\n\r\n")
		var body io.Writer = conn
		if !strings.HasPrefix(length, "Content") {
			body = httputil.NewChunkedWriter(conn)
		}
		if _, err := io.Copy(body, &endless{size}); err != nil {
			t.Fatalf("%s: the connection broke while the body was sent: %v", length, err)
		}
		s.read(conn).problem(413, "too-large")
	}
}

func TestAReaderThatStandsStillIsLetGo(t *testing.T) {
	world := apitest.NewWorld()
	text := strings.Repeat("x", 1<<20)
	texts := make([]string, 32)
	for i := range texts {
		texts[i] = text
	}
	world.AddIndexed("big", apitest.Version(1), time.Unix(1, 0), texts...)
	s := start(t, api.Config{WriteTimeout: 50 * time.Millisecond}, world)
	conn := s.dial()
	write(t, conn, "GET /v1/search?q=x&k=100 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	// Nothing is read. Shutdown, at the end of the test, would not return while the answer is being written.
	eventually(t, "the answer was given up", func() bool {
		var n float64
		metrics, err := world.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range metrics {
			if m.GetName() == "waymark_http_requests_total" {
				for _, c := range m.GetMetric() {
					n += c.GetCounter().GetValue()
				}
			}
		}
		return n == 1
	})
}

// A connection that is used again must not meet the deadlines of the request before.
func TestDeadlinesDoNotReachIntoTheNextRequest(t *testing.T) {
	s := start(t, api.Config{BodyTimeout: 40 * time.Millisecond, WriteTimeout: 40 * time.Millisecond, MessageWait: 100 * time.Millisecond}, apitest.NewWorld())
	conn := s.dial()
	for range 3 {
		write(t, conn, "PUT /v1/documents/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody")
		s.read(conn).wants(http.StatusAccepted)
		// It waits longer than either deadline before it answers.
		write(t, conn, "GET /v1/messages/none HTTP/1.1\r\nHost: localhost\r\n\r\n")
		s.read(conn).problem(404, "not-visible-yet")
		before := time.Now()
		body := `{"messages":[{"message_id":"none"}],"timeout_seconds":0.1}`
		write(t, conn, fmt.Sprintf("POST /v1/messages:wait HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		s.read(conn).wants(http.StatusOK)
		if waited := time.Since(before); waited < 100*time.Millisecond {
			t.Errorf("the deadline of the body ended the wait after %s", waited)
		}
	}
}
