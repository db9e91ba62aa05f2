package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/stage"
)

// batcher collects the messages of one batch input of one partition and works on them off goka's goroutine, one batch at
// a time: a key has one writer.
type batcher struct {
	p  *partition
	in *input

	mu      sync.Mutex
	waiting []batched
	bytes   int
	since   time.Time
	wake    chan struct{}
}

// batched is one message that waits for its batch.
type batched struct {
	f       *flight
	raw     rawMessage
	message any
	size    int
}

func newBatcher(p *partition, in *input) *batcher {
	return &batcher{p: p, in: in, wake: make(chan struct{}, 1)}
}

// prepare decodes a message for its batch; one that cannot be decoded is a failure of its own and never joins one.
func (p *partition) prepare(f *flight, in *input, raw rawMessage) {
	var m any
	var res result
	var row encodedRow
	err := p.try(func() (err error) {
		if err := p.r.suspects.convicted(raw.record); err != nil {
			return err
		}
		m, err = in.prepare(raw)
		if err == nil || errors.Is(err, stage.ErrNewerFormat) {
			return err
		}
		return stage.Reject(ReasonUndecodable, "a record of %s: %w", in.topic, err)
	}, func(fl Failure) (err error) {
		fl.Record, m = raw.record, nil
		res, row, err = p.failureResult(fl, nil)
		return err
	})
	switch {
	case err != nil:
		p.giveBack(f, err)
	case m == nil:
		p.r.env.Metrics.observe(p.r.env.Stage, in.topic, errFailed, 0)
		p.apply(f, res, row)
	default:
		if mutant.Active == mutant.CommitBeforeUpsert {
			f.finish()
		}
		p.batches[in.topic].add(batched{f, raw, m, len(raw.record.Value)})
	}
}

// ReasonUndecodable is the reason of a failure whose record could not be decoded.
const ReasonUndecodable = "undecodable"

func (b *batcher) add(m batched) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.since = b.p.r.env.Clock.Now()
	}
	b.waiting = append(b.waiting, m)
	b.bytes += m.size
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take returns the next batch, or how long to wait for it (-1: until something is added).
func (b *batcher) take() (batch []batched, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.in.batch
	if len(b.waiting) == 0 {
		return nil, -1
	}
	full := len(b.waiting) >= o.MaxMessages || b.bytes >= o.MaxBytes
	if left := o.Linger - b.p.r.env.Clock.Now().Sub(b.since); !full && left > 0 {
		return nil, left
	}
	n, size := 0, 0
	for n < len(b.waiting) && n < o.MaxMessages && (n == 0 || size+b.waiting[n].size <= o.MaxBytes) {
		if n > 0 && (b.suspected(0) || b.suspected(n)) {
			break // a suspect is worked on alone
		}
		size += b.waiting[n].size
		n++
	}
	batch = append(batch, b.waiting[:n]...)
	b.waiting = append([]batched(nil), b.waiting[n:]...)
	b.bytes -= size
	return batch, 0
}

func (b *batcher) suspected(i int) bool {
	s := b.p.r.suspects
	if !s.any() {
		return false
	}
	r := b.waiting[i].raw.record
	_, ok := s.suspected(position(r.Topic, r.Partition, r.Offset))
	return ok
}

// abandonWaiting gives back what has not been begun.
func (b *batcher) abandonWaiting() {
	b.mu.Lock()
	waiting := b.waiting
	b.waiting, b.bytes = nil, 0
	b.mu.Unlock()
	for _, m := range waiting {
		m.f.abandon()
	}
}

func (b *batcher) run() {
	for {
		batch, wait := b.take()
		if len(batch) > 0 {
			b.work(batch)
			if b.p.ctx.Err() != nil {
				b.abandonWaiting()
				return
			}
			continue
		}
		var timeout <-chan time.Time
		if wait > 0 {
			timeout = b.p.r.env.Clock.After(wait)
		}
		select {
		case <-b.p.ctx.Done():
			b.abandonWaiting()
			return
		case <-b.wake:
		case <-timeout:
		}
	}
}

// work runs the handler over a batch until each message has succeeded, failed for good, or the partition is lost.
// A batch that fails as a whole although the canary passes is halved: the culprit ends up alone (contract rule 9).
func (b *batcher) work(batch []batched) {
	todo := [][]batched{batch}
	tries := map[*flight]int{}
	held := map[string]struct{}{}
	defer func() { // also where the partition was lost: it is somebody else's then
		for dependency := range held {
			b.p.r.outages.over(dependency)
		}
	}()
	pause := func(err error, class stage.Class, n int) bool {
		if class == stage.ClassOutage {
			held[outageOf(err)] = struct{}{}
		}
		return b.p.pause(err, class, n)
	}
	for waits := 1; len(todo) > 0; {
		part := todo[0]
		if !b.p.session.alive() {
			abandonBatches(todo)
			return
		}
		start := b.p.r.env.Clock.Mono()
		res, err := b.call(part)
		if unread := (*unreadError)(nil); errors.As(err, &unread) {
			if !b.holdUnread(todo, unread, pause, waits) {
				return
			}
			waits++
			continue
		}
		if err != nil { // a message of the batch is to blame: it ends up alone
			switch {
			case len(part) > 1:
				todo = halve(todo)
			case b.giveUp(part[0], err, 1):
				todo = todo[1:]
			case !pause(err, stage.ClassOutage, waits):
				abandonBatches(todo)
				return
			default:
				waits++
			}
			continue
		}
		again, worst := b.settle(part, res, tries)
		b.p.r.env.Metrics.observeBatch(b.p.r.env.Stage, b.in.topic, len(part)-len(again), b.p.r.env.Clock.Mono()-start)
		todo = todo[1:]
		if len(again) == 0 {
			continue
		}
		todo = append([][]batched{again}, todo...)
		err = worst
		class := b.p.classify(err)
		if class == stage.ClassTransient && stage.ClassOf(err) == stage.ClassOutage {
			// The dependency works: something in this batch does not. Alone it is a transient failure of its message.
			if len(todo[0]) > 1 {
				todo = halve(todo)
				continue
			}
			f := todo[0][0]
			if tries[f.f]++; tries[f.f] >= b.p.r.env.Retry.Tries && b.giveUp(f, err, tries[f.f]) {
				todo = todo[1:]
				continue
			}
		}
		if !pause(err, class, waits) {
			abandonBatches(todo)
			return
		}
		waits++
	}
	b.p.r.outages.overAll()
}

// halve cuts the first batch in two.
func halve(todo [][]batched) [][]batched {
	half := len(todo[0]) / 2
	return append([][]batched{todo[0][:half], todo[0][half:]}, todo[1:]...)
}

func abandonBatches(todo [][]batched) {
	for _, part := range todo {
		for _, m := range part {
			m.f.abandon()
		}
	}
}

// call runs the handler. An error is of a message of the batch that nobody has named: a panic, or an output that is too large.
func (b *batcher) call(part []batched) (res batchResult, err error) {
	var held sync.Map // dependencies; the handler may say it from several goroutines
	var unread unreadRow
	valid := func() bool { return b.p.session.alive() && unread.why() == nil }
	raw := rawBatch{partition: b.p.id, valid: valid, row: unread.reader(b.p), held: func(dependency string, why error) {
		held.Store(dependency, nil)
		b.p.r.outages.begin(dependency, why)
	}}
	defer held.Range(func(dependency, _ any) bool {
		b.p.r.outages.over(dependency.(string))
		return true
	})
	for _, m := range part {
		raw.messages = append(raw.messages, m.message)
	}
	b.p.effects.Lock()
	defer b.p.effects.Unlock()
	records := make([]stage.Record, len(part))
	for i, m := range part {
		records[i] = m.raw.record
	}
	leave := b.p.r.suspects.enter(b.in.index, records)
	defer leave()
	err = safely(func() error {
		res, err = b.in.work(b.p.work, raw)
		return err
	})
	if why := unread.why(); why != nil {
		return batchResult{}, &unreadError{why}
	}
	err = joinErrors(err, b.checkBatch(&res))
	return res, err
}

// checkBatch encodes the rows and refuses what could not be sent, before anything is. They say nothing of what they were made
// of: whatever stands there is merged.
func (b *batcher) checkBatch(res *batchResult) error {
	err := b.p.checkOutputs(res.outputs)
	for key, row := range res.rows {
		enc, rowErr := b.p.checkRow(key, row)
		err = joinErrors(err, rowErr)
		res.encoded = append(res.encoded, enc)
	}
	return err
}

// settle sends what follows from a batch and returns the messages that must be tried again, with the error of the worst.
func (b *batcher) settle(part []batched, res batchResult, tries map[*flight]int) (again []batched, worst error) {
	var good []batched
	for i, m := range part {
		err := res.errors[i]
		switch {
		case err == nil:
			good = append(good, m)
		case stage.ClassOf(err) == stage.ClassOutage: // work asks the canary what it is
			again, worst = append(again, m), err
		default:
			tries[m.f]++
			if (stage.ClassOf(err) == stage.ClassMessage || tries[m.f] >= b.p.r.env.Retry.Tries) && b.giveUp(m, err, tries[m.f]) {
				continue
			}
			again = append(again, m)
			if worst == nil {
				worst = err
			}
		}
	}
	b.send(good, res)
	return again, worst
}

// giveUp sends what follows from the failure of one message; false if that must be tried again.
func (b *batcher) giveUp(m batched, err error, tries int) bool {
	class := stage.ClassOf(err)
	if class == stage.ClassOutage {
		class = stage.ClassTransient
	}
	res, row, ferr := b.p.failureResult(Failure{Group: b.p.r.group.name, Record: m.raw.record, Err: err, Class: class, Attempts: tries}, nil)
	if ferr != nil {
		b.p.r.outages.begin(stage.ReasonOf(ferr, "failure_handler"), ferr)
		return false
	}
	b.p.r.env.Metrics.observe(b.p.r.env.Stage, b.in.topic, errFailed, 0)
	b.p.apply(m.f, res, row)
	return true
}

// send sends a batch's outputs and rows; every message of the batch is done once all of them are acknowledged.
func (b *batcher) send(good []batched, res batchResult) {
	if b.p.session.overslept() {
		abandonBatches([][]batched{good})
		return
	}
	acks := make([]func(int64, error), len(good))
	for i, m := range good {
		acks[i] = m.f.hold()
	}
	all := &sharedAck{acks: acks}
	release := all.hold()
	fault.Hit(fault.BeforeReceipt)
	for _, out := range res.outputs {
		b.p.send(b.p.work, out, all.hold())
	}
	for _, row := range res.encoded {
		b.p.rows.write(row, all.hold())
	}
	release(0, nil)
}

// sharedAck acknowledges several messages once all sends on behalf of them are.
type sharedAck struct {
	mu      sync.Mutex
	pending int
	err     error
	acks    []func(int64, error)
}

func (s *sharedAck) hold() func(int64, error) {
	s.mu.Lock()
	s.pending++
	s.mu.Unlock()
	return func(_ int64, err error) {
		s.mu.Lock()
		s.err = joinErrors(s.err, err)
		s.pending--
		ready := s.pending == 0
		err = s.err
		s.mu.Unlock()
		if !ready {
			return
		}
		for _, ack := range s.acks {
			ack(0, err)
		}
	}
}
