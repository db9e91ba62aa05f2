package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/stage"
)

// Group is the topology of one processor group: what it reads, joins, writes and keeps. Make it with NewGroup; it holds
// no state and may be run by many processes.
type Group struct {
	name    string
	inputs  []*input
	joins   []*join
	outputs []string
	table   *table
	timer   *timer
	// background is work beside the messages; nil without any.
	background *background
	canary     Canary
	problem    error
	// delivery is the contract; "" means at-least-once.
	delivery stage.Delivery

	failure    func(ctx context.Context, f Failure, row any) (result, error)
	failureRow reflect.Type
}

// Option is one line of a group's topology.
type Option func(*Group)

// NewGroup describes the group with the consumer group id name. Its table is the topic "<name>-table", as goka names it.
// It fails where the lines contradict each other.
func NewGroup(name string, options ...Option) (*Group, error) {
	g := &Group{name: name}
	for _, o := range options {
		o(g)
	}
	if g.problem != nil {
		return nil, fmt.Errorf("group %s: %w", name, g.problem)
	}
	if len(g.inputs) == 0 {
		return nil, fmt.Errorf("group %s: no input", name)
	}
	for i, in := range g.inputs {
		in.index = i
		if g.table != nil && in.row != g.table.row {
			return nil, fmt.Errorf("group %s: the stage of %s works on rows of %v, the table holds %v", name, in.topic, in.row, g.table.row)
		}
	}
	if g.timer != nil && (g.table == nil || g.timer.row != g.table.row) {
		return nil, fmt.Errorf("group %s: the timer works on rows of %v, which the table does not hold", name, g.timer.row)
	}
	if g.background != nil && (g.table == nil || g.background.row != g.table.row) {
		return nil, fmt.Errorf("group %s: the work in the background is on rows of %v, which the table does not hold", name, g.background.row)
	}
	if g.failure != nil && g.table != nil && g.failureRow != g.table.row {
		return nil, fmt.Errorf("group %s: OnFailure works on rows of %v, the table holds %v", name, g.failureRow, g.table.row)
	}
	return g, nil
}

// Name is the consumer group id.
func (g *Group) Name() string { return g.name }

// TableTopic is the topic of the group's table; "" without one.
func (g *Group) TableTopic() string {
	if g.table == nil {
		return ""
	}
	return g.name + "-table"
}

// Inputs are the topics that the group reads, in the order of the topology.
func (g *Group) Inputs() []string {
	var t []string
	for _, in := range g.inputs {
		t = append(t, in.topic)
	}
	return t
}

// Outputs are the topics that the group declares to write to.
func (g *Group) Outputs() []string { return g.outputs }

// Joins are the tables of other groups that the group reads.
func (g *Group) Joins() []string {
	var t []string
	for _, j := range g.joins {
		t = append(t, j.topic)
	}
	return t
}

// input is one topic with what is done with its messages; the types of message and row are closed over.
type input struct {
	index  int // in the topology
	topic  string
	row    reflect.Type
	batch  *BatchOptions
	handle func(ctx context.Context, m rawMessage, row any) (result, error)
	work   func(ctx context.Context, b rawBatch) (batchResult, error)
	// prepare decodes a message for work: a batch stage never sees what cannot be decoded.
	prepare func(rawMessage) (any, error)
}

// rawMessage is a record with what the engine knows about it.
type rawMessage struct {
	record    stage.Record
	committed int64
	again     bool // an earlier owner may have begun it
	joined    map[string]any
}

type rawBatch struct {
	partition int32
	messages  []any // as prepared
	row       func(key string) any
	valid     func() bool
	held      func(dependency string, why error)
}

type result struct {
	outputs []stage.Output
	more    func(ctx context.Context, yield func(stage.Output) error) error // nil: none
	row     any
	said    []stage.Output
}

type batchResult struct {
	outputs []stage.Output
	rows    map[string]any
	encoded []encodedRow // the rows, once they were checked
	errors  map[int]error
}

type join struct {
	topic string
	*table
}

type table struct {
	row    reflect.Type
	decode func([]byte) (any, error)
	encode func(any) ([]byte, error)
	merge  func(a, b any) any
	// same reports whether two encoded rows say the same, whenever they were written.
	same func(a, b []byte) bool
}

type timer struct {
	row      reflect.Type
	next     func(row any) (time.Time, bool)
	later    func(row any) []time.Time
	minDelay func(row any) time.Duration
	maxDelay func(row any) time.Duration // nil: none
	fire     func(ctx context.Context, key string, row any, valid func() bool) ([]stage.Output, error)
}

func rowType[R any]() reflect.Type { return reflect.TypeFor[R]() }

// typed turns a row of unknown type into *R; nil stays nil.
func typed[R any](row any) *R {
	r, _ := row.(*R)
	return r
}

// untyped turns a *R into a row of unknown type; a nil pointer becomes nil.
func untyped[R any](r *R) any {
	if r == nil {
		return nil
	}
	return r
}

func message[T any](codec stage.Codec[T], raw rawMessage) stage.Message[T] {
	m := stage.Message[T]{Record: raw.record, Key: string(raw.record.Key), Committed: raw.committed, Redelivered: raw.again}
	if raw.record.Value == nil {
		m.Tombstone = true
	} else {
		m.Value, m.DecodeError = codec.Decode(raw.record.Value)
	}
	return m.WithJoined(raw.joined)
}

// Input reads a topic and gives each message with its row to the handler, in the order of the log per partition.
func Input[T, R any](topic stage.Topic[T], handle stage.Handler[T, R]) Option {
	return func(g *Group) {
		g.inputs = append(g.inputs, &input{topic: topic.Name, row: rowType[R](),
			handle: func(ctx context.Context, raw rawMessage, row any) (result, error) {
				m := message(topic.Codec, raw)
				if errors.Is(m.DecodeError, stage.ErrNewerFormat) {
					return result{}, m.DecodeError
				}
				r, err := handle(ctx, m, typed[R](row))
				return result{outputs: r.Outputs, more: r.More, row: untyped(r.Row), said: r.Said}, err
			}})
	}
}

// BatchOptions bound a batch.
type BatchOptions struct {
	// MaxMessages in one batch.
	MaxMessages int
	// MaxBytes of values in one batch; one message always fits.
	MaxBytes int
	// Linger is how long the first message of a batch waits for others. It must be above zero: a batch that waits for
	// more than the gate lets in would wait for ever.
	Linger time.Duration
}

// Batch reads a topic and gives its messages in batches, per partition, to the handler.
func Batch[T, R any](topic stage.Topic[T], o BatchOptions, handle stage.BatchHandler[T, R]) Option {
	return func(g *Group) {
		if o.MaxMessages < 1 || o.MaxBytes < 1 || o.Linger <= 0 {
			g.problem = fmt.Errorf("batches of %s: MaxMessages, MaxBytes and Linger must be above zero", topic.Name)
			return
		}
		g.inputs = append(g.inputs, &input{topic: topic.Name, row: rowType[R](), batch: &o,
			prepare: func(raw rawMessage) (any, error) {
				if raw.record.Value == nil {
					return nil, errors.New("a null value, which this topic never carries")
				}
				m := message(topic.Codec, raw)
				return m, m.DecodeError
			},
			work: func(ctx context.Context, raw rawBatch) (batchResult, error) {
				b := stage.Batch[T, R]{Partition: raw.partition, Valid: raw.valid, Held: raw.held,
					Row: func(key string) *R { return typed[R](raw.row(key)) }}
				for _, m := range raw.messages {
					b.Messages = append(b.Messages, m.(stage.Message[T]))
				}
				return untypedBatch(handle(ctx, b)), nil
			}})
	}
}

func untypedBatch[R any](r stage.BatchResult[R]) batchResult {
	out := batchResult{outputs: r.Outputs, errors: r.Errors}
	for k, row := range r.Rows {
		if row == nil {
			continue
		}
		if out.rows == nil {
			out.rows = map[string]any{}
		}
		out.rows[k] = row
	}
	return out
}

// Join makes the table of another group readable for the handlers (stage.Joined). It must be partitioned as the inputs.
// What is read may be stale: use it to save work, never to decide what is true.
func Join[R any](t stage.Topic[R], merge func(a, b *R) *R) Option {
	return func(g *Group) {
		g.joins = append(g.joins, &join{topic: t.Name, table: rowCodec(t.Codec, merge)})
	}
}

// Output declares a topic that the handlers write to. It is for the reader of the topology, and for goka's graph.
func Output[T any](t stage.Topic[T]) Option {
	return func(g *Group) { g.outputs = append(g.outputs, t.Name) }
}

// Table gives the group a table in Kafka with a local LevelDB. merge must be commutative, associative and idempotent: a
// stopped process may write an old row late, and whoever reads both must end at the same row (contract rule 12).
func Table[R any](codec stage.Codec[R], merge func(a, b *R) *R) Option {
	return func(g *Group) {
		if g.table != nil {
			g.problem = errors.New("two tables; a group has one")
		}
		g.table = rowCodec(codec, merge)
	}
}

func rowCodec[R any](codec stage.Codec[R], merge func(a, b *R) *R) *table {
	return &table{row: rowType[R](),
		decode: func(b []byte) (any, error) {
			r, err := codec.Decode(b)
			if err != nil {
				return nil, err
			}
			return &r, nil
		},
		encode: func(r any) ([]byte, error) { return codec.Encode(*r.(*R)) },
		merge:  func(a, b any) any { return merge(a.(*R), b.(*R)) },
		same:   func(a, b []byte) bool { return bytes.Equal(a, b) || codecs.SamePayload(a, b) },
	}
}

// Timer acts on rows whose time has come.
func Timer[R any](t stage.Timer[R]) Option {
	return func(g *Group) {
		tm := &timer{row: rowType[R](),
			next: func(row any) (time.Time, bool) { return t.Next(typed[R](row)) },
			fire: func(ctx context.Context, key string, row any, valid func() bool) ([]stage.Output, error) {
				return t.Fire(ctx, key, typed[R](row), valid)
			},
			later:    func(any) []time.Time { return nil },
			minDelay: func(any) time.Duration { return 0 },
		}
		if t.Later != nil {
			tm.later = func(row any) []time.Time { return t.Later(typed[R](row)) }
		}
		if t.MinDelay != nil {
			tm.minDelay = func(row any) time.Duration { return t.MinDelay(typed[R](row)) }
		}
		if t.MaxDelay != nil {
			tm.maxDelay = func(row any) time.Duration { return t.MaxDelay(typed[R](row)) }
		}
		g.timer = tm
	}
}

// Failure is a message that its handler could not deal with.
type Failure struct {
	Group  string
	Record stage.Record
	Err    error
	// Class is ClassMessage, or ClassTransient once the retries in place are spent.
	Class stage.Class
	// Attempts in place.
	Attempts int
}

// FailureHandler says what follows from a failure: what is returned stands in the message's place. row is the row of the
// message's key (nil where it has none, and for messages of a batch). If it returns an error the partition is held and
// the whole message is tried again, so it must not fail for a reason of its own.
type FailureHandler[R any] func(ctx context.Context, f Failure, row *R) (stage.Result[R], error)

// OnFailure sets what follows from messages that fail. Without it a failing message holds its partition.
func OnFailure[R any](h FailureHandler[R]) Option {
	return func(g *Group) {
		g.failureRow = rowType[R]()
		g.failure = func(ctx context.Context, f Failure, row any) (result, error) {
			r, err := h(ctx, f, typed[R](row))
			return result{outputs: r.Outputs, more: r.More, row: untyped(r.Row), said: r.Said}, err
		}
	}
}

// Canary tries whether a dependency works with something known to be good. nil means it does.
type Canary func(ctx context.Context, dependency string) error

// WithCanary sets the canary: an outage holds a partition only while it fails too (contract rule 9).
func WithCanary(c Canary) Option { return func(g *Group) { g.canary = c } }
