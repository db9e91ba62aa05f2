package stagetest

import (
	"github.com/waymarkhq/waymark/stage"
)

// Run is what came of a history without a crash.
type Run struct {
	k       *Kit
	rows    rows
	outputs []sent
}

// Outputs are all records in the order in which they were sent: what is said of a message stands behind its outputs.
func (r *Run) Outputs() []stage.Output {
	outs := make([]stage.Output, len(r.outputs))
	for i, s := range r.outputs {
		outs[i] = s.out
	}
	return outs
}

// Sent are the values that were sent to a topic, in order. A tombstone, or a value that cannot be decoded, fails the test.
func Sent[T any](r *Run, topic stage.Topic[T]) []T {
	r.k.t.Helper()
	var values []T
	for _, s := range r.outputs {
		if s.out.Topic != topic.Name {
			continue
		}
		if s.out.Value == nil {
			r.k.t.Fatalf("stagetest: a tombstone of %q in %s", s.out.Key, topic.Name)
		}
		v, err := topic.Codec.Decode(s.out.Value)
		if err != nil {
			r.k.t.Fatalf("stagetest: a record of %q in %s cannot be decoded: %v", s.out.Key, topic.Name, err)
		}
		values = append(values, v)
	}
	return values
}

// Row is the final row of a key, in whichever partition it stands; nil if it has none.
func Row[R any](r *Run, key string) *R {
	r.k.t.Helper()
	for at, b := range r.rows {
		if at.key != key {
			continue
		}
		row, err := r.k.table.decode(b)
		if err != nil {
			r.k.t.Fatalf("stagetest: the row of %q cannot be read back: %v", key, err)
		}
		typed, ok := row.(*R)
		if !ok {
			r.k.t.Fatalf("stagetest: the row of %q is a %T", key, row)
		}
		return typed
	}
	return nil
}
