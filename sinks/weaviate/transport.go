package weaviate

import (
	"context"
	"crypto/tls"
	"net/http"
	"strconv"
	"time"
)

// idleTimeout is below the 10 s after which the server closes a connection: a POST on one that it is just closing would
// end without an answer.
const idleTimeout = 5 * time.Second

// transport is what the client sends with. It keeps the Retry-After header, which the client drops.
type transport struct{ base *http.Transport }

func newTransport(tlsConfig *tls.Config) *transport {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = tlsConfig
	base.IdleConnTimeout = idleTimeout
	base.MaxIdleConnsPerHost = 16
	return &transport{base: base}
}

func (t *transport) client(timeout time.Duration) *http.Client {
	return &http.Client{Transport: t, Timeout: timeout}
}

func (t *transport) close() { t.base.CloseIdleConnections() }

// retryAfterKey finds the place in a request's context where the wait that the server asks for is kept.
type retryAfterKey struct{}

// withRetryAfter gives a context in which the transport keeps Retry-After.
func withRetryAfter(ctx context.Context) (context.Context, *time.Duration) {
	after := new(time.Duration)
	return context.WithValue(ctx, retryAfterKey{}, after), after
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if after, ok := r.Context().Value(retryAfterKey{}).(*time.Duration); ok {
		*after = parseRetryAfter(response.Header.Get("Retry-After"), time.Now())
	}
	return response, nil
}

// parseRetryAfter reads seconds or a date; 0 if there is nothing to be read.
func parseRetryAfter(s string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(s); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	if at, err := http.ParseTime(s); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
