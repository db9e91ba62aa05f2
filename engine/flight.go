package engine

import (
	"sync"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/stage"
)

// flight is one message from its delivery until it is finished or abandoned. It counts what was sent on its behalf.
type flight struct {
	p      *partition
	claim  claimKey
	offset int64
	done   func(error) // goka's; safe to call more than once

	mu      sync.Mutex
	pending int
	err     error
	said    []stage.Output
	over    bool
}

// hold keeps the flight from completing until the returned function is called with the outcome of one send.
func (f *flight) hold() func(offset int64, err error) {
	f.trace(fault.Held)
	f.mu.Lock()
	f.pending++
	f.mu.Unlock()
	return f.ack
}

func (f *flight) ack(_ int64, err error) {
	if err != nil {
		f.trace(fault.Failed)
	} else {
		f.trace(fault.Acked)
	}
	f.mu.Lock()
	if err != nil && f.err == nil {
		f.err = err
	}
	f.pending--
	ready := f.pending == 0 && !f.over
	said := f.said
	err = f.err
	if ready && err == nil {
		f.said = nil
	}
	f.mu.Unlock()
	if !ready {
		return
	}
	switch {
	case err != nil:
		f.p.sendFailed(f, err)
	case len(said) > 0:
		f.p.speaker.add(f, said)
	default:
		f.finish()
	}
}

// sending reports whether something of the flight is on its way to Kafka.
func (f *flight) sending() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending > 0
}

// finish lets the offset be committed once all before it are.
func (f *flight) finish() {
	fault.Hit(fault.BeforeCommit)
	f.close(func() {
		f.trace(fault.Finished)
		f.done(nil)
	})
}

func (f *flight) trace(event string) {
	fault.Trace(event, f.p.session, f.claim.topic, f.claim.partition, f.offset)
}

// abandon gives the message back: the gate first, so that goka's commit cannot pass it (contract rule 14).
func (f *flight) abandon() {
	f.close(func() {
		f.trace(fault.Abandoned)
		if g := f.p.session.gate(f.claim); g != nil {
			g.abandon(f.offset)
		}
		f.done(nil)
	})
}

// fail ends the processor with the error; it is rebuilt, and the message comes again.
func (f *flight) fail(err error) {
	f.close(func() {
		f.trace(fault.Abandoned)
		if g := f.p.session.gate(f.claim); g != nil {
			g.abandon(f.offset)
		}
		f.done(err)
	})
}

func (f *flight) close(end func()) {
	f.mu.Lock()
	over := f.over
	f.over = true
	f.mu.Unlock()
	if over {
		return
	}
	end()
	f.p.land(f)
}
