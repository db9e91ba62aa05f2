package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/client"
)

// script answers one request after the other.
type script struct {
	mu      sync.Mutex
	steps   []http.HandlerFunc
	headers []http.Header
	bodies  []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	s.bodies = append(s.bodies, string(body))
	s.headers = append(s.headers, r.Header.Clone())
	step := s.steps[0]
	if len(s.steps) > 1 {
		s.steps = s.steps[1:]
	}
	step(w, r)
}

// seen are the headers and bodies of the requests so far.
func (s *script) seen() ([]http.Header, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.headers), slices.Clone(s.bodies)
}

func busy(status int, after string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		problem(w, status, "overloaded", "")
	}
}

func accept(w http.ResponseWriter, r *http.Request) {
	answer(w, 202, client.Accepted{DocumentID: "d", MessageID: r.Header.Get("Idempotency-Key")})
}

// hangUp breaks the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestRetriesHonourRetryAfter(t *testing.T) {
	s := &script{steps: []http.HandlerFunc{busy(429, "7"), busy(503, ""), busy(503, "99999"), accept}}
	var told []time.Duration
	c := serve(t, client.Options{Retry: client.Retry{For: time.Minute, Notify: func(_ error, wait time.Duration) { told = append(told, wait) }}}, s.ServeHTTP)
	waits := c.FakeClock()
	if _, err := c.Upload(t.Context(), client.Upload{ID: "d", Body: client.Bytes([]byte("text"))}); err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{7 * time.Second, 400 * time.Millisecond, 30 * time.Second}; !slices.Equal(*waits, want) || !slices.Equal(told, want) {
		t.Errorf("waited %v, told %v, want %v", *waits, told, want)
	}
	headers, bodies := s.seen()
	for i, h := range headers {
		if id := h.Get("Idempotency-Key"); id == "" || id != headers[0].Get("Idempotency-Key") || bodies[i] != "text" {
			t.Errorf("attempt %d has the message id %q and the body %q", i, id, bodies[i])
		}
	}
}

func TestRetriesEnd(t *testing.T) {
	s := &script{steps: []http.HandlerFunc{busy(503, "20")}}
	c := serve(t, client.Options{Retry: client.Retry{For: time.Minute}}, s.ServeHTTP)
	waits := c.FakeClock()
	_, err := c.Delete(t.Context(), "d", "m")
	var e *client.Error
	if !errors.As(err, &e) || e.Status != 503 {
		t.Errorf("got %v", err)
	}
	if len(*waits) != 2 { // a third one would end at a minute
		t.Errorf("waited %v", *waits)
	}
}

func TestWithoutPatienceOrReasonThereIsOneAttempt(t *testing.T) {
	for name, tc := range map[string]struct {
		retry client.Retry
		step  http.HandlerFunc
	}{
		"no patience": {client.Retry{}, busy(503, "1")},
		"a refusal":   {client.Retry{For: time.Hour, Unreachable: true}, busy(422, "")},
		"broken":      {client.Retry{For: time.Hour}, hangUp},
	} {
		s := &script{steps: []http.HandlerFunc{tc.step}}
		c := serve(t, client.Options{Retry: tc.retry}, s.ServeHTTP)
		c.FakeClock()
		_, err := c.Delete(t.Context(), "d", "m")
		if _, bodies := s.seen(); err == nil || len(bodies) != 1 {
			t.Errorf("%s: %d attempts, error %v", name, len(bodies), err)
		}
	}
}

func TestBrokenConnectionsAreRepeatedWhereThatIsSafe(t *testing.T) {
	patient := client.Options{Retry: client.Retry{For: time.Minute, Unreachable: true}}
	s := &script{steps: []http.HandlerFunc{hangUp, hangUp, accept}}
	c := serve(t, patient, s.ServeHTTP)
	c.FakeClock()
	if _, err := c.Upload(t.Context(), client.Upload{ID: "d", Body: client.Bytes([]byte("x"))}); err != nil {
		t.Error(err)
	}
	s = &script{steps: []http.HandlerFunc{hangUp, accept}}
	c = serve(t, patient, s.ServeHTTP)
	c.FakeClock()
	var broken *client.ConnectionError
	err := c.Replay(t.Context(), "l")
	if _, bodies := s.seen(); !errors.As(err, &broken) || len(bodies) != 1 {
		t.Errorf("a replay was sent %d times, error %v", len(bodies), err)
	}
}

func TestNothingListens(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c := connect(t, server.URL, client.Options{})
	var broken *client.ConnectionError
	if err := c.Alive(t.Context()); !errors.As(err, &broken) {
		t.Errorf("got %T %v", err, err)
	}
}

func TestContextEndsCallsAndWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, client.Options{Retry: client.Retry{For: time.Hour, Notify: func(error, time.Duration) { cancel() }}}, busy(503, "30"))
	if _, err := c.Stats(ctx); err == nil {
		t.Error("no error")
	}
	started := make(chan struct{})
	ctx, cancel = context.WithCancel(t.Context())
	hanging := serve(t, client.Options{}, func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	})
	go func() {
		<-started
		cancel()
	}()
	if _, err := hanging.Stats(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRetryAfterForms(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "-5": 0, "x": 0, "12": 12 * time.Second, "31": 30 * time.Second, "9223372036854775807": 30 * time.Second,
		"Fri, 02 Jan 2026 03:04:09 GMT": 4 * time.Second, "Fri, 02 Jan 2026 03:04:01 GMT": 0, "Sat, 03 Jan 2026 03:04:09 GMT": 30 * time.Second,
	} {
		if got := client.RetryAfter(text, now); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// lines of a request body.
func lines(r *http.Request) []string {
	var out []string
	for s := bufio.NewScanner(r.Body); s.Scan(); {
		out = append(out, s.Text())
	}
	return out
}

func TestBatchSendsBusyLinesAgain(t *testing.T) {
	var sent [][]string
	c := serve(t, client.Options{Retry: client.Retry{For: time.Minute}}, func(w http.ResponseWriter, r *http.Request) {
		got := lines(r)
		sent = append(sent, got)
		for i, line := range got {
			status := 202
			switch {
			case line == "bad":
				status = 422
			case len(sent) == 1 && strings.HasPrefix(line, "slow"):
				status = 503
			case len(sent) == 1 && line == "last":
				return // the server did not come to it
			}
			result := client.BatchResult{Line: i + 1, Status: status}
			if status != 202 {
				result.Problem = &client.Error{Title: "T", Status: status}
			} else {
				result.MessageID = line
			}
			_ = json.NewEncoder(w).Encode(result)
		}
	})
	c.FakeClock()
	in := [][]byte{[]byte("one"), []byte("slow2"), []byte("bad"), []byte("slow4"), []byte("last")}
	results, err := c.Batch(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(sent) != 2 || !slices.Equal(sent[1], []string{"slow2", "slow4", "last"}) {
		t.Errorf("sent %q", sent)
	}
	for i, r := range results {
		if r.Line != i+1 || (r.Problem == nil) != (string(in[i]) != "bad") || r.Problem == nil && r.MessageID != string(in[i]) {
			t.Errorf("line %d: %+v", i+1, r)
		}
	}
}

func TestBatchGivesUpOnBusyLinesWithTheirProblem(t *testing.T) {
	c := serve(t, client.Options{Retry: client.Retry{For: time.Second}}, func(w http.ResponseWriter, r *http.Request) {
		for i := range lines(r) {
			_ = json.NewEncoder(w).Encode(client.BatchResult{Line: i + 1, Status: 503, Problem: &client.Error{Title: "Not kept", Status: 503}})
		}
	})
	c.FakeClock()
	results, err := c.Batch(t.Context(), [][]byte{[]byte("a")})
	if err != nil || results[0].Problem == nil || results[0].Problem.Title != "Not kept" {
		t.Errorf("got %+v, %v", results, err)
	}
}

func TestBatchThatFailsAsAWhole(t *testing.T) {
	c := serve(t, client.Options{}, busy(413, ""))
	if _, err := c.Batch(t.Context(), [][]byte{[]byte("a")}); err == nil {
		t.Error("no error")
	}
	c = serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, client.BatchResult{Line: 2}) })
	if _, err := c.Batch(t.Context(), [][]byte{[]byte("a")}); err == nil {
		t.Error("an answer for a line that was not sent is taken")
	}
}
