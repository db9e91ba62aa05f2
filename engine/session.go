package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/stage"
)

// claimKey is a topic and partition that this process has claimed.
type claimKey struct {
	topic     string
	partition int32
}

// session is one generation of the consumer group as this process sees it, between Setup and Cleanup. It stands between
// sarama and goka: goka marks through it, and only what the gates allow is marked.
type session struct {
	sarama.ConsumerGroupSession
	clock Clock
	// limit is half the session timeout: a process that has not ticked for so long may have lost its partitions.
	limit time.Duration
	// committedAhead: offsets were committed before the work and are not marked again.
	committedAhead bool
	lastTick       atomic.Int64 // unix nanoseconds of the clock's monotonic reading
	lost           atomic.Bool
	stop           chan struct{}
	ticking        sync.WaitGroup

	mu    sync.Mutex
	gates map[claimKey]*gate
}

func newSession(inner sarama.ConsumerGroupSession, clock Clock, timeout time.Duration, onLost func()) *session {
	s := &session{
		ConsumerGroupSession: inner, clock: clock, limit: timeout / 2,
		stop: make(chan struct{}), gates: map[claimKey]*gate{},
	}
	s.lastTick.Store(int64(clock.Mono()))
	s.ticking.Go(func() { s.tick(onLost) })
	return s
}

// tick notices that the process was stopped (SIGSTOP, a suspended machine) for longer than the group's patience allows:
// other members may own its partitions by now although nobody has told it yet (contract rule 14).
func (s *session) tick(onLost func()) {
	every := s.limit / 6
	for {
		select {
		case <-s.stop:
			return
		case <-s.clock.After(every):
			if !s.alive() {
				onLost()
				return
			}
			s.lastTick.Store(int64(s.clock.Mono()))
		}
	}
}

// alive reports whether an outcome may be applied: the session is not over, and this process has not slept too long.
func (s *session) alive() bool {
	return s.Context().Err() == nil && !s.overslept()
}

// overslept reports whether this process has been stopped for so long that others may own its partitions.
func (s *session) overslept() bool {
	if s.clock.Mono()-time.Duration(s.lastTick.Load()) > s.limit {
		s.lost.Store(true)
	}
	return s.lost.Load()
}

func (s *session) end() {
	close(s.stop)
	s.ticking.Wait()
}

func (s *session) addGate(k claimKey, g *gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gates[k] = g
}

func (s *session) gate(k claimKey) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gates[k]
}

// MarkOffset is what goka calls when a message and all its emits are done; offset is the next one to read.
func (s *session) MarkOffset(topic string, partition int32, offset int64, metadata string) {
	g := s.gate(claimKey{topic, partition})
	if g == nil {
		return
	}
	if s.committedAhead {
		g.finish(offset-1, func(int64) {})
		return
	}
	g.finish(offset-1, func(next int64) {
		fault.Trace(fault.Marked, s, topic, partition, next)
		s.ConsumerGroupSession.MarkOffset(topic, partition, next, metadata)
	})
}

// MarkMessage marks like MarkOffset.
func (s *session) MarkMessage(m *sarama.ConsumerMessage, metadata string) {
	s.MarkOffset(m.Topic, m.Partition, m.Offset+1, metadata)
}

// consumerGroup wraps sarama's so that goka works through gates, and so that a rebalance costs a fraction of a second:
// goka sleeps five seconds whenever Consume returns, so Consume does not return while the group goes on.
type consumerGroup struct {
	sarama.ConsumerGroup
	group *runner
}

// Consume joins again after every rebalance until the context ends or joining fails.
func (c *consumerGroup) Consume(ctx context.Context, topics []string, h sarama.ConsumerGroupHandler) error {
	for {
		if err := c.consumeOnce(ctx, topics, h); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (c *consumerGroup) consumeOnce(ctx context.Context, topics []string, h sarama.ConsumerGroupHandler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return c.ConsumerGroup.Consume(ctx, topics, &handler{inner: h, group: c.group, leave: cancel})
}

// handler stands between sarama and goka's handler for one session.
type handler struct {
	inner   sarama.ConsumerGroupHandler
	group   *runner
	leave   context.CancelFunc
	session *session
}

func (h *handler) Setup(s sarama.ConsumerGroupSession) error {
	h.session = newSession(s, h.group.env.Clock, h.group.sessionTimeout, h.leave)
	h.session.committedAhead = h.group.group.delivery == stage.AtMostOnce
	h.group.beginSession(h.session)
	if err := h.group.suspects.exchange(s.Context()); err != nil {
		return err
	}
	return h.inner.Setup(h.session)
}

// Cleanup ends the partitions before goka closes their storage and before sarama commits for the last time, so that
// what they finish here is still committed.
func (h *handler) Cleanup(sarama.ConsumerGroupSession) error {
	h.group.endSession(h.session)
	err := h.inner.Cleanup(h.session)
	h.session.end()
	return err
}

func (h *handler) ConsumeClaim(_ sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	key := claimKey{c.Topic(), c.Partition()}
	g := newGate(c.InitialOffset(), h.group.env.MaxInFlight, h.group.env.MaxInFlightBytes)
	g.end = c.HighWaterMarkOffset
	h.session.addGate(key, g)
	fault.Trace(fault.Claimed, h.session, key.topic, key.partition, c.InitialOffset())
	if err := h.group.openPartition(h.session, c.Partition()); err != nil {
		return err
	}
	gated := &gatedClaim{ConsumerGroupClaim: c, out: make(chan *sarama.ConsumerMessage)}
	done := make(chan struct{})
	var feeding sync.WaitGroup
	feeding.Go(func() {
		if h.group.group.delivery == stage.AtMostOnce {
			gated.feedCommitted(h.session.Context(), h.session, h.group, g, done)
			return
		}
		gated.feed(h.session, g, done)
	})
	defer func() {
		close(done)
		g.close()
		feeding.Wait()
	}()
	return h.inner.ConsumeClaim(h.session, gated)
}

// gatedClaim hands goka the records that the gate has let in.
type gatedClaim struct {
	sarama.ConsumerGroupClaim
	out chan *sarama.ConsumerMessage
}

func (c *gatedClaim) Messages() <-chan *sarama.ConsumerMessage { return c.out }

func (c *gatedClaim) feed(s *session, g *gate, done <-chan struct{}) {
	defer close(c.out)
	for {
		select {
		case m, ok := <-c.ConsumerGroupClaim.Messages():
			if !ok || !g.deliver(m) {
				return
			}
			fault.Trace(fault.Delivered, s, m.Topic, m.Partition, m.Offset)
			select {
			case c.out <- m:
			case <-done:
				return
			}
		case <-done:
			return
		}
	}
}
