package stagetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// rowState is how far the rows of a unit had come.
type rowState int

const (
	rowNone  rowState = iota
	rowLocal          // in the local store only
	rowTable          // acknowledged by the table's topic too
)

// lost is what a crash takes from the units before the one in which it happens that were not committed yet.
type lost int

const (
	lostNothing lost = iota
	lostSaid         // what was to be said after their rows
	lostAll          // all but their local rows
)

// crash is one way in which a process may end.
type crash struct {
	unit    int // in which it happens
	outputs int // of it that were acknowledged
	row     rowState
	said    int // of it that were acknowledged
	from    int // the first unit that is not committed
	lost    lost
	rebuilt bool // the local rows are gone and come back from the table
}

// crashes tries every crash.
func (r *runner) crashes() {
	for i, e := range r.effects {
		for _, c := range points(i, e) {
			r.try(c)
			if i > 0 {
				c.from = 0
				r.try(c)
			}
		}
		if r.h.units[i].settled {
			continue
		}
		from := i
		for from > 0 && !r.h.units[from].settled {
			from--
		}
		done := crash{unit: i, outputs: len(e.outputs), row: rowTable, from: from}
		done.lost = lostSaid
		r.try(done)
		done.rebuilt = true
		r.try(done)
		r.try(crash{unit: i, row: rowLocal, from: from, lost: lostAll})
	}
}

// points are the crashes within one unit, those before it committed.
func points(i int, e effect) []crash {
	var all []crash
	add := func(c crash) {
		c.unit, c.from = i, i
		all = append(all, c)
		if c.row != rowLocal { // a local row that is gone was never there
			c.rebuilt = true
			all = append(all, c)
		}
	}
	for n := range len(e.outputs) + 1 {
		add(crash{outputs: n})
		if len(e.rows) > 0 {
			add(crash{outputs: n, row: rowLocal})
			add(crash{outputs: n, row: rowTable})
		}
	}
	done := crash{outputs: len(e.outputs), row: rowTable}
	for n := range e.said {
		done.said = n + 1
		add(done)
	}
	return all
}

// try crashes, delivers what was not committed again, and compares: then everything has to be as it was after the unit
// without a crash.
func (r *runner) try(c crash) {
	r.now = func() string { return r.story(c) }
	r.again = true
	defer func() { r.now, r.again = nil, false }()
	log, local, table := r.wreck(c)
	for j := c.from; j <= c.unit; j++ {
		if r.h.units[j].fires != nil && j < c.unit {
			continue // what it sent has come back, and stands in the log
		}
		e, err := r.work(r.h.units[j], local)
		if err != nil {
			r.report(problemHeld, "after a crash the partition is held in %v: %v", r.h.units[j], err)
			return
		}
		log = append(append(log, e.outputs...), e.said...)
		for _, w := range e.rows {
			r.write(local, w)
			table[w.at] = w.value
		}
	}
	r.judge(c.unit+1, log, local, table)
}

// wreck is what is left after a crash: what has been sent, and the rows as they are recovered.
func (r *runner) wreck(c crash) (log []sent, local, table rows) {
	e := r.effects[c.unit]
	sentBefore := c.unit
	if c.lost != lostNothing {
		sentBefore = c.from
	}
	log = slices.Clone(r.log[:r.sentBy[sentBefore]])
	table, local = maps.Clone(r.before[sentBefore]), maps.Clone(r.before[c.unit])
	if c.lost == lostSaid {
		for _, earlier := range r.effects[c.from:c.unit] {
			log = append(log, earlier.outputs...)
		}
		table = maps.Clone(local)
	}
	log = append(append(log, e.outputs[:c.outputs]...), e.said[:c.said]...)
	for _, w := range e.rows {
		if c.row >= rowLocal {
			local[w.at] = w.value
		}
		if c.row == rowTable {
			table[w.at] = w.value
		}
	}
	if c.rebuilt {
		return log, maps.Clone(table), table
	}
	for at, value := range table {
		if own := local[at]; own != nil && !r.same(at, own, value) {
			value = r.merge(at, own, value)
		}
		local[at] = value
	}
	return log, local, table
}

func (r *runner) judge(by int, log []sent, local, table rows) {
	all := r.log[:r.sentBy[by]]
	d := compare(all, log)
	if len(d.missing) > 0 {
		r.report(problemMissing, "after a crash records are missing:%s", r.list(d.missing))
	}
	if len(d.foreign) > 0 {
		r.report(problemForeign, "after a crash records are sent that are not those of a run without one:%s", r.list(d.foreign))
	}
	for _, stream := range d.disordered {
		others := func(s sent) bool { return s.stream != stream }
		r.report(problemOrder, "after a crash the records of a key are in another order\n\twant:%s\n\tgot: %s",
			r.list(slices.DeleteFunc(slices.Clone(all), others)), r.list(slices.DeleteFunc(slices.Clone(log), others)))
	}
	r.judgeRows(problemLocalRow, "the row", r.before[by], local)
	r.judgeRows(problemTableRow, "the table's record", r.before[by], table)
}

func (r *runner) judgeRows(p problem, what string, want, got rows) {
	for _, at := range slices.SortedFunc(maps.Keys(union(want, got)), compareRowKeys) {
		if got[at] == nil && r.k.cache {
			continue
		}
		if !r.same(at, want[at], got[at]) {
			r.report(p, "after a crash %s of key %q is another one\n\twant: %s\n\tgot:  %s", what, at.key, r.row(at, want[at]), r.row(at, got[at]))
		}
	}
}

func union(a, b rows) rows {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// story tells a crash to people.
func (r *runner) story(c crash) string {
	e := r.effects[c.unit]
	var b strings.Builder
	fmt.Fprintf(&b, "crash: in %v (%d of %d)", r.h.units[c.unit], c.unit+1, len(r.h.units))
	fmt.Fprintf(&b, ", %d of %d outputs sent", c.outputs, len(e.outputs))
	if len(e.rows) > 0 {
		b.WriteString([...]string{", the row not written", ", the row written locally but not to the table", ", the row written"}[c.row])
	}
	if len(e.said) > 0 {
		fmt.Fprintf(&b, ", %d of %d words said", c.said, len(e.said))
	}
	switch c.lost {
	case lostSaid:
		fmt.Fprintf(&b, "; nothing said since %v", r.h.units[c.from])
	case lostAll:
		fmt.Fprintf(&b, "; since %v nothing but the local rows was written", r.h.units[c.from])
	}
	fmt.Fprintf(&b, "\n\tthen:  delivered again from %v, with the local rows ", r.h.units[c.from])
	if c.rebuilt {
		b.WriteString("rebuilt from the table")
	} else {
		b.WriteString("kept")
	}
	return b.String()
}
