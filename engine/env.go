package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/stage"
)

// Clock is time as the engine sees it; tests bring their own.
type Clock interface {
	Now() time.Time
	// Mono is a monotonic reading: it goes on while the process is stopped.
	Mono() time.Duration
	After(d time.Duration) <-chan time.Time
}

// SystemClock is the machine's clock.
func SystemClock() Clock { return systemClock{start: time.Now()} }

type systemClock struct{ start time.Time }

func (systemClock) Now() time.Time                         { return fault.Now() }
func (c systemClock) Mono() time.Duration                  { return time.Since(c.start) }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Sender sends records. Send hands a record over and returns; ack is called exactly once, from another goroutine, with
// the position or the error; it must not block and must not send. If Send returns an error, ack is never called.
// Records of one partition keep the order in which they were handed over.
type Sender interface {
	Send(ctx context.Context, out stage.Output, ack func(offset int64, err error)) error
	// Check tells whether the record is small enough for its topic; the error is of the message.
	Check(out stage.Output) error
}

// Env is what the engine needs from outside; all of it is passed in.
type Env struct {
	Brokers []string
	// Sarama makes a fresh client configuration; goka's builders change the one that they are given.
	Sarama func() (*sarama.Config, error)
	// NewSender makes the group's own producer; the engine closes it.
	NewSender func() (Sender, goka.Producer, error)
	// Stores opens and finds local storage of tables.
	Stores Stores
	// InstanceID names this process for static membership (KIP-345); it must stay the same over restarts. "" makes it an
	// ordinary member.
	InstanceID string
	// Standby makes this process follow the tables of all partitions, those of others too, and recover them before it joins
	// the group: it takes partitions over without reading their tables first. It costs disk and traffic for all partitions.
	Standby bool
	// Stage names the group in metrics and logs; "" means its consumer group id.
	Stage   string
	Clock   Clock
	Log     *slog.Logger
	Metrics *Metrics
	Retry   RetryPolicy
	// MaxInFlight and MaxInFlightBytes bound what is delivered and not yet done, per topic and partition.
	MaxInFlight      int
	MaxInFlightBytes int
	// Journal is the file in which the group remembers what it is working on, over its own death (contract rule 6); beside it
	// stands the file of the partitions that it had last, which it claims when it comes back. "" means
	// that a message that kills its process is not found. No two groups may share one.
	Journal string
	// Suspicions lets the processes of the group count together; nil: each counts alone.
	Suspicions Suspicions
	// DrainTimeout is how long a lost partition's messages may still finish what they have begun.
	DrainTimeout time.Duration
	// Jitter returns a random factor in [0, 1).
	Jitter func() float64
}

// Stores opens local storage and finds what is open.
type Stores interface {
	Builder() storage.Builder
	Get(topic string, partition int32) (storage.Storage, bool)
}

// RetryPolicy bounds the retries of a transient error in place, and the waits between tries of anything.
type RetryPolicy struct {
	// Tries in place, the first one counted.
	Tries   int
	Initial time.Duration
	Max     time.Duration
}

// wait is the time before try n+1 (n from 1): exponential, with full jitter on the upper half.
func (p RetryPolicy) wait(n int, jitter float64) time.Duration {
	d := p.Initial
	for i := 1; i < n && d < p.Max; i++ {
		d *= 2
	}
	d = min(d, p.Max)
	return d/2 + time.Duration(float64(d/2)*jitter)
}

// withDefaults fills in what has a documented default.
func (e Env) withDefaults() Env {
	if e.Clock == nil {
		e.Clock = SystemClock()
	}
	if e.Log == nil {
		e.Log = slog.New(slog.DiscardHandler)
	}
	if e.Retry == (RetryPolicy{}) {
		e.Retry = RetryPolicy{Tries: 3, Initial: 100 * time.Millisecond, Max: 10 * time.Second}
	}
	if e.MaxInFlight == 0 {
		e.MaxInFlight = 1024
	}
	if e.MaxInFlightBytes == 0 {
		e.MaxInFlightBytes = 16 << 20
	}
	if e.DrainTimeout == 0 {
		e.DrainTimeout = 10 * time.Second
	}
	if e.Jitter == nil {
		e.Jitter = func() float64 { return 0.5 }
	}
	if e.Metrics == nil {
		e.Metrics = NewMetrics(nil)
	}
	return e
}
