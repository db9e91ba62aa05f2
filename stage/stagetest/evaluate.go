package stagetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/waymarkhq/waymark/stage"
)

// rowKey names a row. Each partition has a store of its own.
type rowKey struct {
	partition int32
	key       string
}

// rows are encoded: what a handler sees was read from a store.
type rows map[rowKey][]byte

// effect is what follows from a unit.
type effect struct {
	outputs []sent
	rows    []write
	said    []sent
}

type write struct {
	at    rowKey
	value []byte
}

// work calls the stage for a unit. An error means that the unit's partition would be held.
func (r *runner) work(u *unit, local rows) (effect, error) {
	switch {
	case u.fires != nil:
		return r.fire(*u.fires, local)
	case u.in.handle != nil:
		return r.one(u.in, u.records[0], local)
	}
	return r.batch(u, local)
}

// one calls a handler for a message; what fails goes to OnFailure.
func (r *runner) one(in *input, record stage.Record, local rows) (effect, error) {
	at := rowKey{record.Partition, string(record.Key)}
	var res result
	err := r.withRow(at, local, func(row any) error {
		return r.withMessage(record, func(m message) (err error) {
			res, err = in.handle(r.k.t.Context(), m, row)
			return err
		})
	})
	if err == nil {
		var e effect
		if e, err = r.effect(at, res); err == nil {
			return e, nil
		}
	}
	return r.failed(record, err, local)
}

// failed asks OnFailure what follows from a failure; a nil store means that the message was one of a batch.
func (r *runner) failed(record stage.Record, cause error, local rows) (effect, error) {
	class := stage.ClassOf(cause)
	if class == stage.ClassOutage {
		return effect{}, fmt.Errorf("an outage: %w", cause)
	}
	if r.k.failure == nil {
		return effect{}, fmt.Errorf("it fails, and nothing says what follows from that: %w", cause)
	}
	at := rowKey{record.Partition, string(record.Key)}
	var res result
	err := r.withRow(at, local, func(row any) (err error) {
		res, err = r.k.failure(r.k.t.Context(), copyRecord(record), class, cause, row)
		return err
	})
	if err == nil {
		var e effect
		if e, err = r.effect(at, res); err == nil {
			return e, nil
		}
	}
	return effect{}, fmt.Errorf("OnFailure fails on %w: %w", cause, err)
}

func (r *runner) batch(u *unit, local rows) (effect, error) {
	var e effect
	var failures []effect
	var good []stage.Record
	fails := func(record stage.Record, err error) error {
		f, err := r.failed(record, err, nil)
		failures = append(failures, f)
		return err
	}
	for _, record := range u.records {
		err := safely(func() error { return u.in.decodes(record.Value) })
		switch {
		case err == nil:
			good = append(good, record)
		case errors.Is(err, stage.ErrNewerFormat):
			return e, fmt.Errorf("an outage: %w", err)
		default:
			if err := fails(record, stage.Reject("undecodable", "a record of %s: %w", record.Topic, err)); err != nil {
				return e, err
			}
		}
	}
	if len(good) == 0 {
		return combined(e, failures), nil
	}
	res, err := r.callBatch(u, good, local)
	if err != nil {
		return e, fmt.Errorf("the handler of a batch panics: %w", err)
	}
	for _, i := range slices.Sorted(maps.Keys(res.errors)) {
		if i < 0 || i >= len(good) {
			return e, fmt.Errorf("an error of message %d, where the batch has %d", i, len(good))
		}
		if res.errors[i] == nil {
			continue
		}
		if err := fails(good[i], res.errors[i]); err != nil {
			return e, err
		}
	}
	e, err = r.effect(rowKey{}, result{outputs: res.outputs})
	if err != nil {
		return e, fmt.Errorf("an output of a batch: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(res.rows)) {
		w, err := r.encode(rowKey{u.records[0].Partition, key}, res.rows[key])
		if err != nil {
			return e, err
		}
		e.rows = append(e.rows, w)
	}
	return combined(e, failures), nil
}

func combined(e effect, more []effect) effect {
	for _, f := range more {
		e.outputs, e.rows, e.said = append(e.outputs, f.outputs...), append(e.rows, f.rows...), append(e.said, f.said...)
	}
	return e
}

// callBatch calls the handler of a batch, and looks whether it left messages and rows alone.
func (r *runner) callBatch(u *unit, records []stage.Record, local rows) (res batchResult, err error) {
	partition := records[0].Partition
	read := map[rowKey][]any{}
	row := func(key string) any {
		at := rowKey{partition, key}
		row := r.decode(at, local[at])
		if row != nil {
			read[at] = append(read[at], row)
		}
		return row
	}
	ms := make([]message, len(records))
	for i, record := range records {
		ms[i] = message{record: copyRecord(record), committed: records[0].Offset, again: r.again}
	}
	err = safely(func() error { res = u.in.work(r.k.t.Context(), partition, ms, row); return nil })
	for at, given := range read {
		for _, row := range given {
			r.unchanged("the stage", at, row, local[at])
		}
	}
	for i, m := range ms {
		r.untouched(m.record, records[i])
	}
	return res, err
}

// fire lets the timer act on a row; nothing follows where the row does not want it.
func (r *runner) fire(at rowKey, local rows) (e effect, err error) {
	var outs []stage.Output
	err = r.withRow(at, local, func(row any) (err error) {
		if row == nil {
			return nil
		}
		if _, due := r.k.timer.next(row); due {
			outs, err = r.k.timer.fire(r.k.t.Context(), at.key, row)
		}
		return err
	})
	if err != nil {
		return e, fmt.Errorf("the timer fails: %w", err)
	}
	e, err = r.effect(at, result{outputs: outs})
	for i := range e.outputs {
		e.outputs[i].timer = true
	}
	return e, err
}

// withRow decodes a row for f and looks whether f has left it alone. A nil store has no rows.
func (r *runner) withRow(at rowKey, local rows, f func(row any) error) error {
	row := r.decode(at, local[at])
	err := safely(func() error { return f(row) })
	if row != nil {
		r.unchanged("the stage", at, row, local[at])
	}
	return err
}

// withMessage copies a record and reads the joined tables for f, and looks whether f has left them alone.
func (r *runner) withMessage(record stage.Record, f func(m message) error) error {
	m := message{record: copyRecord(record), committed: record.Offset, again: r.again}
	shown := map[string][]byte{}
	for _, j := range r.k.joins {
		row := j.rowOf(record)
		if row == nil {
			continue
		}
		b, err := j.encode(row)
		if err != nil {
			return fmt.Errorf("a row of the joined table %s: %w", j.topic, err)
		}
		if row, err = j.decode(b); err != nil {
			return fmt.Errorf("a row of the joined table %s: %w", j.topic, err)
		}
		if m.joined == nil {
			m.joined = map[string]any{}
		}
		m.joined[j.topic], shown[j.topic] = row, b
	}
	err := f(m)
	for _, j := range r.k.joins {
		if b := shown[j.topic]; b != nil {
			if row, derr := j.decode(b); derr == nil && !reflect.DeepEqual(row, m.joined[j.topic]) {
				r.report(problemMutation, "the stage changes the row of the joined table %s that it is given", j.topic)
			}
		}
	}
	r.untouched(m.record, record)
	return err
}

// unchanged looks whether a row is still what it was decoded from. Others may be reading it: a new one is to be returned.
func (r *runner) unchanged(who string, at rowKey, row any, value []byte) {
	if before := r.decode(at, value); !reflect.DeepEqual(before, row) {
		r.report(problemMutation, "%s changes the row that it is given, of key %q, instead of returning a new one\n\tbefore: %s\n\tafter:  %s",
			who, at.key, brief(before), brief(row))
	}
}

func (r *runner) untouched(got, want stage.Record) {
	if !reflect.DeepEqual(got, want) {
		r.report(problemMutation, "the stage changes the record of the message that it is given")
	}
}

// effect encodes what follows from a message. An error is one of the message, as in the engine.
func (r *runner) effect(at rowKey, res result) (effect, error) {
	var e effect
	for _, out := range slices.Concat(res.outputs, res.said) {
		if out.Err != nil {
			return e, stage.Reject("not_encodable", "a record for %s: %w", out.Topic, out.Err)
		}
	}
	e.outputs, e.said = r.sending(res.outputs), r.sending(res.said)
	if res.row == nil {
		return e, nil
	}
	w, err := r.encode(at, res.row)
	e.rows = []write{w}
	return e, err
}

func (r *runner) encode(at rowKey, row any) (write, error) {
	if r.k.table == nil {
		return write{}, stage.Reject("no_table", "the stage has no table for the row of %q", at.key)
	}
	b, err := r.k.table.encode(row)
	if err != nil {
		return write{}, stage.Reject("row_not_encodable", "the row of %q: %w", at.key, err)
	}
	return write{at, b}, nil
}

// decode reads a row that this run has encoded; nil where there is none.
func (r *runner) decode(at rowKey, b []byte) any {
	if b == nil {
		return nil
	}
	row, err := r.k.table.decode(b)
	if err != nil {
		r.k.t.Fatalf("stagetest: the row of %q cannot be read back: %v", at.key, err)
	}
	return row
}

// same tells whether two encoded rows say the same.
func (r *runner) same(at rowKey, a, b []byte) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return bytes.Equal(a, b) || reflect.DeepEqual(r.decode(at, a), r.decode(at, b))
}

// safely calls code of the stage; a panic is an error of the message.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = stage.Reject("panic", "the stage panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

func copyRecord(r stage.Record) stage.Record {
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	r.Headers = slices.Clone(r.Headers)
	for i, h := range r.Headers {
		r.Headers[i] = stage.Header{Key: bytes.Clone(h.Key), Value: bytes.Clone(h.Value)}
	}
	return r
}
