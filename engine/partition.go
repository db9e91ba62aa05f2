package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/lovoo/goka"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/stage"
)

// partition is what a process runs for one partition of a group from the start of a claim to the end of its session.
type partition struct {
	r       *runner
	id      int32
	session *session
	log     *slog.Logger
	rows    *rowStore // nil without a table
	speaker *speaker
	timers  *timers // nil without a timer
	batches map[string]*batcher

	// ctx ends when the session ends: nothing new is begun. work ends later, once the drain is over: what has reached
	// the outside is not cut off in the middle.
	ctx        context.Context
	cancel     context.CancelFunc
	work       context.Context
	cancelWork context.CancelFunc
	goroutines sync.WaitGroup
	// effects is held by what acts on the outside world, so that a removal never runs beside an upsert.
	effects sync.Mutex
	failed  atomic.Bool

	mu      sync.Mutex
	flights map[*flight]struct{}
	landed  chan struct{} // replaced and closed whenever a flight lands
}

func (r *runner) newPartition(s *session, id int32) (*partition, error) {
	p := &partition{r: r, id: id, session: s, log: r.log.With("partition", id),
		batches: map[string]*batcher{}, flights: map[*flight]struct{}{}, landed: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(s.Context())
	p.work, p.cancelWork = context.WithCancel(context.WithoutCancel(s.Context()))
	p.speaker = newSpeaker(p)
	if r.group.table != nil {
		st, ok := r.env.Stores.Get(r.group.TableTopic(), id)
		if !ok {
			p.cancel()
			p.cancelWork()
			return nil, fmt.Errorf("the local store of %s/%d is not open", r.group.TableTopic(), id)
		}
		p.rows = newRowStore(p, st)
	}
	for _, in := range r.group.inputs {
		if in.batch != nil {
			p.batches[in.topic] = newBatcher(p, in)
		}
	}
	if r.group.timer != nil {
		p.timers = newTimers(p)
	}
	return p, nil
}

func (p *partition) start() {
	p.goroutines.Go(p.speaker.run)
	if p.rows != nil {
		p.goroutines.Go(p.rows.follow)
	}
	for _, b := range p.batches {
		p.goroutines.Go(b.run)
	}
	if p.timers != nil {
		p.goroutines.Go(p.timers.run)
	}
	if p.r.group.background != nil {
		p.goroutines.Go(p.runBackground)
	}
}

// close ends the partition: nothing new begins, what is being sent may finish within the drain timeout, the rest is
// abandoned. It returns once every goroutine has ended, so that goka may close the storage.
func (p *partition) close() {
	p.cancel()
	for _, b := range p.batches {
		b.abandonWaiting()
	}
	drained := p.r.env.Clock.After(p.r.env.DrainTimeout)
	for waiting := p.sending(); waiting != nil; waiting = p.sending() {
		select {
		case <-waiting:
			continue
		case <-drained:
		}
		break
	}
	idle := make(chan struct{})
	go func() { p.speaker.close(); p.goroutines.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-drained:
		p.cancelWork()
		<-idle
	}
	p.cancelWork()
	p.abandonAll()
}

// sending returns a channel that is closed when the next flight lands, nil if no flight is being sent.
func (p *partition) sending() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.flights {
		if f.sending() {
			return p.landed
		}
	}
	return nil
}

func (p *partition) abandonAll() {
	p.mu.Lock()
	all := make([]*flight, 0, len(p.flights))
	for f := range p.flights {
		all = append(all, f)
	}
	p.mu.Unlock()
	for _, f := range all {
		f.abandon()
	}
}

func (p *partition) takeOff(c claimKey, offset int64, done func(error)) *flight {
	f := &flight{p: p, claim: c, offset: offset, done: done}
	p.mu.Lock()
	p.flights[f] = struct{}{}
	p.mu.Unlock()
	return f
}

func (p *partition) land(f *flight) {
	p.mu.Lock()
	delete(p.flights, f)
	if p.ctx.Err() != nil { // only close waits for landings
		close(p.landed)
		p.landed = make(chan struct{})
	}
	p.mu.Unlock()
}

// sendFailed: Kafka did not take a record within the producer's patience. The processor ends and is rebuilt; the local
// row may be ahead of the table, which the merge on recovery repairs. All other messages are given back at once, since
// goka waits for them before it ends.
func (p *partition) sendFailed(f *flight, err error) {
	if !p.session.alive() || p.failed.Swap(true) {
		f.abandon()
		return
	}
	p.log.Error("a record could not be sent; the processor is rebuilt", "error", err)
	p.end(f, fmt.Errorf("sending: %w", err))
}

// end ends the processor by the failure of one message.
func (p *partition) end(f *flight, err error) {
	f.fail(err)
	p.cancel()
	p.abandonAll()
}

// giveBack gives a message back that could not be worked on. Where the local store is damaged the processor is rebuilt, and
// with it the store; whoever only waited would wait for ever.
func (p *partition) giveBack(f *flight, err error) {
	if !errors.Is(err, kafka.ErrStoreDamaged) || !p.session.alive() || p.failed.Swap(true) {
		f.abandon()
		return
	}
	p.log.Error("the local store is damaged; the processor is rebuilt", "error", err)
	p.end(f, err)
}

// receive is goka's callback for one input.
func (r *runner) receive(in *input) goka.ProcessCallback {
	return func(gctx goka.Context, _ any) {
		claim := claimKey{string(gctx.Topic()), gctx.Partition()}
		done := gctx.DeferCommit()
		s, p := r.owned(gctx.Partition())
		g := s.gate(claim)
		record, again := g.record(gctx.Offset())
		if p == nil || p.failed.Load() || record == nil || !s.alive() {
			g.abandon(gctx.Offset())
			done(nil)
			return
		}
		raw := rawMessage{record: toRecord(record), committed: g.committed(), again: again && r.group.delivery != stage.AtMostOnce}
		if len(r.group.joins) > 0 {
			raw.joined = r.joined(gctx)
		}
		f := p.takeOff(claim, gctx.Offset(), done)
		if in.batch != nil {
			p.prepare(f, in, raw)
			return
		}
		p.process(f, in, raw)
	}
}

// joined reads the joined tables' rows of the message's key. What cannot be decoded is as if it were not there: a join
// saves work and never decides what is true.
func (r *runner) joined(gctx goka.Context) map[string]any {
	rows := make(map[string]any, len(r.group.joins))
	for _, j := range r.group.joins {
		b, ok := gctx.Join(goka.Table(j.topic)).([]byte)
		if !ok {
			continue
		}
		if row, err := j.decode(b); err == nil {
			rows[j.topic] = row
		}
	}
	return rows
}

// apply sends what follows from a message: outputs, then the row; what is to be said waits for their acknowledgement. A
// process that was stopped while it worked has nothing to say: the next owner works on the message.
func (p *partition) apply(f *flight, r result, row encodedRow) {
	if p.session.overslept() {
		f.abandon()
		return
	}
	release := f.hold()
	f.mu.Lock()
	f.said = r.said
	f.mu.Unlock()
	for _, out := range r.outputs {
		fault.Hit(fault.BeforeEmit)
		p.send(p.work, out, f.hold())
	}
	if err := p.sendMore(f, r); err != nil { // not the row: what it stands for was not sent
		release(0, err)
		return
	}
	fault.Hit(fault.AfterEmit)
	if row.row != nil {
		p.rows.write(row, f.hold())
	}
	release(0, nil)
}

// sendMore sends what the message gives one by one. What it reads from may go away in the middle: the partition waits then, and
// what was handed over is not sent again. Somebody else sends it all again where the partition is lost meanwhile.
func (p *partition) sendMore(f *flight, r result) error {
	if r.more == nil {
		return nil
	}
	sent, tries, held := 0, 0, ""
	defer func() { p.r.outages.over(held) }()
	for waits := 1; ; waits++ {
		err := p.sendFrom(f, r, &sent)
		if err == nil || stage.ClassOf(err) != stage.ClassOutage {
			return err
		}
		class := p.classify(err)
		if class == stage.ClassOutage {
			held = outageOf(err)
		} else if tries++; tries >= p.r.env.Retry.Tries {
			return err
		}
		if !p.pause(err, class, waits) {
			return errAbandoned
		}
	}
}

// sendFrom sends the outputs behind those that were sent before, and counts them.
func (p *partition) sendFrom(f *flight, r result, sent *int) error {
	i := 0
	return safely(func() error {
		return r.more(p.work, func(out stage.Output) error {
			if !p.session.alive() {
				return errAbandoned
			}
			if i++; i <= *sent {
				return nil
			}
			fault.Hit(fault.BeforeEmit)
			p.send(p.work, out, f.hold())
			*sent = i
			return nil
		})
	})
}

func (p *partition) send(ctx context.Context, out stage.Output, ack func(int64, error)) {
	if err := p.r.sender.Send(ctx, out, ack); err != nil {
		ack(0, err)
	}
}

// speaker sends what messages have to say after their row was acknowledged. Acknowledgements arrive on the producer's
// own goroutine, which must not send: it would wait for itself.
type speaker struct {
	p      *partition
	mu     sync.Mutex
	more   *sync.Cond
	queue  []speech
	closed bool
}

type speech struct {
	f    *flight
	outs []stage.Output
}

func newSpeaker(p *partition) *speaker {
	s := &speaker{p: p}
	s.more = sync.NewCond(&s.mu)
	return s
}

// add queues outputs of a flight. The queue is bounded by the gates, which bound the flights.
func (s *speaker) add(f *flight, outs []stage.Output) {
	f.hold()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, speech{f, outs})
	s.more.Signal()
}

func (s *speaker) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.more.Signal()
}

func (s *speaker) run() {
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.closed {
			s.more.Wait()
		}
		if len(s.queue) == 0 {
			s.mu.Unlock()
			return
		}
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		fault.Hit(fault.BeforeSaid)
		for _, out := range next.outs {
			s.p.send(s.p.work, out, next.f.hold())
		}
		next.f.ack(0, nil)
	}
}
