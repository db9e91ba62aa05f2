package kafka

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/sync/semaphore"
)

// Errors of a Producer.
var (
	// ErrClosed: the producer is closing. From an acknowledgement it means that nobody knows whether the record was written.
	ErrClosed = errors.New("kafka producer is closed")
	// ErrDeliveryTimeout: no answer came in time. Nobody knows whether the record was written, or will be.
	ErrDeliveryTimeout = errors.New("kafka producer: delivery timeout")
	// ErrUnknownTopic: the topic is not among ProducerOptions.Limits.
	ErrUnknownTopic = errors.New("kafka producer: topic is not in the plan")
)

// TooLargeError is returned before anything is sent: the record can never be written to its topic.
type TooLargeError struct {
	Topic string
	Size  int // of the record, in bytes, with its overhead
	Limit int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("record of %d bytes for topic %s is above the limit of %d bytes", e.Size, e.Topic, e.Limit)
}

const (
	// DefaultTopicBytes is the largest batch that a topic takes where nobody has set max.message.bytes.
	DefaultTopicBytes = 1_048_588
	// DefaultDeliveryTimeout is the time within which a record is acknowledged or given up.
	DefaultDeliveryTimeout = time.Minute

	// batchMargin is kept free in each batch: its header, and the little that compression adds to what it cannot compress.
	batchMargin = 16 << 10
	// recordOverhead and headerOverhead are what sarama counts at most beside keys and values.
	recordOverhead = 5*5 + 10 + 1
	headerOverhead = 2 * 5

	maxInFlightRecords = 16 << 10
	maxInFlightBytes   = 64 << 20

	// A producer waits less for one answer than a member of a group has to: a paused leader costs several of these.
	produceTimeout     = 3 * time.Second
	produceReadTimeout = 4 * time.Second
	// Leaders are looked up for about as long as a record is retried.
	leaderRetries  = 60
	leaderBackoff  = 500 * time.Millisecond
	connectBackoff = 20 * time.Millisecond

	closeTimeoutMin = 100 * time.Millisecond
	closeTimeoutMax = 10 * time.Second
)

// Ack is called exactly once for each record whose Send has returned nil: with its position, or with an error. It runs on
// a goroutine of the producer: it must return quickly and must not call the producer.
type Ack func(partition int32, offset int64, err error)

// ProducerOptions of NewProducer.
type ProducerOptions struct {
	// Limits are the max.message.bytes of the topics (see Limits); other topics are refused. Nil allows every topic, with
	// DefaultTopicBytes.
	Limits map[string]int
	// DeliveryTimeout bounds the time from Send to the acknowledgement; 0 means DefaultDeliveryTimeout.
	DeliveryTimeout time.Duration
	// Gather is for senders that rather spare the brokers than have each record acknowledged as soon as it can be: after 12
	// requests in a row, records wait for others, up to 20 ms, or up to 100 ms where more than 1,000 come in a second, or until
	// there are 1,024 of them or 1 MiB. A sender that has paused sends at once again. Without it every record goes out within 5 ms.
	Gather bool
}

// Producer sends records with acks=all, idempotent, in order per partition: what is sent later stands later, as long as
// no record before it has failed. It is bounded: at most 16,384 records and 64 MiB are in flight, Send waits for room,
// and nothing waits for longer than the delivery timeout. All methods may be called concurrently.
type Producer struct {
	limits  map[string]int
	timeout time.Duration
	conn    *connection

	room    *semaphore.Weighted // bytes
	count   *semaphore.Weighted // records
	ctx     context.Context     // ends when closing begins
	closing context.CancelFunc

	// senders hold it for reading while they hand a record over: sarama panics on what comes after its end.
	senders sync.RWMutex
	closed  bool

	mu       sync.Mutex
	inFlight list.List // of *delivery, oldest first

	reaper sync.WaitGroup
	close  sync.Once
	err    error
}

// delivery is a record on its way; it is the metadata of its sarama message.
type delivery struct {
	of       *Producer
	to       int32 // the partition, or -1: by key
	size     int64
	deadline time.Time
	ack      Ack           // nil once called; guarded by Producer.mu
	elem     *list.Element // nil once acknowledged; guarded by Producer.mu
}

func (d *delivery) partition() (int32, bool) { return d.to, d.to >= 0 }

// NewProducer connects. It fails when no broker answers.
func NewProducer(cfg Config, opts ProducerOptions) (*Producer, error) {
	return NewProducers(cfg, opts).Open()
}

func newProducer(conn *connection, opts ProducerOptions) *Producer {
	if opts.DeliveryTimeout == 0 {
		opts.DeliveryTimeout = DefaultDeliveryTimeout
	}
	p := &Producer{
		limits:  opts.Limits,
		timeout: opts.DeliveryTimeout,
		conn:    conn,
		room:    semaphore.NewWeighted(maxInFlightBytes),
		count:   semaphore.NewWeighted(maxInFlightRecords),
	}
	p.ctx, p.closing = context.WithCancel(context.Background())
	p.reaper.Go(p.reap)
	return p
}

// Send hands a record over; its partition is the home of its key. It waits for room until ctx ends, the delivery timeout
// is over or Close is called. When it returns an error nothing was sent and ack is not called. The record's slices must
// not be changed until it is acknowledged.
func (p *Producer) Send(ctx context.Context, r Record, ack Ack) error {
	return p.send(ctx, -1, r, ack)
}

// SendTo is Send to a partition of the caller's choice.
func (p *Producer) SendTo(ctx context.Context, partition int32, r Record, ack Ack) error {
	if partition < 0 {
		return fmt.Errorf("send to %s: partition %d is negative", r.Topic, partition)
	}
	return p.send(ctx, partition, r, ack)
}

// SendSync sends a record and waits for its position. When ctx ends first, nobody knows whether the record was written.
func (p *Producer) SendSync(ctx context.Context, r Record) (partition int32, offset int64, err error) {
	type position struct {
		partition int32
		offset    int64
		err       error
	}
	done := make(chan position, 1)
	err = p.Send(ctx, r, func(partition int32, offset int64, err error) { done <- position{partition, offset, err} })
	if err != nil {
		return 0, 0, err
	}
	select {
	case d := <-done:
		return d.partition, d.offset, d.err
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	}
}

// Check reports whether a record fits its topic: nil, a *TooLargeError, or ErrUnknownTopic.
func (p *Producer) Check(r Record) error {
	_, _, err := p.check(r)
	return err
}

func (p *Producer) check(r Record) (limit, size int, err error) {
	limit = DefaultTopicBytes
	if p.limits != nil {
		var ok bool
		if limit, ok = p.limits[r.Topic]; !ok {
			return 0, 0, fmt.Errorf("%w: %s", ErrUnknownTopic, r.Topic)
		}
	}
	size = len(r.Key) + len(r.Value) + recordOverhead
	for _, h := range r.Headers {
		size += len(h.Key) + len(h.Value) + headerOverhead
	}
	if size > limit-batchMargin {
		return 0, 0, &TooLargeError{Topic: r.Topic, Size: size, Limit: limit - batchMargin}
	}
	return limit, size, nil
}

func (p *Producer) send(ctx context.Context, to int32, r Record, ack Ack) error {
	limit, size, err := p.check(r)
	if err != nil {
		return err
	}
	d := &delivery{of: p, to: to, size: int64(size), ack: ack, deadline: time.Now().Add(p.timeout)}
	m := r.message()
	m.Metadata = d

	p.senders.RLock()
	defer p.senders.RUnlock()
	if p.closed {
		return ErrClosed
	}
	if err := p.acquire(ctx, d); err != nil {
		return err
	}
	p.mu.Lock()
	d.elem = p.inFlight.PushBack(d)
	p.mu.Unlock()
	if err := p.handOver(ctx, d, p.conn.lanes[limit].input, m); err != nil {
		_, waited := p.forget(d)
		p.release(d)
		if !waited {
			return nil // it was given up meanwhile, and its acknowledgement has said so
		}
		return err
	}
	return nil
}

// acquire waits for room for the record.
func (p *Producer) acquire(ctx context.Context, d *delivery) error {
	if p.count.TryAcquire(1) {
		if p.room.TryAcquire(d.size) {
			return nil
		}
		p.count.Release(1)
	}
	ctx, cancel := p.bounded(ctx, d)
	defer cancel(nil)
	if p.count.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	if p.room.Acquire(ctx, d.size) != nil {
		p.count.Release(1)
		return context.Cause(ctx)
	}
	return nil
}

func (p *Producer) release(d *delivery) {
	p.room.Release(d.size)
	p.count.Release(1)
}

func (p *Producer) handOver(ctx context.Context, d *delivery, input chan<- *sarama.ProducerMessage, m *sarama.ProducerMessage) error {
	select {
	case input <- m:
		return nil
	default:
	}
	late := time.NewTimer(time.Until(d.deadline))
	defer late.Stop()
	select {
	case input <- m:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.ctx.Done():
		return ErrClosed
	case <-late.C:
		return ErrDeliveryTimeout
	}
}

// bounded ends with ctx, at the record's deadline (ErrDeliveryTimeout) or when the producer closes (ErrClosed).
func (p *Producer) bounded(ctx context.Context, d *delivery) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopClosing := context.AfterFunc(p.ctx, func() { cancel(ErrClosed) })
	timer := time.AfterFunc(time.Until(d.deadline), func() { cancel(ErrDeliveryTimeout) })
	return ctx, func(cause error) {
		timer.Stop()
		stopClosing()
		cancel(cause)
	}
}

// settle is the end of a record inside sarama.
func settle(m *sarama.ProducerMessage, err error) {
	d := m.Metadata.(*delivery)
	p := d.of
	ack, waited := p.forget(d)
	p.release(d)
	if !waited || ack == nil {
		return
	}
	if err != nil {
		ack(0, 0, fmt.Errorf("send to %s: %w", m.Topic, err))
		return
	}
	ack(m.Partition, m.Offset, nil)
}

// forget takes a record out of the list and returns its acknowledgement; only the first who does so has it to say.
func (p *Producer) forget(d *delivery) (ack Ack, waited bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.elem == nil {
		return nil, false
	}
	p.inFlight.Remove(d.elem)
	d.elem = nil
	ack, d.ack = d.ack, nil
	return ack, true
}

// reap gives up records whose deadline is over; sarama keeps them, and their room, until it gives up as well.
func (p *Producer) reap() {
	tick := time.NewTicker(max(p.timeout/20, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
			p.giveUp(ErrDeliveryTimeout, time.Now())
		}
	}
}

// giveUp answers every record whose deadline is not after now; the zero time means all.
func (p *Producer) giveUp(err error, now time.Time) {
	for {
		p.mu.Lock()
		front := p.inFlight.Front()
		if front == nil || !now.IsZero() && front.Value.(*delivery).deadline.After(now) {
			p.mu.Unlock()
			return
		}
		d := front.Value.(*delivery)
		p.inFlight.Remove(front)
		d.elem = nil
		ack := d.ack
		d.ack = nil
		p.mu.Unlock()
		if ack != nil {
			ack(0, 0, err)
		}
	}
}

// patience is how long closing waits for what is in flight: until the last deadline, but not for ever.
func (p *Producer) patience(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := closeTimeoutMin
	if last := p.inFlight.Back(); last != nil {
		wait = max(wait, last.Value.(*delivery).deadline.Sub(now))
	}
	return min(wait, closeTimeoutMax)
}

// Close refuses new records, wakes senders that wait, waits up to 10 s for what is in flight, and gives up the rest with
// ErrClosed. It may be called more than once.
func (p *Producer) Close() error {
	p.close.Do(func() {
		p.closing()
		p.senders.Lock()
		p.closed = true
		p.senders.Unlock()
		p.reaper.Wait()
		p.err = p.conn.leave(p)
		p.giveUp(ErrClosed, time.Time{})
	})
	return p.err
}

// drain waits until nothing is in flight any more, or for as long as its patience lasts.
func (p *Producer) drain(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.count.Acquire(ctx, maxInFlightRecords); err != nil {
		return fmt.Errorf("records were still in flight after %v", patience)
	}
	p.count.Release(maxInFlightRecords)
	return nil
}
