package stagetest

import (
	"bytes"
	"maps"
	"slices"
)

// maxMet bounds how many rows of one key the merge is tried on: three at a time.
const maxMet = 10

// meet remembers a row, for the merge.
func (r *runner) meet(w write) {
	known := r.met[w.at]
	if len(known) < maxMet && !slices.ContainsFunc(known, func(b []byte) bool { return bytes.Equal(b, w.value) }) {
		r.met[w.at] = append(known, w.value)
	}
}

// merge merges two encoded rows, and looks whether the merge has left them alone.
func (r *runner) merge(at rowKey, a, b []byte) []byte {
	left, right := r.decode(at, a), r.decode(at, b)
	var merged []byte
	err := safely(func() error {
		row := r.k.table.merge(left, right)
		if row == nil {
			r.report(problemMerge, "the merge makes nothing of two rows of key %q\n\ta: %s\n\tb: %s", at.key, r.row(at, a), r.row(at, b))
			return nil
		}
		var err error
		merged, err = r.k.table.encode(row)
		return err
	})
	if err != nil {
		r.report(problemMerge, "the merge of two rows of key %q fails: %v\n\ta: %s\n\tb: %s", at.key, err, r.row(at, a), r.row(at, b))
	}
	if merged == nil {
		return a
	}
	r.unchanged("the merge", at, left, a)
	r.unchanged("the merge", at, right, b)
	return merged
}

// merges tries the merge on all rows met.
func (r *runner) merges() {
	for _, at := range slices.SortedFunc(maps.Keys(r.met), compareRowKeys) {
		met := r.met[at]
		for _, a := range met {
			r.law(at, "idempotent: merge(a, a) is not a", a, r.merge(at, a, a), a)
			for _, b := range met {
				ab := r.merge(at, a, b)
				r.law(at, "commutative: merge(a, b) is not merge(b, a)", ab, r.merge(at, b, a), a, b)
				for _, c := range met {
					r.law(at, "associative: merge(merge(a, b), c) is not merge(a, merge(b, c))", r.merge(at, ab, c), r.merge(at, a, r.merge(at, b, c)), a, b, c)
				}
			}
		}
	}
}

func (r *runner) law(at rowKey, law string, left, right []byte, of ...[]byte) {
	if r.same(at, left, right) {
		return
	}
	text := ""
	for i, b := range of {
		text += "\n\t" + string(rune('a'+i)) + ": " + r.row(at, b)
	}
	r.report(problemMerge, "the merge of rows of key %q is not %s%s\n\tleft:  %s\n\tright: %s", at.key, law, text, r.row(at, left), r.row(at, right))
}
