// Package stage is what a user writes against: a stage is a function from a message and its row to what must follow
// from it. It performs nothing itself, so that a redelivery can be tested by calling it twice; the engine does the
// rest in the order that the delivery contract fixes.
package stage

import (
	"context"
	"time"
)

// Header of a record, byte for byte and in order.
type Header struct {
	Key   []byte
	Value []byte
}

// Record is a Kafka record as it stands in the log. A nil Key or Value is a null one. It must not be changed.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp time.Time
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Message is one record of a stage's input, decoded. Where decoding failed, DecodeError says why and Value is the zero
// value: the stage decides what that means (a dead letter, usually). A null value is not decoded: Tombstone is set.
type Message[T any] struct {
	Record      Record
	Key         string
	Value       T
	Tombstone   bool
	DecodeError error
	// Committed is the offset below which everything of this topic and partition is done: its outputs and rows are
	// acknowledged. Kafka is told so within the commit interval, so that some of it may still come again after a crash, and
	// any of it when an operator resets offsets. Below zero if not known.
	Committed int64
	// Redelivered is true where an owner of the partition before this one may have begun to work on the message: what it did
	// on the outside may be half done, and a store may take for written what is not. That is every message that stood in the log
	// when this pod got the partition; false on later ones, and always where delivery is at most once.
	Redelivered bool
	// Joined holds the rows of joined tables for this key, by topic; read it with Joined. It may lag behind its owner.
	joined map[string]any
}

// WithJoined returns m with rows of joined tables; for the engine and for tests of stages.
func (m Message[T]) WithJoined(rows map[string]any) Message[T] { m.joined = rows; return m }

// Joined is the row that the joined table has for the message's key; nil if it has none. It may be stale.
func Joined[R, T any](m Message[T], table Topic[R]) *R {
	r, _ := m.joined[table.Name].(*R)
	return r
}

// Codec turns values into bytes and back. Decode never panics and never keeps b; its error tells the reason.
// An error that is (errors.Is) ErrNewerFormat means that a newer release wrote the value: the engine treats it as an
// outage of this pod, never as a failure of the message.
type Codec[T any] interface {
	Encode(T) ([]byte, error)
	Decode(b []byte) (T, error)
}

// Topic is a name with the codec of its values.
type Topic[T any] struct {
	Name  string
	Codec Codec[T]
}

// Output is one record to send. Make it with Topic.Record, or fill it in where the bytes stand already.
type Output struct {
	Topic   string
	Key     []byte // nil: a null key
	Value   []byte // nil: a tombstone
	Headers []Header
	// Err is why the value could not be encoded; the engine treats it as a failure of the message.
	Err error
}

// Record encodes v as an output of the topic.
func (t Topic[T]) Record(key string, v T, headers ...Header) Output {
	b, err := t.Codec.Encode(v)
	return Output{Topic: t.Name, Key: []byte(key), Value: b, Headers: headers, Err: err}
}

// Result is what must follow from one message. The zero Result means: nothing, the message is done.
type Result[R any] struct {
	// Outputs are sent before the row is written. On a redelivery they are sent again.
	Outputs []Output
	// More gives further outputs to yield, one by one, where memory should not hold all of them at once; nil: none. They are
	// sent behind Outputs and before the row. It is called to check, and again to send, and must give the same each time; an
	// error of yield ends it and is returned. An error of its own while it checks is the message's, by its class; while it sends,
	// an outage is waited for (it is called again, and what was sent is passed over), and after any other error the message is
	// worked on again.
	More func(ctx context.Context, yield func(Output) error) error
	// Row is the new row of the message's key, made of the row that the handler was given; nil leaves the row as it is. Where
	// somebody else has written the row meanwhile, the engine merges the two.
	Row *R
	// Said are sent once the row has been acknowledged: what the row says, said again on every redelivery.
	Said []Output
}

// Handler decides what one message means. row is nil where the key has none; it must not be changed, a new one is
// returned instead. It may be called again with the same message at any time after a crash and must then give the same
// outputs. Errors are classed with Reject, Transient and Outage; an unclassed error is transient.
type Handler[T, R any] func(ctx context.Context, m Message[T], row *R) (Result[R], error)

// BatchHandler works on several messages of one partition at once, off the partition's own goroutine. rows reads the
// current row of a key; done reports whether the partition has been lost, in which case nothing may be applied any more.
// It returns one outcome per message, in order; len(outcomes) must equal len(batch).
type BatchHandler[T, R any] func(ctx context.Context, b Batch[T, R]) BatchResult[R]

// Batch is what a BatchHandler works on.
type Batch[T, R any] struct {
	Partition int32
	Messages  []Message[T]
	// Row reads the current row of a key of this partition; nil if it has none.
	Row func(key string) *R
	// Valid reports whether this pod still owns the partition, and every row that was asked for could be read: one that could
	// not is given as nil, and the batch comes again, whatever its result is. Ask it before every effect on the outside.
	Valid func() bool
	// Held says that the batch waits inside the handler for a dependency that does not do its work, and why. Readiness and the
	// metric of outages say so until the handler returns. May be nil where no engine runs the batch.
	Held func(dependency string, why error)
}

// BatchResult is what follows from a batch. Outputs are acknowledged before any message of the batch is done.
type BatchResult[R any] struct {
	Outputs []Output
	// Rows to write, by key; each is merged with what stands there.
	Rows map[string]*R
	// Errors by index of the message; messages that are absent went well. The engine asks OnFailure what follows.
	Errors map[int]error
}

// Timer acts on rows whose time has come. Both functions must be safe for concurrent use.
type Timer[R any] struct {
	// Next is when the row wants to be acted on; false if it does not. The engine's clock for a row starts no sooner
	// than Next and, where MinDelay is set, no sooner than MinDelay after the row was acknowledged (or recovered).
	Next func(row *R) (time.Time, bool)
	// Later are the other times that the row names, if it may name several: their clocks start with the row that first
	// named them, not when they become the next. May be nil.
	Later func(row *R) []time.Time
	// MinDelay after the acknowledgement of the row; nil: none.
	MinDelay func(row *R) time.Duration
	// MaxDelay is the longest that Next can lie ahead: a time is waited for no longer than that since this process has known it,
	// and MinDelay, whatever its clock says. It bounds what a wrong clock can do, here or where the time was chosen. nil: none.
	MaxDelay func(row *R) time.Duration
	// Fire performs what is due and returns the records to send. It may run more than once for the same row, so its
	// effect must be idempotent; what changes the row is a record that it sends, never the timer itself. An outage is
	// tried again; any other error is logged and tried again later.
	Fire func(ctx context.Context, key string, row *R, valid func() bool) ([]Output, error)
}
