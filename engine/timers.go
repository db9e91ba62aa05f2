package engine

import (
	"container/heap"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waymarkhq/waymark/stage"
)

// timers fires the group's timer for the rows of one partition. What is due stands in the rows, so the next owner finds
// it: on assignment all rows are looked through once, from then on every acknowledged row is.
type timers struct {
	p   *partition
	def *timer

	mu    sync.Mutex
	armed map[string]armedTimer
	queue dueQueue
	wake  chan struct{}

	// sending are firings whose outputs are not acknowledged yet. A busy producer takes a while for that, and others are due.
	sending errgroup.Group
}

// maxSending bounds the firings of a partition that wait for acknowledgements.
const maxSending = 64

// armedTimer is when the timer of a row fires, and since when the table has named each of the row's times.
type armedTimer struct {
	at    time.Time
	since map[int64]time.Time // by the named time in Unix milliseconds: a clock's own reading must not matter
}

type due struct {
	key string
	at  time.Time
}

func newTimers(p *partition) *timers {
	t := &timers{p: p, def: p.r.group.timer, armed: map[string]armedTimer{}, wake: make(chan struct{}, 1)}
	t.sending.SetLimit(maxSending)
	return t
}

// acknowledged arms the timer of a row that stands in the table now, or disarms it. The minimum delay counts from here:
// readers need that time to see the row (contract rule 10).
func (t *timers) acknowledged(key string, row any) {
	next, ok := t.def.next(row)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !ok {
		delete(t.armed, key) // its entry in the queue is skipped
		return
	}
	now, old := t.p.r.env.Clock.Now(), t.armed[key]
	since := map[int64]time.Time{}
	for _, named := range append(t.def.later(row), next) {
		ms := named.UnixMilli()
		if since[ms] = old.since[ms]; since[ms].IsZero() {
			since[ms] = now
		}
	}
	t.arm(key, armedTimer{t.when(row, next, since[next.UnixMilli()]), since})
}

// when is the time at which a row's timer fires that wants to at next, which this process has known since then. Next was
// chosen by somebody's clock, and is compared with this one's: the delays bound what they may be wrong by. The result counts
// from since and so keeps its monotonic reading: a clock that is set back afterwards does not put the timer off.
func (t *timers) when(row any, next, since time.Time) time.Time {
	delay := next.Sub(since)
	if t.def.maxDelay != nil {
		delay = min(delay, t.def.maxDelay(row))
	}
	return since.Add(max(delay, t.def.minDelay(row)))
}

// arm sets the timer of a key; the caller holds mu.
func (t *timers) arm(key string, a armedTimer) {
	old, armed := t.armed[key]
	t.armed[key] = a
	if armed && old.at.Equal(a.at) {
		return // it stands in the queue
	}
	heap.Push(&t.queue, due{key, a.at})
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// pop returns the first key whose time has come, or how long to wait for it.
func (t *timers) pop(now time.Time) (key string, ok bool, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) > 0 {
		first := t.queue[0]
		if a, armed := t.armed[first.key]; !armed || !a.at.Equal(first.at) {
			heap.Pop(&t.queue)
			continue
		}
		if first.at.After(now) {
			return "", false, first.at.Sub(now)
		}
		heap.Pop(&t.queue)
		a := t.armed[first.key]
		t.armed[first.key] = armedTimer{since: a.since} // fires now; the row still names its times
		return first.key, true, 0
	}
	return "", false, -1
}

func (t *timers) run() {
	defer func() { _ = t.sending.Wait() }() // each has settled its own error
	if err := t.scan(); err != nil {
		t.p.log.Error("looking for due rows failed; they are found at the next assignment", "error", err)
	}
	for {
		key, ok, wait := t.pop(t.p.r.env.Clock.Now())
		if ok {
			t.fire(key)
			if t.p.ctx.Err() != nil {
				return
			}
			continue
		}
		var timeout <-chan time.Time
		if wait > 0 {
			timeout = t.p.r.env.Clock.After(wait)
		}
		select {
		case <-t.p.ctx.Done():
			return
		case <-t.wake:
		case <-timeout:
		}
	}
}

// scan looks through all rows that were recovered.
func (t *timers) scan() error {
	it, err := t.p.rows.st.Iterator()
	if err != nil {
		return err
	}
	defer it.Release()
	for it.Next() {
		if t.p.ctx.Err() != nil {
			return nil
		}
		b, err := it.Value()
		if err != nil {
			return err
		}
		key := string(it.Key())
		row, err := t.p.rows.decode(key, b)
		if err != nil {
			return err
		}
		if row != nil {
			t.acknowledged(key, row)
		}
	}
	return it.Err()
}

// fire performs what is due for one row. What it sends changes the row when it comes back as a record; if that takes too
// long (it was lost), the row is due again.
func (t *timers) fire(key string) {
	row, onItsWay, err := t.p.rows.settled(key)
	if onItsWay {
		t.again(key, t.p.r.env.Retry.Max) // at the latest: its acknowledgement arms the timer anew
		return
	}
	if err != nil || row == nil {
		return
	}
	if !t.isDue(key, row) {
		t.acknowledged(key, row)
		return
	}
	outs, err := t.perform(key, row)
	if err != nil || len(outs) == 0 {
		t.fired(key, err)
		return
	}
	acknowledged := t.sendAll(outs)
	t.sending.Go(func() error {
		t.fired(key, acknowledged())
		return nil
	})
}

// fired sets when the timer of a row fires again, if nothing changes the row until then.
func (t *timers) fired(key string, err error) {
	again := refireAfter
	if err != nil {
		again = t.p.r.env.Retry.Max
		if stage.ClassOf(err) == stage.ClassOutage {
			t.p.r.outages.begin(stage.ReasonOf(err, "timer"), err)
			again = t.p.r.env.Retry.Initial * 4
		} else if t.p.ctx.Err() == nil {
			t.p.log.Warn("a timer failed and fires again", "key", key, "error", err)
		}
	}
	t.again(key, again)
}

// isDue reports whether the time of the row that stands there now has come: it may be another row than the one that armed
// the timer.
func (t *timers) isDue(key string, row any) bool {
	next, ok := t.def.next(row)
	if !ok {
		return false
	}
	t.mu.Lock()
	since, known := t.armed[key].since[next.UnixMilli()]
	t.mu.Unlock()
	return known && !t.when(row, next, since).After(t.p.r.env.Clock.Now())
}

// again lets the timer of a row fire once more, unless the row has changed meanwhile.
func (t *timers) again(key string, after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a, known := t.armed[key]; known && a.at.IsZero() {
		t.arm(key, armedTimer{t.p.r.env.Clock.Now().Add(after), a.since})
	}
}

// refireAfter is how long the outcome of a timer may take to change the row before the timer fires again.
const refireAfter = time.Minute

func (t *timers) perform(key string, row any) (outs []stage.Output, err error) {
	t.p.effects.Lock()
	defer t.p.effects.Unlock()
	if !t.p.session.alive() {
		return nil, t.p.ctx.Err()
	}
	err = safely(func() error {
		outs, err = t.def.fire(t.p.work, key, row, t.p.session.alive)
		return err
	})
	return outs, err
}

// sendAll sends; acknowledged waits until all are, and gives their errors.
func (t *timers) sendAll(outs []stage.Output) (acknowledged func() error) {
	acks := make(chan error, len(outs))
	for _, out := range outs {
		t.p.send(t.p.work, out, func(_ int64, err error) { acks <- err })
	}
	return func() (all error) {
		for range outs {
			all = joinErrors(all, <-acks)
		}
		return all
	}
}

type dueQueue []due

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q dueQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *dueQueue) Push(x any)        { *q = append(*q, x.(due)) }
func (q *dueQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
