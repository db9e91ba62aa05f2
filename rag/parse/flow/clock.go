package flow

import (
	"context"
	"sync"
	"time"
)

// WithTime is context.WithTimeout with a clock that Hold stops. The context names no deadline, because it may move.
func WithTime(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	t := &timed{Context: parent, done: make(chan struct{}), left: limit, since: time.Now()}
	t.outer, _ = parent.Value(timedKey{}).(*timed)
	if err := parent.Err(); err != nil {
		t.end(err)
		return t, func() {}
	}
	t.timer = time.AfterFunc(limit, func() { t.end(context.DeadlineExceeded) })
	forget := context.AfterFunc(parent, func() { t.end(parent.Err()) })
	return t, func() {
		forget()
		t.timer.Stop()
		t.end(context.Canceled)
	}
}

// Hold stops the clocks of all contexts by WithTime that ctx comes from, until what it returns is called, once: for what has a
// limit of its own, or none because it waits for others.
func Hold(ctx context.Context) (release func()) {
	inner, _ := ctx.Value(timedKey{}).(*timed)
	for t := inner; t != nil; t = t.outer {
		t.hold()
	}
	return func() {
		for t := inner; t != nil; t = t.outer {
			t.release()
		}
	}
}

type timedKey struct{}

// timed is a context whose time can be held.
type timed struct {
	context.Context // its parent
	outer           *timed
	done            chan struct{}
	timer           *time.Timer // nil if the parent had ended already

	mu    sync.Mutex
	err   error
	left  time.Duration // when the timer was started last
	since time.Time     // when that was
	held  int
}

func (t *timed) Done() <-chan struct{} { return t.done }

func (t *timed) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *timed) Value(key any) any {
	if key == (timedKey{}) {
		return t
	}
	return t.Context.Value(key)
}

func (t *timed) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
		close(t.done)
	}
}

func (t *timed) hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held++; t.held == 1 && t.err == nil {
		t.timer.Stop()
		t.left -= time.Since(t.since)
	}
}

func (t *timed) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held--; t.held == 0 && t.err == nil {
		t.since = time.Now()
		t.timer.Reset(max(t.left, 0))
	}
}
