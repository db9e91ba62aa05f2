package weaviate

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func nodesAre(nodes ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/nodes" {
			http.Error(w, "{}", http.StatusNotFound)
			return
		}
		list := []map[string]string{}
		for i := 0; i < len(nodes); i += 2 {
			list = append(list, map[string]string{"name": nodes[i], "status": nodes[i+1]})
		}
		answer(w, map[string]any{"nodes": list})
	}
}

// forbidding answers the status of nodes with 403 and readiness with code.
func forbidding(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/.well-known/ready" {
			w.WriteHeader(code)
			return
		}
		http.Error(w, `{"error":[{"message":"forbidden"}]}`, http.StatusForbidden)
	}
}

func TestInterruptions(t *testing.T) {
	for name, tc := range map[string]struct {
		answers     []http.HandlerFunc // one after the other
		interrupted []bool
	}{
		"healthy":               {[]http.HandlerFunc{nodesAre("a", "HEALTHY"), nodesAre("a", "HEALTHY", "b", "HEALTHY")}, []bool{false, false}},
		"one of two is not":     {[]http.HandlerFunc{nodesAre("a", "HEALTHY", "b", "UNHEALTHY")}, []bool{true}},
		"one is not there":      {[]http.HandlerFunc{nodesAre("a", "UNAVAILABLE")}, []bool{true}},
		"one is slow":           {[]http.HandlerFunc{nodesAre("a", "TIMEOUT")}, []bool{false}},
		"one has left":          {[]http.HandlerFunc{nodesAre("a", "HEALTHY", "b", "HEALTHY"), nodesAre("a", "HEALTHY"), nodesAre("a", "HEALTHY")}, []bool{false, true, false}},
		"the server starts":     {[]http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }}, []bool{true}},
		"not allowed, ready":    {[]http.HandlerFunc{forbidding(http.StatusOK)}, []bool{false}},
		"not allowed, starting": {[]http.HandlerFunc{forbidding(http.StatusServiceUnavailable)}, []bool{true}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			var now atomic.Pointer[http.HandlerFunc]
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if h := now.Load(); h != nil {
					(*h)(w, r)
					return
				}
				f.ServeHTTP(w, r)
			}))
			defer server.Close()
			s := openStore(t, Options{URL: server.URL})
			for i, h := range tc.answers {
				now.Store(&h)
				if err := s.Interrupted(t.Context()); (err != nil) != tc.interrupted[i] {
					t.Errorf("answer %d: %v, want an interruption: %v", i, err, tc.interrupted[i])
				}
			}
		})
	}
}

// A server that has gone is told from one that does not answer.
func TestGoneIsNotSlow(t *testing.T) {
	const hangs, cuts = 1, 2
	f, free := newFake(), make(chan struct{})
	var mode atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch mode.Load() {
		case hangs:
			<-free
		case cuts:
			panic(http.ErrAbortHandler)
		default:
			f.ServeHTTP(w, r)
		}
	}))
	s := openStore(t, Options{URL: server.URL})
	mode.Store(hangs)
	if err := s.Interrupted(t.Context()); err != nil {
		t.Errorf("it is only slow: %v", err)
	}
	close(free)
	mode.Store(cuts)
	if err := s.Interrupted(t.Context()); err == nil {
		t.Error("its connections break off, and nothing happened")
	}
	server.Close()
	if err := s.Interrupted(t.Context()); err == nil {
		t.Error("it has gone, and nothing happened")
	}
}

// Whoever asks a server every second sees that it was killed and started again.
func TestKilledServerIsInterrupted(t *testing.T) {
	server := ownServer(t, 18280)
	s := openStore(t, Options{URL: server.url, GRPC: server.grpc})
	if err := s.Interrupted(t.Context()); err != nil {
		t.Fatalf("a healthy server: %v", err)
	}
	seen, stop, stopped := 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for every := time.NewTicker(time.Second); ; {
			select {
			case <-stop:
				every.Stop()
				return
			case <-every.C:
			}
			if s.Interrupted(context.Background()) != nil {
				seen++
			}
		}
	}()
	server.kill()
	if err := server.start(); err != nil {
		t.Fatal(err)
	}
	close(stop)
	<-stopped
	if seen == 0 {
		t.Error("the interruption was not seen")
	}
	healthy := func(ctx context.Context) bool { return s.Interrupted(ctx) == nil }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := poll(ctx, healthy); err != nil {
		t.Errorf("it is ready again and still interrupted: %v", s.Interrupted(t.Context()))
	}
}
