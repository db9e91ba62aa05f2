package checkpoint

import (
	"errors"
	"fmt"
	"time"
)

// Decision says what a message is.
type Decision int

// What a message may be.
const (
	// New: not seen before. It is applied.
	New Decision = iota + 1
	// Redelivery: this very record was applied, but nobody has committed it. Outputs are sent and the row is written again.
	Redelivery
	// Duplicate: another record with this id was applied.
	Duplicate
	// Old: it was committed so long ago that its id has been forgotten.
	Old
)

// Emits reports whether outputs are sent and the row is written.
func (d Decision) Emits() bool { return d == New || d == Redelivery }

func (d Decision) String() string {
	switch d {
	case New:
		return "new"
	case Redelivery:
		return "redelivery"
	case Duplicate:
		return "duplicate"
	case Old:
		return "old"
	}
	return "undecided"
}

// Keep says how long messages are remembered, for each key and topic. A message is forgotten once it is committed, is not among
// the latest Least, and is older than For or not among the latest Most. What is sent again after that is New.
type Keep struct {
	For   time.Duration
	Least int
	Most  int
}

// DefaultKeep remembers the messages of a week, between 256 and 1,024 of a key.
var DefaultKeep = Keep{For: 7 * 24 * time.Hour, Least: 256, Most: 1024}

// Validate reports every field that is wrong.
func (k Keep) Validate() error {
	var errs []error
	if k.For < 0 {
		errs = append(errs, fmt.Errorf("for: %v is below zero", k.For))
	}
	if k.Least < 0 {
		errs = append(errs, fmt.Errorf("least: %d is below zero", k.Least))
	}
	if k.Most < k.Least {
		errs = append(errs, fmt.Errorf("most: %d is below least, %d", k.Most, k.Least))
	}
	return errors.Join(errs...)
}

// old reports whether a message of that time may be forgotten. A time far in the future is as old as one far in the past:
// timestamps come from producers, and a wrong one must not keep its message for ever.
func (k Keep) old(at int64, now time.Time) bool { return now.Sub(time.UnixMilli(at)).Abs() > k.For }

// Rules are how a stage treats its rows. They are safe for concurrent use if the functions are.
type Rules[S, O any] struct {
	// Keep says how long messages are remembered; the zero Keep is DefaultKeep.
	Keep Keep
	// Epoch is raised, never lowered, when an input topic was made anew: its offsets start again, and without a higher epoch
	// messages at low offsets would count as old.
	Epoch int
	// MergeState merges the states of two rows of one key. It must be commutative, associative and idempotent, and what it
	// returns must hold the effects of all messages of both. nil: the state is a function of one log (see the package).
	MergeState func(a, b S) S
	// Now tells the age of messages; nil: time.Now.
	Now func() time.Time
}

// Result is what a message means.
type Result[S, O any] struct {
	Decision Decision
	// Row is to be written after the outputs; nil where nothing is written.
	Row *Row[S, O]
	// Outcome is what followed from the message: now, the first time (Redelivery), or from the message with the same id
	// (Duplicate).
	Outcome O
}

// ErrSecondLog is Apply's error for a message of a second topic where the state is a function of one log. It is a mistake of
// the program: set MergeState, or send everything that changes the state to one topic.
var ErrSecondLog = errors.New("the state is a function of another topic's log")

// Decide says what a message is to a row, and nothing more.
func (r Rules[S, O]) Decide(row *Row[S, O], m Message) Decision {
	at := r.position(m)
	_, here, known := row.find(m.key(at), m.Topic, at)
	switch {
	case known && here:
		return Redelivery
	case known:
		return Duplicate
	case row != nil && at.Compare(row.Logs[m.Topic].Floor) < 0:
		return Old
	}
	return New
}

// Apply says what a message means. If it is New, step gets the state and returns the next one and the outcome. step performs
// nothing, does not change what the state refers to, and depends on nothing but the message and the state. Its error is
// returned, and nothing is remembered of the message then.
//
// The row may be nil; neither it nor what it refers to is changed.
func (r Rules[S, O]) Apply(row *Row[S, O], m Message, step func(state S) (next S, outcome O, err error)) (Result[S, O], error) {
	at := r.position(m)
	id := m.key(at)
	res := Result[S, O]{Decision: r.Decide(row, m)}
	switch res.Decision {
	case Redelivery:
		mark, _, _ := row.find(id, m.Topic, at)
		res.Row, res.Outcome = row, mark.Outcome
		return res, nil
	case Duplicate:
		mark, _, _ := row.find(id, m.Topic, at)
		res.Outcome = mark.Outcome
		return res, nil
	case Old:
		return res, nil
	}
	if err := r.checkLog(row, m.Topic); err != nil {
		return res, err
	}
	next := row.clone(m.Topic)
	var err error
	if next.State, res.Outcome, err = step(next.State); err != nil {
		return Result[S, O]{Decision: New}, err
	}
	next.Count++
	log := next.Logs[m.Topic]
	log.Seen[id] = Mark[O]{Position: at, At: m.At.UnixMilli(), Outcome: res.Outcome}
	log.Next = later(log.Next, at.next())
	next.Logs[m.Topic] = r.forget(log, m)
	res.Row = next
	return res, nil
}

func (r Rules[S, O]) position(m Message) Position { return Position{r.Epoch, m.Offset} }

// checkLog refuses a second topic within one epoch where the order of one log is all there is.
func (r Rules[S, O]) checkLog(row *Row[S, O], topic string) error {
	if r.MergeState != nil || row == nil {
		return nil
	}
	for other, log := range row.Logs {
		if other != topic && log.Next.Epoch >= r.Epoch {
			return fmt.Errorf("a message of topic %s, where the row has those of %s: %w", topic, other, ErrSecondLog)
		}
	}
	return nil
}

// forget drops messages from the oldest on, up to the first that has to stay; log.Seen is the caller's own.
func (r Rules[S, O]) forget(log Log[O], m Message) Log[O] {
	k := r.Keep
	if k == (Keep{}) {
		k = DefaultKeep
	}
	now := time.Now
	if r.Now != nil {
		now = r.Now
	}
	// The message itself is in work, whatever is said of it.
	committed := Position{r.Epoch, min(m.Committed, m.Offset)}
	for len(log.Seen) > max(k.Least, 0) {
		id, oldest := oldestOf(log.Seen)
		if oldest.Compare(committed) >= 0 || len(log.Seen) <= k.Most && !k.old(oldest.At, now()) {
			break
		}
		delete(log.Seen, id)
		log.Floor = later(log.Floor, oldest.next())
	}
	return log
}

func oldestOf[O any](seen map[string]Mark[O]) (id string, oldest Mark[O]) {
	first := true
	for i, m := range seen {
		if c := m.Compare(oldest.Position); first || c < 0 || c == 0 && i < id {
			id, oldest, first = i, m, false
		}
	}
	return id, oldest
}
