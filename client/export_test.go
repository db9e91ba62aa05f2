package client

import (
	"context"
	"time"
)

// FakeClock makes the client wait on a clock of its own that jumps ahead, and returns the waits.
func (c *Client) FakeClock() *[]time.Duration {
	waits := &[]time.Duration{}
	c.clock = &fakeClock{now: time.Unix(1_700_000_000, 0), waits: waits}
	return waits
}

type fakeClock struct {
	now   time.Time
	waits *[]time.Duration
}

func (f *fakeClock) Now() time.Time  { return f.now }
func (f *fakeClock) Jitter() float64 { return 1 }

func (f *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	f.now = f.now.Add(d)
	*f.waits = append(*f.waits, d)
	return ctx.Err()
}

var RetryAfter = retryAfter
