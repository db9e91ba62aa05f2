package engine

import (
	"errors"
	"sync"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/stage"
)

// unreadRow is the first failure to read a row that a batch has asked for: a newer release has written it, or the local store
// cannot be read. What the handler makes of it counts nothing then, and it is no message's fault.
type unreadRow struct {
	mu  sync.Mutex
	err error
}

// reader gives rows to the handler; one that cannot be read is given as none.
func (u *unreadRow) reader(p *partition) func(key string) any {
	return func(key string) any {
		row, _, err := p.row(key)
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.err == nil {
			u.err = err
		}
		return row
	}
}

func (u *unreadRow) why() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// unreadError is the error of a batch one of whose rows could not be read.
type unreadError struct{ err error }

func (e *unreadError) Error() string { return e.err.Error() }
func (e *unreadError) Unwrap() error { return e.err }

// holdUnread holds a batch until its rows can be read; false if the batch is over. No canary is asked: whatever else works, this
// pod cannot. A damaged store is not mended by waiting: the processor is rebuilt, and with it the store.
func (b *batcher) holdUnread(todo [][]batched, err error, pause func(error, stage.Class, int) bool, waits int) bool {
	if errors.Is(err, kafka.ErrStoreDamaged) {
		b.p.giveBack(todo[0][0].f, err)
	} else if pause(err, stage.ClassOutage, waits) {
		return true
	}
	abandonBatches(todo)
	return false
}
