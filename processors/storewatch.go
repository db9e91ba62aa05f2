package processors

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/waymarkhq/waymark/sinks"
)

const (
	// lookEvery is how often the store is asked how it is.
	lookEvery = time.Second
	// unwatchedFor is how long nobody may have looked: a store needs longer to start again.
	unwatchedFor = 2500 * time.Millisecond
	// rememberedFor is how long an interruption is remembered for partitions that this process gets later. Who owned them
	// has long looked after them then.
	rememberedFor = 30 * time.Minute
	// secondLook is how long after an interruption everything is looked for once more: what other processes had to write
	// again meanwhile may have hidden what this one had found, and a server goes on mending its index after it has started.
	secondLook = time.Minute
)

// interruption is a time in which the store may have lost vectors. It is over.
type interruption struct {
	number int
	since  time.Time // nothing was lost before
	until  time.Time
	again  bool // it is there because of what was written again
}

// storeWatch notices the interruptions of a store. Those who own partitions look in turn; a time in which nobody has
// looked, such as the one before the process began, counts as an interruption.
type storeWatch struct {
	mu      sync.Mutex
	looked  time.Time // when the last look ended
	broken  bool
	since   time.Time // of the interruption that goes on
	over    []interruption
	later   []interruption // that are looked after once more from their until on
	calm    time.Time      // when the last interruption was over
	again   int            // how often everything was to be looked for again since, because something had to be written
	waits   bool           // the last of these is in later
	begun   int            // the latest interruption that somebody has begun to look after
	count   int
	handled map[int32]int // by partition, the number of the last interruption that was looked after
}

// look asks the store unless somebody just has, and returns since when the partition must be looked after, and up to which
// interruption.
func (w *storeWatch) look(ctx context.Context, store sinks.Forgetful, now func() time.Time, partition int32) (since time.Time, number int, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := now(); at.Before(w.looked) || at.Sub(w.looked) >= lookEvery {
		w.ask(ctx, store, now)
	}
	if w.broken || ctx.Err() != nil {
		return time.Time{}, 0, false
	}
	for _, i := range w.over {
		if i.number <= w.handled[partition] {
			continue
		}
		if !due || i.since.Before(since) {
			since = i.since
		}
		number, due = i.number, true
	}
	w.begun = max(w.begun, number)
	return since, number, due
}

func (w *storeWatch) ask(ctx context.Context, store sinks.Forgetful, now func() time.Time) {
	began := now()
	err := store.Interrupted(ctx)
	if ctx.Err() != nil {
		return // it says nothing about the store
	}
	before := w.looked
	if before.IsZero() {
		before = began
	}
	unwatched := began.Sub(before) > unwatchedFor || began.Before(before) || w.looked.IsZero()
	w.looked = now()
	if (err != nil || unwatched) && !w.broken {
		w.broken, w.since = true, before
	}
	if err == nil && w.broken {
		w.broken = false
		w.end(w.since)
		w.calm, w.again = w.looked, 0
		w.later = append(w.later, interruption{since: w.since, until: w.looked.Add(secondLook)})
	}
	w.lookLater()
}

// lookLater has what was looked after looked after once more, where it is time.
func (w *storeWatch) lookLater() {
	if w.broken {
		return
	}
	w.later = slices.DeleteFunc(w.later, func(i interruption) bool {
		due := !w.looked.Before(i.until) || i.until.Sub(w.looked) > secondLook // or the clock was set back
		if due {
			w.end(i.since)
			w.waits = w.waits && !i.again
		}
		return due
	})
}

// disturbed has all partitions look once more, as after an interruption: what one of them writes again changes the index in
// which the others have found theirs. That may go on, and costs readers a chunk for a moment each time: from the second time on
// it waits, longer each time, and in the end it is given up.
func (w *storeWatch) disturbed(since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waits || w.count > w.begun || w.looked.Sub(w.calm) > rememberedFor { // all will look, or it has gone on for too long
		return
	}
	w.again++
	if w.again == 1 {
		w.end(since)
		return
	}
	w.waits = true
	w.later = append(w.later, interruption{since: since, until: w.looked.Add(min(lookEvery<<min(w.again-2, 16), secondLook)), again: true})
}

// end notes that an interruption is over.
func (w *storeWatch) end(since time.Time) {
	w.count++
	w.over = append(w.over, interruption{number: w.count, since: since, until: w.looked})
	w.over = slices.DeleteFunc(w.over, func(i interruption) bool { return w.looked.Sub(i.until) > rememberedFor })
}

// done notes that a partition was looked after.
func (w *storeWatch) done(partition int32, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.handled == nil {
		w.handled = map[int32]int{}
	}
	w.handled[partition] = max(w.handled[partition], number)
}
