package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// exchange is one request and its answer. It paces both directions with deadlines that move with the progress, so that
// a slow but steady peer is served and one that stands still is let go.
type exchange struct {
	http.ResponseWriter
	req    *http.Request
	rc     *http.ResponseController
	write  time.Duration
	body   *pacedBody      // nil without a request body
	gone   <-chan struct{} // closed when the peer has closed its side; it may still read the answer
	status int             // 0 until the header is written
	broken bool            // the peer did not take the answer
	label  string          // the operation, for metrics
}

type exchangeKey struct{}

// exchangeOf is the exchange that a handler's context belongs to.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// newExchange wraps the pair; the returned request must be used from here on.
func newExchange(w http.ResponseWriter, r *http.Request, c Config) (*exchange, *http.Request) {
	x := &exchange{ResponseWriter: w, rc: http.NewResponseController(w), write: c.WriteTimeout, gone: r.Context().Done()}
	// A peer that has sent its request may close that half and wait for the answer: its end must not cancel the work.
	r = r.WithContext(context.WithValue(context.WithoutCancel(r.Context()), exchangeKey{}, x))
	if r.Body != nil && r.Body != http.NoBody {
		x.body = &pacedBody{body: r.Body, rc: x.rc, idle: c.BodyTimeout, expect: r.Header.Get("Expect") != ""}
		x.body.extend()
		r.Body = x.body
	}
	x.req = r
	return x, r
}

// Unwrap lets http.ResponseController find the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader sends the status. A refusal that leaves the request's body unread closes the connection afterwards:
// otherwise the server would wait for that body before it answers.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
		if status >= http.StatusBadRequest && x.body.unread() {
			x.Header().Set("Connection", "close")
		}
		_ = x.rc.SetWriteDeadline(time.Now().Add(x.write))
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write sends in pieces, each with a deadline of its own.
func (x *exchange) Write(b []byte) (int, error) {
	const piece = 64 << 10
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	n := 0
	for len(b) > 0 {
		_ = x.rc.SetWriteDeadline(time.Now().Add(x.write))
		m, err := x.ResponseWriter.Write(b[:min(len(b), piece)])
		n += m
		if err != nil {
			x.broken = true
			return n, err
		}
		b = b[m:]
	}
	return n, nil
}

// Bounds of lingering, see finish.
const (
	lingerPause = 2 * time.Second  // without a byte
	lingerTime  = 30 * time.Second // as a whole
	lingerBytes = 512 << 20
)

// finish lets a peer that is still sending a refused body read the answer: closing at once would reset the connection
// under it. What comes in is thrown away, within bounds and until the server drains.
func (x *exchange) finish(draining <-chan struct{}) {
	if x.status < http.StatusBadRequest || !x.body.unread() || x.body.failed || x.body.expect || x.broken {
		return
	}
	if x.rc.Flush() != nil {
		return
	}
	defer func() { _ = x.rc.SetWriteDeadline(time.Now().Add(x.write)) }()
	end := time.Now().Add(lingerTime)
	buf := make([]byte, 16<<10)
	for left := lingerBytes; left > 0 && time.Now().Before(end); {
		select {
		case <-draining:
			return
		default:
		}
		_ = x.rc.SetReadDeadline(time.Now().Add(lingerPause))
		n, err := x.body.body.Read(buf)
		if err != nil {
			return
		}
		left -= n
	}
}

// pacedBody moves the read deadline with every read: at most idle without a byte, and on average MinBodyRate. Only time
// spent waiting for the peer counts.
type pacedBody struct {
	body   io.ReadCloser
	rc     *http.ResponseController
	idle   time.Duration
	waited time.Duration
	got    int64
	done   bool
	failed bool
	expect bool // the peer waits for 100 Continue before it sends
}

// unread reports whether there may be more of the body; false without one.
func (b *pacedBody) unread() bool { return b != nil && !b.done }

func (b *pacedBody) extend() {
	earned := b.idle + time.Duration(b.got)*(time.Second/MinBodyRate)
	_ = b.rc.SetReadDeadline(time.Now().Add(min(b.idle, earned-b.waited)))
}

func (b *pacedBody) Read(p []byte) (int, error) {
	if b.done {
		return b.body.Read(p)
	}
	b.extend()
	before := time.Now()
	n, err := b.body.Read(p)
	b.waited += time.Since(before)
	b.got += int64(n)
	b.done = errors.Is(err, io.EOF) // net/http takes the deadline away then
	b.failed = err != nil && !b.done
	return n, err
}

func (b *pacedBody) Close() error { return b.body.Close() }

// bodyProblem says what an error of reading a body means.
func bodyProblem(err error) *Problem {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return problem(kindRequestTimeout, "the body stood still, or came in below %d bytes per second", MinBodyRate).
			over("body_bytes_per_second", MinBodyRate)
	}
	return problem(kindMalformedRequest, "the body ended early: %v", err).at("body", "body")
}
