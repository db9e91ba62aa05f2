package weaviate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// idleTimeout is below the 10 s after which the server closes a connection: a POST on one that it is just closing would
// end without an answer.
const idleTimeout = 5 * time.Second

// transport is what the client sends with. It keeps the Retry-After header, which the client drops, and asks for the token,
// which the client would take once.
type transport struct {
	base  *http.Transport
	token func(context.Context) (string, error) // nil: nothing is asked of us
}

func newTransport(tlsConfig *tls.Config, token func(context.Context) (string, error)) *transport {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = tlsConfig
	base.IdleConnTimeout = idleTimeout
	base.MaxIdleConnsPerHost = 16
	return &transport{base: base, token: token}
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
	if t.token != nil {
		text, err := bearer(r.Context(), t.token)
		if err != nil {
			if r.Body != nil {
				err = errors.Join(err, r.Body.Close())
			}
			return nil, err
		}
		r = r.Clone(r.Context()) // that of the caller is not to be changed
		r.Header.Set("Authorization", text)
	}
	response, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if after, ok := r.Context().Value(retryAfterKey{}).(*time.Duration); ok {
		*after = parseRetryAfter(response.Header.Get("Retry-After"), time.Now())
	}
	return response, nil
}

// bearer is the header of a request. Without a token nothing is sent.
func bearer(ctx context.Context, token func(context.Context) (string, error)) (string, error) {
	text, err := token(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: token: %w", errNotSent, err)
	}
	return "Bearer " + text, nil
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
