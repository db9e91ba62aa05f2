package engine

import (
	"errors"
	"sync"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/stage"
)

// rowsRead are the rows that a batch has asked for. The first failure to read one is kept: a newer release has written it, or the
// local store cannot be read. What the handler makes of it counts nothing then, and it is no message's fault.
type rowsRead struct {
	mu    sync.Mutex
	err   error
	bases map[string]basis // by key, of the first time it was asked for: what is newer is merged
}

// reader gives rows to the handler; one that cannot be read is given as none.
func (r *rowsRead) reader(p *partition) func(key string) any {
	return func(key string) any {
		row, base, err := p.row(key)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err == nil {
			r.err = err
		}
		if _, again := r.bases[key]; !again {
			if r.bases == nil {
				r.bases = make(map[string]basis)
			}
			r.bases[key] = base
		}
		return row
	}
}

// base is what the row of a key was derived from.
func (r *rowsRead) base(key string) basis {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bases[key]
}

func (r *rowsRead) why() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
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
