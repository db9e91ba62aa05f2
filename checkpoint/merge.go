package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
)

// Merge merges two rows of one key; it is commutative, associative and idempotent, and changes neither. Either may be nil.
//
// Without MergeState the row that is further along the log wins as a whole. Two rows that are equally far are equal, unless
// the step has decided differently in two processes; then the one whose JSON is greater wins in both. State and outcome must
// be ones that encoding/json can write.
func (r Rules[S, O]) Merge(a, b *Row[S, O]) *Row[S, O] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case r.MergeState == nil:
		if compareRows(a, b) < 0 {
			return b
		}
		return a
	}
	c := &Row[S, O]{State: r.MergeState(a.State, b.State), Count: max(a.Count, b.Count), Logs: maps.Clone(a.Logs)}
	if c.Logs == nil && len(b.Logs) > 0 {
		c.Logs = map[string]Log[O]{}
	}
	for topic, log := range b.Logs {
		c.Logs[topic] = mergeLogs(c.Logs[topic], log)
	}
	return c
}

// compareRows orders rows by how far they are. An applied message that stands below others, because it could not be applied
// when it came first, makes a row no longer but more: hence the count.
func compareRows[S, O any](a, b *Row[S, O]) int {
	if c := cmp.Or(furthest(a).Compare(furthest(b)), cmp.Compare(a.Count, b.Count)); c != 0 {
		return c
	}
	return compareJSON(a, b)
}

func furthest[S, O any](r *Row[S, O]) (p Position) {
	for _, log := range r.Logs {
		p = later(p, log.Next)
	}
	return p
}

// mergeLogs joins what is remembered: a message below the higher floor is forgotten, whoever remembers it still.
func mergeLogs[O any](a, b Log[O]) Log[O] {
	c := Log[O]{Next: later(a.Next, b.Next), Floor: later(a.Floor, b.Floor), Seen: map[string]Mark[O]{}}
	for _, seen := range []map[string]Mark[O]{a.Seen, b.Seen} {
		for id, m := range seen {
			if m.Compare(c.Floor) < 0 {
				continue
			}
			if other, known := c.Seen[id]; !known || compareMarks(other, m) < 0 {
				c.Seen[id] = m
			}
		}
	}
	if len(c.Seen) == 0 {
		c.Seen = nil // as it is read back
	}
	return c
}

func compareMarks[O any](a, b Mark[O]) int {
	if c := cmp.Or(a.Compare(b.Position), cmp.Compare(a.At, b.At)); c != 0 {
		return c
	}
	return compareJSON(a.Outcome, b.Outcome)
}

// compareJSON orders what nothing else orders: equal values by equal bytes, since maps are written in the order of their keys.
// A value that cannot be written is below all others; it could not be stored as JSON either.
func compareJSON(a, b any) int {
	left, err := json.Marshal(a)
	if err != nil {
		left = nil
	}
	right, err := json.Marshal(b)
	if err != nil {
		right = nil
	}
	return bytes.Compare(left, right)
}
