package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/net/netutil"
)

// Server answers the HTTP API. It may be used as an http.Handler alone; Start gives it a listener of its own.
type Server struct {
	cfg  Config
	deps Dependencies
	log  *slog.Logger

	handler    http.Handler
	exposition http.Handler
	openAPI    func() []byte // made when it is first asked for, as the documentation page
	meters     *meters
	origins    *http.CrossOriginProtection

	slots    *gate // submissions that wait for their acknowledgement
	bytes    *gate // request bodies held
	uploads  *gate // request bodies on their way to the blob store
	waiters  *gate // requests that wait for a message
	searches *gate
	recent   *recent

	draining chan struct{} // closed when Shutdown begins: who waits answers at once
	drain    sync.Once
	killed   context.Context // done when Shutdown has no more time: work is given up
	kill     context.CancelFunc
	requests sync.WaitGroup

	mu     sync.Mutex
	http   *http.Server
	served chan struct{} // closed when the listener's goroutine has ended
	err    error
}

// recentSubmissions is how many message ids the process remembers; some 100 bytes each.
const recentSubmissions = 16_384

// New makes a server. It refuses a configuration that Validate refuses, and missing dependencies.
func New(cfg Config, deps Dependencies) (*Server, error) {
	cfg = cfg.withDefaults()
	deps, missing := deps.withDefaults()
	if err := errors.Join(cfg.Validate(), missing); err != nil {
		return nil, err
	}
	m, err := newMeters(deps.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register the metrics of the API: %w", err)
	}
	s := newServer(cfg, deps)
	s.meters = m
	return s, nil
}

// newServer wires everything; cfg and deps are complete.
func newServer(cfg Config, deps Dependencies) *Server {
	killed, kill := context.WithCancel(context.Background())
	s := &Server{
		cfg: cfg, deps: deps, log: deps.Logger, exposition: exposition(deps), origins: http.NewCrossOriginProtection(),
		slots:    newGate("in_flight", int64(cfg.MaxInFlight), cfg.AdmissionWait),
		bytes:    newGate("in_flight_bytes", cfg.MaxInFlightBytes, cfg.AdmissionWait),
		uploads:  newGate("uploads", MaxUploads, cfg.AdmissionWait),
		waiters:  newGate("waiting", int64(cfg.MaxWaiting), cfg.AdmissionWait),
		searches: newGate("searches", int64(cfg.MaxSearches), cfg.AdmissionWait),
		recent:   newRecent(recentSubmissions, deps.Now),
		draining: make(chan struct{}), killed: killed, kill: kill,
	}
	rt := newRouter(s.before)
	document := s.register(rt)
	s.openAPI = sync.OnceValue(func() []byte { return encodeOpenAPI(document) })
	registerPages(rt, s.openAPI, sync.OnceValue(func() []byte { return renderDocs(document) }))
	s.handler = rt
	return s
}

// register adds every operation and gives the document that describes them.
func (s *Server) register(rt *router) *huma.OpenAPI {
	api := newAPI(rt, s.cfg)
	s.documentCalls(api)
	s.messageCalls(api)
	s.letterCalls(api)
	s.searchCall(api)
	s.healthCalls(api)
	return finishOpenAPI(api.OpenAPI())
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	defer s.requests.Done()
	begin := time.Now()
	x, r := newExchange(w, r, s.cfg)
	x.label = "none"
	defer func() {
		s.meters.requests.WithLabelValues(x.label, strconv.Itoa(x.status)).Inc()
		s.meters.seconds.WithLabelValues(x.label).Observe(time.Since(begin).Seconds())
	}()
	defer x.finish(s.draining)
	defer func() {
		if v := recover(); v != nil {
			s.panicked(x, v)
		}
	}()
	secure(x.Header())
	if p := s.guard(r); p != nil {
		p.write(x)
		return
	}
	s.handler.ServeHTTP(x, r)
}

// panicked answers a fault of this program. Where the answer has begun, only cutting the connection tells the peer. (The
// library panics too when an answer cannot be written: that is the peer's doing.)
func (s *Server) panicked(x *exchange, v any) {
	if !x.broken {
		s.log.Error("panic while answering", "operation", x.label, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	}
	if x.status == 0 {
		problem(kindInternal, "the log says more").write(x)
		return
	}
	x.broken = true
	panic(http.ErrAbortHandler)
}

// secure sets what every answer has; pages loosen the content policy for themselves.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
}

// guard judges what all requests have in common, before anything is looked up.
func (s *Server) guard(r *http.Request) *Problem {
	if n := len(r.RequestURI); n > MaxURIBytes {
		return problem(kindURITooLong, "path and query have %d bytes, above the limit of %d", n, MaxURIBytes).over("uri_bytes", MaxURIBytes)
	}
	if n := headerBytes(r); n > s.cfg.MaxHeaderBytes {
		return problem(kindHeadersTooLarge, "the headers have %d bytes, above the limit of %d", n, s.cfg.MaxHeaderBytes).
			over("header_bytes", int64(s.cfg.MaxHeaderBytes))
	}
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		if n := len(r.Header.Values(name)); n > 1 {
			return problem(kindMalformedRequest, "the header is there %d times", n).at("header", name)
		}
	}
	// Browsers always name the host; HTTP/1.0 need not.
	if len(s.cfg.Tokens) == 0 && !s.cfg.Insecure && r.Host != "" && !loopbackHost(hostOf(r.Host)) {
		return problem(kindForbiddenHost, "the host %q does not name this machine; configure api.tokens to be reached by other names", r.Host).at("header", "Host")
	}
	if err := s.origins.Check(r); err != nil {
		return problem(kindCrossOrigin, "%v", err).at("header", "Origin")
	}
	return nil
}

// headerBytes is the size of the request line and the headers as they were sent, near enough.
func headerBytes(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Proto) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

// OpenAPI is the document that the server serves at /openapi.json.
func (s *Server) OpenAPI() []byte { return s.openAPI() }

// Start answers on the listener, which it closes at the end, and returns at once. It may be called once.
func (s *Server) Start(ln net.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return errors.New("the API server was started before")
	}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.cfg.HeaderTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		// Above the limit up to twice the limit the answer is a problem; what is larger still, net/http refuses itself.
		MaxHeaderBytes: 2 * s.cfg.MaxHeaderBytes,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.served = make(chan struct{})
	go func() {
		defer close(s.served)
		if err := s.http.Serve(netutil.LimitListener(ln, s.cfg.MaxConnections)); !errors.Is(err, http.ErrServerClosed) {
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
		}
	}()
	return nil
}

// Done is closed when the server has stopped listening; Err then says why. It is nil before Start.
func (s *Server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
}

// Err is why the server stopped listening by itself; nil while it runs and after Shutdown.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Shutdown stops listening, lets requests in hand end, and returns when nothing of the server runs any more. Requests
// that wait for a message answer at once; submissions are finished. When ctx ends first, connections are cut and work
// is given up: submissions of which nobody knows whether they were kept are answered by nobody, or with 503. It may be
// called more than once and without Start.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain.Do(func() { close(s.draining) })
	inTime := context.AfterFunc(ctx, s.kill)
	s.mu.Lock()
	server, served := s.http, s.served
	s.mu.Unlock()
	var err error
	if server != nil {
		if err = server.Shutdown(ctx); err != nil {
			err = fmt.Errorf("requests were cut off at shutdown: %w", errors.Join(err, server.Close()))
		}
		<-served
	}
	s.requests.Wait()
	if !inTime() && err == nil {
		err = fmt.Errorf("requests were given up at shutdown: %w", ctx.Err())
	}
	s.kill()
	return err
}
