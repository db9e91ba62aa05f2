package parse

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

const (
	// stopGrace is how long a reader may go on after its time. All of them look at the context while they work; only the
	// libraries below some of them do not.
	stopGrace = 10 * time.Second
	// maxStrays bounds the readers that were given up and still run. It bounds the memory that they hold.
	maxStrays = 4
)

// errStrays says that nothing is read any more before one of the readers that hang ends. It is no fault of the document.
var errStrays = errors.New("parse: too many documents that were given up are still being read")

type result struct {
	text Text
	err  error
}

// guarded reads a document in a goroutine of its own, and waits for it: a reader that crashes is the document's failure, and
// so is one that does not stop when its time is over. That one is left behind.
func (p *Parser) guarded(ctx context.Context, in Input) (Text, error) {
	if p.strays.Load() >= maxStrays {
		return Text{}, errStrays
	}
	var ended atomic.Bool // by whichever of the two comes first: the reader, or the end of patience
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if crash := recover(); crash != nil {
				r = result{err: reject(rag.ReasonPanic, "the parser crashed: %.200s", fmt.Sprint(crash))}
			}
			done <- r
			if ended.Swap(true) {
				p.strays.Add(-1)
			}
		}()
		r.text, r.err = p.read(ctx, in, 0)
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
	}
	patience := time.NewTimer(p.grace)
	defer patience.Stop()
	select {
	case r := <-done:
		return r.text, r.err
	case <-patience.C:
		p.strays.Add(1)
		if ended.Swap(true) {
			p.strays.Add(-1)
		}
		return Text{}, ctx.Err()
	}
}
