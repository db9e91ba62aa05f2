package checkpoint_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/checkpoint"
)

var errPoison = errors.New("poison")

// dead is what is sent for a message that cannot be applied.
const dead = -1

// world is a log, a stage that works on it in processes which end at any point, and what they leave behind. Sends are
// acknowledged in order, outputs before the row, as the engine does it.
type world struct {
	t         *rapid.T
	rules     rules
	log       []checkpoint.Message
	poison    map[string]bool // ids of messages that cannot be applied
	table     []*row
	emitted   map[int64][]int // outcomes that were sent, by offset of their message
	committed int64
	owner     *process
	zombies   []*process // processes that have lost the partition and do not know it
}

// process works on the log from what was committed.
type process struct {
	local    *row
	next     int64 // to be delivered
	finished int64 // all below are
	followed int   // records of the table that were read back
	flying   []send
}

// send is a record on its way: an output, or a row.
type send struct {
	offset  int64
	row     *row
	outcome int
	last    bool // with it the message is finished
}

func (w *world) recovered() (r *row) {
	for _, record := range w.table {
		r = w.rules.Merge(r, record)
	}
	return r
}

// crash ends the owner, or only takes its partition from it. The next one begins with its local row, which may be ahead of
// the table, or without.
func (w *world) crash(dies, keepLocal bool) {
	local := w.recovered()
	if keepLocal {
		local = w.rules.Merge(local, w.owner.local)
	}
	if !dies {
		w.zombies = append(w.zombies, w.owner)
	}
	w.owner = &process{local: local, next: w.committed, finished: w.committed, followed: len(w.table)}
}

func (w *world) deliver(p *process) {
	if p.next == int64(len(w.log)) {
		return
	}
	m := w.log[p.next]
	m.Committed = p.finished
	step := add(int(m.Offset) + 1)
	if w.poison[m.ID] {
		step = func(account) (account, int, error) { return account{}, 0, errPoison }
	}
	res, err := w.rules.Apply(p.local, m, step)
	p.next++
	switch {
	case errors.Is(err, errPoison): // a dead letter
		p.flying = append(p.flying, send{offset: m.Offset, outcome: dead}, send{offset: m.Offset, last: true})
		return
	case err != nil:
		w.t.Fatal(err)
	case res.Row == nil:
		p.flying = append(p.flying, send{offset: m.Offset, last: true})
		return
	}
	p.local = res.Row
	p.flying = append(p.flying, send{offset: m.Offset, outcome: res.Outcome}, send{offset: m.Offset, row: res.Row, last: true})
}

func (w *world) acknowledge(p *process) {
	if len(p.flying) == 0 {
		return
	}
	s := p.flying[0]
	p.flying = p.flying[1:]
	switch {
	case s.row != nil:
		w.table = append(w.table, s.row)
	case !s.last:
		w.emitted[s.offset] = append(w.emitted[s.offset], s.outcome)
	}
	if s.last {
		p.finished = s.offset + 1
	}
}

// follow merges what stands in the table into the owner's row, and writes that again where it is not the same.
func (w *world) follow() {
	for ; w.owner.followed < len(w.table); w.owner.followed++ {
		w.owner.local = w.rules.Merge(w.owner.local, w.table[w.owner.followed])
		if w.owner.followed == len(w.table)-1 && !reflect.DeepEqual(w.owner.local, w.table[w.owner.followed]) {
			w.table = append(w.table, w.owner.local)
		}
	}
}

func (w *world) run(steps int) {
	someone := func() *process {
		all := append([]*process{w.owner}, w.zombies...)
		return all[rapid.IntRange(0, len(all)-1).Draw(w.t, "who")]
	}
	for range steps {
		switch rapid.SampledFrom([]string{"deliver", "deliver", "acknowledge", "acknowledge", "commit", "crash", "follow"}).Draw(w.t, "step") {
		case "deliver":
			w.deliver(someone())
		case "acknowledge":
			w.acknowledge(someone())
		case "commit":
			w.committed = max(w.committed, w.owner.finished)
		case "crash":
			w.crash(rapid.Bool().Draw(w.t, "dies"), rapid.Bool().Draw(w.t, "keeps its rows"))
		case "follow":
			w.follow()
		}
	}
	for w.owner.next < int64(len(w.log)) || len(w.owner.flying) > 0 {
		w.deliver(w.owner)
		w.acknowledge(w.owner)
		w.acknowledge(w.owner)
	}
	for _, z := range w.zombies {
		for len(z.flying) > 0 {
			w.acknowledge(z)
		}
	}
	w.follow()
}

// check compares with the log applied once, without a crash: that is the model.
func (w *world) check() {
	seen, balance := map[string]bool{}, 0
	for _, m := range w.log {
		outs, want := w.emitted[m.Offset], dead
		switch {
		case m.ID != "" && seen[m.ID]:
			if len(outs) > 0 {
				w.t.Fatalf("offset %d is a duplicate and was sent", m.Offset)
			}
			continue
		case !w.poison[m.ID]:
			seen[m.ID] = true
			balance += int(m.Offset) + 1
			want = balance
		}
		if len(outs) == 0 {
			w.t.Fatalf("nothing was ever sent for offset %d", m.Offset)
		}
		for _, o := range outs {
			if o != want {
				w.t.Fatalf("offset %d said %v, want %d every time", m.Offset, outs, want)
			}
		}
	}
	if w.owner.local == nil {
		w.owner.local = &row{}
	}
	if got := w.owner.local.State.Balance; got != balance {
		w.t.Fatalf("the balance is %d, want %d", got, balance)
	}
	if got := w.recovered(); got != nil && !reflect.DeepEqual(got, w.owner.local) {
		w.t.Fatalf("the table recovers to %+v, the owner has %+v", got, w.owner.local)
	}
}

func newWorld(t *rapid.T, keep checkpoint.Keep, ids func(i int) string) *world {
	w := &world{t: t, rules: rules{Keep: keep, Now: func() time.Time { return noon.Add(time.Hour) }}, emitted: map[int64][]int{}, poison: map[string]bool{"x": true, "y": true}, owner: &process{}}
	for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
		w.log = append(w.log, at(int64(i), ids(i)))
	}
	return w
}

// Whatever ends a process, and whatever a stopped one writes late: each message is applied once, everything that follows
// from it is sent, and what is sent again says the same.
func TestNothingIsLostOrAppliedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keep := checkpoint.Keep{For: 2 * time.Hour, Least: 100, Most: 100}
		w := newWorld(t, keep, func(int) string { return rapid.SampledFrom([]string{"", "a", "b", "c", "d", "x", "y"}).Draw(t, "id") })
		w.run(rapid.IntRange(0, 80).Draw(t, "steps"))
		w.check()
	})
}

// The same where almost nothing is remembered: what may come again is never forgotten.
func TestForgettingLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, checkpoint.Keep{Most: rapid.IntRange(1, 2).Draw(t, "most")}, func(i int) string {
			if rapid.IntRange(0, 4).Draw(t, "poison") == 0 {
				return "x"
			}
			return fmt.Sprint("m", i)
		})
		w.run(rapid.IntRange(0, 80).Draw(t, "steps"))
		w.check()
	})
}
