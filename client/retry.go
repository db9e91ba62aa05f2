package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	// maxWait is the longest wait between two attempts, whatever the server asks for.
	maxWait      = 30 * time.Second
	firstBackoff = 200 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// Retry says how patient calls are.
type Retry struct {
	// For is how long one call goes on being repeated while the answer is 429 or 503, with the waits that the server asks
	// for (at most 30 s each). 0: a call is made once.
	For time.Duration
	// Unreachable says that calls are repeated, for as long, where no connection can be made or it breaks: all but those
	// that must not be carried out twice.
	Unreachable bool
	// Notify is told of every wait before it begins; nil: nobody is. It must return soon.
	Notify func(err error, wait time.Duration)
}

// clock is the time as calls see it; tests have their own.
type clock interface {
	Now() time.Time
	// Sleep returns early with the context's error.
	Sleep(ctx context.Context, d time.Duration) error
	// Jitter is between 0 and 1.
	Jitter() float64
}

type systemClock struct{}

func (systemClock) Now() time.Time  { return time.Now() }
func (systemClock) Jitter() float64 { return rand.Float64() } //nolint:gosec // spreads waits, guards nothing

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retry repeats attempt while its error may pass and there is time.
func (c *Client) retry(ctx context.Context, safe bool, attempt func() error) error {
	deadline := c.clock.Now().Add(c.opts.Retry.For)
	backoff := firstBackoff
	for {
		err := attempt()
		if err == nil || ctx.Err() != nil || !c.mayPass(err, safe) {
			return err
		}
		wait := time.Duration(float64(backoff) * (0.5 + c.clock.Jitter()/2))
		backoff = min(2*backoff, lastBackoff)
		var e *Error
		if errors.As(err, &e) && e.RetryAfter > 0 {
			wait = e.RetryAfter
		}
		if !c.clock.Now().Add(wait).Before(deadline) {
			return err
		}
		if c.opts.Retry.Notify != nil {
			c.opts.Retry.Notify(err, wait)
		}
		if c.clock.Sleep(ctx, wait) != nil {
			return err
		}
	}
}

// mayPass reports whether the same call may succeed later. Without a status nobody knows whether the call was carried
// out; a 429 or 503 says that it was not, or that repeating it is what the server asks for.
func (c *Client) mayPass(err error, safe bool) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable
	}
	var broken *ConnectionError
	return errors.As(err, &broken) && safe && c.opts.Retry.Unreachable
}
