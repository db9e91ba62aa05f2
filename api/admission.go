package api

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// gate bounds how much of one thing is in flight. Who comes when it is full waits a short time and is then refused.
type gate struct {
	sem   *semaphore.Weighted
	limit int64
	name  string // of the limit, for the refusal
	wait  time.Duration
}

func newGate(name string, limit int64, wait time.Duration) *gate {
	return &gate{sem: semaphore.NewWeighted(limit), limit: limit, name: name, wait: wait}
}

// enter takes n; the caller gives them back with leave. It returns a 429 when there is no room in time.
func (g *gate) enter(ctx context.Context, n int64) *Problem {
	if g.sem.TryAcquire(n) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.wait)
	defer cancel()
	if g.sem.Acquire(ctx, n) == nil {
		return nil
	}
	return problem(kindOverloaded, "too much is in flight: the limit %s is reached", g.name).over(g.name, g.limit).after(time.Second)
}

func (g *gate) leave(n int64) { g.sem.Release(n) }

// lease is a part of the byte budget that grows with a body and is given back once, as a whole.
type lease struct {
	gate *gate
	held int64
}

// grow makes the lease at least n bytes.
func (l *lease) grow(ctx context.Context, n int64) *Problem {
	if n <= l.held {
		return nil
	}
	if p := l.gate.enter(ctx, n-l.held); p != nil {
		return p
	}
	l.held = n
	return nil
}

// release gives the bytes back.
func (l *lease) release() {
	if l.held > 0 {
		l.gate.leave(l.held)
		l.held = 0
	}
}
