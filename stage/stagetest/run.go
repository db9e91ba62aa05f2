package stagetest

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/waymarkhq/waymark/stage"
)

const (
	// maxRounds bounds how often all due rows fire after a history.
	maxRounds = 10
	// maxFirings bounds how often one row fires for one time: it may name several things that are due at once.
	maxFirings = 20
)

// runner runs one history.
type runner struct {
	k     *Kit
	h     *history
	found map[problem]*finding
	order []*finding
	now   func() string // what is being tried, for messages
	names names
	met   map[rowKey][][]byte
	again bool // messages are delivered after a crash

	// Of the undisturbed run: what followed from each unit; the rows before each unit and after the last one; all that was
	// sent, and how much of it before each unit and after the last one.
	effects []effect
	before  []rows
	log     []sent
	sentBy  []int
}

// rows are those after what was worked on last.
func (r *runner) rows() rows { return r.before[len(r.before)-1] }

// Run gives the history to the stage without and with crashes, and fails the test where that differs. It returns what
// came of the run without one.
func (k *Kit) Run(steps ...Step) *Run {
	k.t.Helper()
	h, err := k.history(steps)
	if err != nil {
		k.t.Fatalf("stagetest: %v", err)
	}
	r := &runner{k: k, h: h, names: names{}, found: map[problem]*finding{}, met: map[rowKey][][]byte{}, before: []rows{{}}, sentBy: []int{0}}
	r.undisturbed()
	r.crashes()
	r.merges()
	r.tell()
	return &Run{k: k, rows: r.rows(), outputs: r.log}
}

// undisturbed runs the history once, with every message handled twice, up to where its partition is held, if it is.
func (r *runner) undisturbed() {
	for round := 0; r.steps() && round < maxRounds && r.timers(); round++ {
	}
}

// steps works on all units that are left. false: one is held.
func (r *runner) steps() bool {
	for len(r.effects) < len(r.h.units) {
		if !r.step(r.h.units[len(r.effects)]) {
			return false
		}
	}
	return true
}

// step works on the next unit of the undisturbed run.
func (r *runner) step(u *unit) bool {
	r.now = func() string { return "in " + u.String() }
	defer func() { r.now = nil }()
	store := maps.Clone(r.rows())
	e, err := r.work(u, store)
	if err == nil {
		var again effect
		if again, err = r.work(u, store); err == nil && !r.equalEffects(e, again) {
			r.report(problemRepeat, "called twice with the same message and row, the stage gives different results\n\tfirst:%s\n\tthen: %s",
				r.list(slices.Concat(e.outputs, e.said)), r.list(slices.Concat(again.outputs, again.said)))
		}
	}
	if err != nil {
		r.report(problemHeld, "the partition is held: %v", err)
		return false
	}
	for _, w := range e.rows {
		r.place(w.at)
		r.write(store, w)
	}
	r.effects, r.before = append(r.effects, e), append(r.before, store)
	r.log = append(append(r.log, e.outputs...), e.said...)
	r.sentBy = append(r.sentBy, len(r.log))
	return true
}

// place looks whether the rows of a key are written from one partition only: their records go where the key belongs.
func (r *runner) place(at rowKey) {
	for other := range r.rows() {
		if other.key == at.key && other.partition != at.partition {
			r.report(problemPlace, "rows of the key %q are written from the partitions %d and %d; a key belongs to one", at.key, other.partition, at.partition)
		}
	}
}

// write puts a row into a store. It must win against the row that it replaces, as that one may still come late from a
// stopped process.
func (r *runner) write(store rows, w write) {
	r.meet(w)
	if old := store[w.at]; old != nil && !bytes.Equal(old, w.value) {
		if merged := r.merge(w.at, old, w.value); !r.same(w.at, merged, w.value) {
			r.report(problemReplace, "merged with the row that it replaces, a new row of key %q is not what is left\n\told:    %s\n\tnew:    %s\n\tmerged: %s",
				w.at.key, r.row(w.at, old), r.row(w.at, w.value), r.row(w.at, merged))
		}
	}
	store[w.at] = w.value
}

// timers fires for every row that wants it, and gives what comes back to the stage. false: nothing is left to be done.
func (r *runner) timers() bool {
	if r.k.timer == nil {
		return false
	}
	count := len(r.h.units)
	for _, at := range slices.SortedFunc(maps.Keys(r.rows()), compareRowKeys) {
		due, ok := r.k.timer.next(r.decode(at, r.rows()[at]))
		for firings := 1; ok; firings++ {
			before := r.rows()[at]
			back, ended := r.ring(at)
			if ended {
				return false
			}
			again, still := r.k.timer.next(r.decode(at, r.rows()[at]))
			ok = still && back && again.Equal(due)
			if ok && (firings == maxFirings || r.same(at, before, r.rows()[at])) {
				r.report(problemTimer, "the row %q is due at %v even after what its timer has sent has come back: it would fire for ever", at.key, due)
				return false
			}
		}
	}
	return len(r.h.units) > count
}

// ring fires for a row once. back: something that it sent came back; ended: the history cannot go on.
func (r *runner) ring(at rowKey) (back, ended bool) {
	u := &unit{fires: &at, settled: true}
	r.h.units = append(r.h.units, u)
	if !r.steps() {
		return false, true
	}
	for _, s := range r.effects[len(r.effects)-1].outputs {
		if in := r.k.inputs[s.out.Topic]; in != nil {
			r.h.add(in, stage.Record{Topic: s.out.Topic, Partition: at.partition, Key: s.out.Key, Value: s.out.Value, Headers: s.out.Headers}, true)
			back = true
		}
	}
	return back, !r.steps()
}

func compareRowKeys(a, b rowKey) int {
	return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.key, b.key))
}

// row shows a row to people.
func (r *runner) row(at rowKey, b []byte) string {
	if b == nil {
		return "none"
	}
	return brief(r.decode(at, b))
}
