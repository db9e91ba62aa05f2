package stagetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/stage"
)

// Kit is a stage with all that belongs to it, ready to be run. Make it with New.
type Kit struct {
	t       testing.TB
	inputs  map[string]*input
	joins   []*join
	table   *table
	cache   bool // a missing row is no fault
	timer   *timer
	failure func(ctx context.Context, r stage.Record, class stage.Class, err error, row any) (result, error)
	show    map[string]func([]byte) string // values of a topic, for people
	types   []reflect.Type                 // of the rows that the parts work on
	problem error
}

// Option is one part of a stage.
type Option func(*Kit)

// New puts a stage together, of the same parts as a group of the engine. It fails the test where they contradict each other.
func New(t testing.TB, options ...Option) *Kit {
	t.Helper()
	k := &Kit{t: t, inputs: map[string]*input{}, show: map[string]func([]byte) string{}}
	for _, o := range options {
		o(k)
	}
	for _, r := range k.types {
		if k.table != nil && r != k.table.row {
			k.fail("a part works on rows of %v, the table holds %v", r, k.table.row)
		}
	}
	if len(k.inputs) == 0 {
		k.fail("no input")
	}
	if k.timer != nil && k.table == nil {
		k.fail("a timer without a table")
	}
	if k.problem != nil {
		t.Fatalf("stagetest: %v", k.problem)
	}
	return k
}

func (k *Kit) fail(format string, args ...any) {
	if k.problem == nil {
		k.problem = fmt.Errorf(format, args...)
	}
}

// input is one topic with what is done with its messages; the types of message and row are closed over.
type input struct {
	topic   string
	handle  func(ctx context.Context, m message, row any) (result, error) // nil: in batches
	work    func(ctx context.Context, partition int32, ms []message, row func(key string) any) batchResult
	decodes func(value []byte) error
}

type message struct {
	record    stage.Record
	committed int64
	again     bool
	joined    map[string]any
}

type result struct {
	outputs []stage.Output
	row     any // nil: the row stays as it is
	said    []stage.Output
}

type batchResult struct {
	outputs []stage.Output
	rows    map[string]any
	errors  map[int]error
}

type table struct {
	row    reflect.Type
	encode func(row any) ([]byte, error)
	decode func(b []byte) (any, error)
	merge  func(a, b any) any
}

type join struct {
	topic string
	*table
	rowOf func(r stage.Record) any
}

type timer struct {
	next func(row any) (time.Time, bool)
	fire func(ctx context.Context, key string, row any) ([]stage.Output, error)
}

// Table is the stage's table. merge is never called with nil.
func Table[R any](codec stage.Codec[R], merge func(a, b *R) *R) Option {
	return func(k *Kit) {
		if k.table != nil {
			k.fail("two tables; a stage has one")
		}
		k.table = newTable(codec, merge)
	}
}

// Cache is a table whose rows save work and say nothing that is not known otherwise: a crash may lose one.
func Cache[R any](codec stage.Codec[R], merge func(a, b *R) *R) Option {
	return func(k *Kit) {
		Table(codec, merge)(k)
		k.cache = true
	}
}

func newTable[R any](codec stage.Codec[R], merge func(a, b *R) *R) *table {
	return &table{
		row:    reflect.TypeFor[R](),
		encode: func(row any) ([]byte, error) { return codec.Encode(*row.(*R)) },
		decode: func(b []byte) (any, error) {
			r, err := codec.Decode(b)
			if err != nil {
				return nil, err
			}
			return &r, nil
		},
		merge: func(a, b any) any { return untyped(merge(a.(*R), b.(*R))) },
	}
}

// Input is a topic whose messages are given to the handler one by one.
func Input[T, R any](topic stage.Topic[T], handle stage.Handler[T, R]) Option {
	return func(k *Kit) {
		k.reads(&input{topic: topic.Name, handle: func(ctx context.Context, m message, row any) (result, error) {
			r, err := handle(ctx, typedMessage(topic, m), typed[R](row))
			if err != nil {
				return result{}, err
			}
			return untypedResult(ctx, r)
		}}, reflect.TypeFor[R]())
		showing(k, topic)
	}
}

// Batch is a topic whose messages are given to the handler in batches: those of one partition that follow each other in the
// history are one batch, up to the next Settled. A message that cannot be decoded never joins one; it goes to OnFailure.
func Batch[T, R any](topic stage.Topic[T], handle stage.BatchHandler[T, R]) Option {
	return func(k *Kit) {
		in := &input{topic: topic.Name}
		in.decodes = func(value []byte) error {
			if value == nil {
				return errors.New("a null value")
			}
			_, err := topic.Codec.Decode(value)
			return err
		}
		in.work = func(ctx context.Context, partition int32, ms []message, row func(string) any) batchResult {
			b := stage.Batch[T, R]{Partition: partition, Valid: func() bool { return true }, Row: func(key string) *R { return typed[R](row(key)) }}
			for _, m := range ms {
				b.Messages = append(b.Messages, typedMessage(topic, m))
			}
			r := handle(ctx, b)
			out := batchResult{outputs: r.Outputs, errors: r.Errors, rows: map[string]any{}}
			for key, row := range r.Rows {
				if row != nil {
					out.rows[key] = row
				}
			}
			return out
		}
		k.reads(in, reflect.TypeFor[R]())
		showing(k, topic)
	}
}

func (k *Kit) reads(in *input, row reflect.Type) {
	if k.inputs[in.topic] != nil {
		k.fail("two inputs of the topic %s", in.topic)
	}
	k.inputs[in.topic] = in
	k.types = append(k.types, row)
}

// Output tells how the values of a topic that the stage writes to are read, for messages of failed tests.
func Output[T any](topic stage.Topic[T]) Option { return func(k *Kit) { showing(k, topic) } }

func showing[T any](k *Kit, topic stage.Topic[T]) {
	k.show[topic.Name] = func(b []byte) string {
		v, err := topic.Codec.Decode(b)
		if err != nil {
			return fmt.Sprintf("%q", b)
		}
		return fmt.Sprintf("%+v", v)
	}
}

// Join gives the stage a joined table: row is what it shows for the key of a record, nil for none. It has to show the same
// every time.
func Join[R any](t stage.Topic[R], row func(r stage.Record) *R) Option {
	return func(k *Kit) {
		none := func(a, _ *R) *R { return a }
		k.joins = append(k.joins, &join{topic: t.Name, table: newTable(t.Codec, none), rowOf: func(r stage.Record) any { return untyped(row(r)) }})
	}
}

// FailureHandler says what follows from a message that its handler could not deal with: what is returned stands in its
// place. row is the row of the message's key, nil where it has none and for messages of a batch.
type FailureHandler[R any] func(ctx context.Context, r stage.Record, class stage.Class, err error, row *R) (stage.Result[R], error)

// OnFailure sets what follows from messages that fail. Without it a failing message fails the test.
func OnFailure[R any](h FailureHandler[R]) Option {
	return func(k *Kit) {
		k.types = append(k.types, reflect.TypeFor[R]())
		k.failure = func(ctx context.Context, r stage.Record, class stage.Class, err error, row any) (result, error) {
			res, ferr := h(ctx, r, class, err, typed[R](row))
			if ferr != nil {
				return result{}, ferr
			}
			return untypedResult(ctx, res)
		}
	}
}

// Timer is the stage's timer. When a history has ended, the kit lets time pass: it fires for every row that wants it, and
// gives the records that are sent to the stage's own inputs to the stage, until nothing is due any more. A row that is
// still due at the same time although such a record has come would fire for ever; that fails the test.
func Timer[R any](t stage.Timer[R]) Option {
	return func(k *Kit) {
		k.types = append(k.types, reflect.TypeFor[R]())
		k.timer = &timer{
			next: func(row any) (time.Time, bool) { return t.Next(typed[R](row)) },
			fire: func(ctx context.Context, key string, row any) ([]stage.Output, error) {
				return t.Fire(ctx, key, typed[R](row), func() bool { return true })
			},
		}
	}
}

func typed[R any](row any) *R {
	r, _ := row.(*R)
	return r
}

func untyped[R any](r *R) any {
	if r == nil {
		return nil
	}
	return r
}

// untypedResult takes in what the result gives one by one, and gives it as one that is checked and then sent.
func untypedResult[R any](ctx context.Context, r stage.Result[R]) (result, error) {
	res := result{outputs: r.Outputs, row: untyped(r.Row), said: r.Said}
	if r.More == nil {
		return res, nil
	}
	nothing := func(stage.Output) error { return nil }
	if err := r.More(ctx, nothing); err != nil {
		return result{}, err
	}
	res.outputs = slices.Clone(res.outputs)
	err := r.More(ctx, func(out stage.Output) error {
		res.outputs = append(res.outputs, out)
		return nil
	})
	return res, err
}

func typedMessage[T any](topic stage.Topic[T], m message) stage.Message[T] {
	out := stage.Message[T]{Record: m.record, Key: string(m.record.Key), Committed: m.committed, Redelivered: m.again}
	if m.record.Value == nil {
		out.Tombstone = true
	} else {
		out.Value, out.DecodeError = topic.Codec.Decode(m.record.Value)
	}
	return out.WithJoined(m.joined)
}
