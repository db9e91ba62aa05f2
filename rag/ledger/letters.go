package ledger

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

// ApplyLetter is the row after a version died; row may be nil and is never changed. A letter of an earlier generation,
// or one that is known already, changes nothing: row itself comes back.
func ApplyLetter(row *LetterRow, l rag.Letter) *LetterRow {
	next := row.next(l.ID, l.Subject, rag.LetterWaiting)
	if !next.after(row) {
		return row
	}
	next.Position, next.Failure, next.LastFailed = l.Position, l.Failure, l.LastFailed
	next.Original, next.Lost = l.Original, l.Lost
	next.failedFirst(l.FirstFailed)
	return next
}

// ApplyCommand is the row after the command at position cause (packed like a version) of the topic; row may be nil and is
// never changed. replay is the record to send, if one follows; the redelivery of the last command that changed the
// row gives it again. refused says that a replay or a discard was asked for that cannot be: nothing waits, a replay runs
// or has succeeded, what waits is another failure than the one that the command names by its revision, or the document
// record could not be kept. So a failure is replayed once, by whichever command comes first. A command before the last one that changed the row has had
// its effect.
func ApplyCommand(row *LetterRow, c rag.Command, topic string, cause rag.Version) (next *LetterRow, replay *rag.Replay, refused bool) {
	if row != nil && row.CauseTopic == topic && cause <= row.Cause {
		if cause == row.Cause {
			replay = row.replay()
		}
		return row, replay, false
	}
	switch c.Kind {
	case rag.CommandSchedule:
		next = row.scheduled(c)
	case rag.CommandClose:
		next = row.closed(c)
	case rag.CommandDue:
		next = row.due(c)
	case rag.CommandReplay:
		if next = row.replayed(c); next == row {
			return row, nil, true
		}
	case rag.CommandDiscard:
		if next = row.discarded(c); next == row {
			return row, nil, true
		}
	}
	if next == nil || next == row {
		return row, nil, false
	}
	next.Cause, next.CauseTopic = cause, topic
	return next, next.replay(), false
}

// NextDue is when the automatic retry of the letter goes out; false if none waits for its time.
func NextDue(row *LetterRow) (time.Time, bool) {
	if row == nil || row.State != rag.LetterScheduled {
		return time.Time{}, false
	}
	return row.Due, true
}

// Shown is the state as people see it: an automatic retry that runs is a replay.
func (r *LetterRow) Shown() rag.LetterState {
	if r.State == rag.LetterSent {
		return rag.LetterReplaying
	}
	return r.State
}

// next is the row with a new state, reached by the run in s. r may be nil.
func (r *LetterRow) next(id string, s rag.Subject, state rag.LetterState) *LetterRow {
	n := &LetterRow{ID: id}
	before := 0
	if r != nil {
		*n = *r
		if r.Subject.Revision == s.Revision {
			before = r.failedRuns()
		}
	}
	n.Subject, n.State, n.Due, n.Reason = s, state, time.Time{}, ""
	n.Attempts += max(0, n.failedRuns()-before)
	return n
}

// failedRuns counts the runs of the row's generation that have failed.
func (r *LetterRow) failedRuns() int {
	switch r.State {
	case rag.LetterScheduled, rag.LetterSent:
		return r.Subject.Attempt
	case rag.LetterWaiting, rag.LetterDiscarded:
		return r.Subject.Attempt + 1
	}
	return 0
}

func (r *LetterRow) failedFirst(at time.Time) {
	if r.FirstFailed.IsZero() || !at.IsZero() && at.Before(r.FirstFailed) {
		r.FirstFailed = at
	}
}

func (r *LetterRow) scheduled(c rag.Command) *LetterRow {
	n := r.next(c.LetterID, c.Subject, rag.LetterScheduled)
	if !n.after(r) {
		return r
	}
	n.Due, n.Position, n.Original, n.LastFailed = c.Due, c.Position, c.Original, c.At
	if c.Failure != nil {
		n.Failure = *c.Failure
	}
	n.failedFirst(c.At)
	return n
}

// closed: a final other than dead. It closes the letter of every attempt of its generation. A letter that never was a
// dead letter was a schedule only, and does not keep the document.
func (r *LetterRow) closed(c rag.Command) *LetterRow {
	state := rag.LetterResolved
	if c.Status == rag.StatusSuperseded {
		state = rag.LetterSuperseded
	}
	n := r.next(c.LetterID, c.Subject, state)
	if !n.after(r) {
		return r
	}
	n.Position = c.Position
	if !r.died() {
		n.Original = rag.Raw{}
	}
	return n
}

// died: the letter has been a dead letter, not only a schedule.
func (r *LetterRow) died() bool {
	return r != nil && (r.Subject.Revision.Generation > 0 || r.State == rag.LetterWaiting || r.State == rag.LetterDiscarded)
}

// due: the time of the scheduled attempt has come.
func (r *LetterRow) due(c rag.Command) *LetterRow {
	if r == nil || r.State != rag.LetterScheduled || r.Subject.Revision != c.Revision || r.Subject.Attempt != c.Attempt {
		return r
	}
	n := *r
	n.State = rag.LetterSent
	return &n
}

// awaits: the failure that an operator's command names is the one that waits. A later failure is another decision, which
// nobody has made yet.
func (r *LetterRow) awaits(c rag.Command) bool {
	return r != nil && r.State == rag.LetterWaiting && r.Subject.Revision == c.Revision
}

// replayed: an operator's replay is a new generation, and starts with attempt 0.
func (r *LetterRow) replayed(c rag.Command) *LetterRow {
	if !r.awaits(c) || r.Lost != "" {
		return r
	}
	s := r.Subject
	s.Revision.Generation++
	s.Attempt = 0
	return r.next(r.ID, s, rag.LetterReplaying)
}

func (r *LetterRow) discarded(c rag.Command) *LetterRow {
	if !r.awaits(c) {
		return r
	}
	n := *r
	n.State, n.Reason = rag.LetterDiscarded, c.Reason
	return &n
}

// replay is the document again, where the row's state says that it runs.
func (r *LetterRow) replay() *rag.Replay {
	if r.State != rag.LetterSent && r.State != rag.LetterReplaying {
		return nil
	}
	return &rag.Replay{Subject: r.Subject, Position: r.Position, Original: r.Original}
}

// letterOrder is how far a letter has come. Within a generation: attempts, each scheduled and then sent; then it has died
// or is closed.
type letterOrder struct {
	revision rag.Revision
	phase    int // 0 runs, 1 waiting, 2 discarded, 3 superseded, 4 resolved
	attempt  int // of a run
	sent     bool
}

func (r *LetterRow) order() letterOrder {
	o := letterOrder{revision: r.Subject.Revision}
	switch r.State {
	case rag.LetterWaiting:
		o.phase = 1
	case rag.LetterDiscarded:
		o.phase = 2
	case rag.LetterSuperseded:
		o.phase = 3
	case rag.LetterResolved:
		o.phase = 4
	default:
		o.attempt, o.sent = r.Subject.Attempt, r.State == rag.LetterSent
	}
	return o
}

func (o letterOrder) compare(p letterOrder) int {
	return cmp.Or(compareRevisions(o.revision, p.revision), cmp.Compare(o.phase, p.phase), cmp.Compare(o.attempt, p.attempt),
		compareBools(o.sent, p.sent))
}

func (r *LetterRow) after(old *LetterRow) bool {
	return old == nil || r.order().compare(old.order()) > 0
}

// MergeLetterRow takes the row that has come further; it is commutative, associative and idempotent. Rows that have come
// equally far differ only by what a redelivery may say in other words; the choice is the same everywhere.
func MergeLetterRow(a, b *LetterRow) *LetterRow {
	if a == nil || b == nil {
		return either(a, b)
	}
	if compareLetters(a, b) < 0 {
		return b
	}
	return a
}

func compareLetters(a, b *LetterRow) int {
	if c := a.order().compare(b.order()); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.State, b.State),
		cmp.Compare(a.CauseTopic, b.CauseTopic), cmp.Compare(a.Cause, b.Cause), a.Due.Compare(b.Due),
		cmp.Compare(a.Subject.Attempt, b.Subject.Attempt), cmp.Compare(a.Attempts, b.Attempts),
		compareFailures(&a.Failure, &b.Failure), a.LastFailed.Compare(b.LastFailed), a.FirstFailed.Compare(b.FirstFailed),
		cmp.Compare(a.ID, b.ID), cmp.Compare(a.Subject.DocumentID, b.Subject.DocumentID),
		cmp.Compare(a.Subject.MessageID, b.Subject.MessageID), cmp.Compare(a.Subject.Partition, b.Subject.Partition),
		comparePositions(a.Position, b.Position), cmp.Compare(a.Lost, b.Lost), cmp.Compare(a.Reason, b.Reason),
		compareRaw(a.Original, b.Original))
}

func comparePositions(a, b rag.Position) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
}

func compareRaw(a, b rag.Raw) int {
	return cmp.Or(compareNullable(a.Key, b.Key), compareNullable(a.Value, b.Value), a.Timestamp.Compare(b.Timestamp),
		slices.CompareFunc(a.Headers, b.Headers, func(x, y rag.Header) int {
			return cmp.Or(compareNullable(x.Key, y.Key), compareNullable(x.Value, y.Value))
		}))
}

// compareNullable orders null below the empty bytes.
func compareNullable(a, b []byte) int {
	return cmp.Or(compareBools(a != nil, b != nil), bytes.Compare(a, b))
}
