package views

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
)

// LetterQuery asks for a page of dead letters. Empty fields match everything; LetterReplaying matches LetterSent too,
// which is shown as it.
type LetterQuery struct {
	State      rag.LetterState
	Stage      string
	Reason     string
	DocumentID string
	Since      time.Time // of the last failure: not before it
	Until      time.Time // of the last failure: before it
	After      Mark      // At is the time of the last failure
	Limit      int       // at least 1
}

// Letters is the view of the dead-letter group's table: one row for each letter. All methods but Run may be called
// concurrently, at any time; those that return rows fail with a *NotReadyError until the view is complete.
type Letters struct {
	*view[ledger.LetterRow]
	index *letterIndex
}

// NewLetters makes a view that is empty until Run is called. merge must be commutative, associative and idempotent.
func NewLetters(o Options, table stage.Topic[ledger.LetterRow], merge func(a, b *ledger.LetterRow) *ledger.LetterRow) *Letters {
	ix := newLetterIndex()
	return &Letters{view: newView[ledger.LetterRow](o, table, merge, ix), index: ix}
}

// Get returns a letter with the bytes of its record; nil without an error if there is none.
func (l *Letters) Get(_ context.Context, id string) (*ledger.LetterRow, error) { return l.get(id) }

// Wait returns a letter as soon as until is true for it (it may be nil). When ctx ends first it returns the letter as it
// is then, with ctx's error.
func (l *Letters) Wait(ctx context.Context, id string, until func(*ledger.LetterRow) bool) (*ledger.LetterRow, error) {
	return wait(ctx, &l.hub, id, func() (*ledger.LetterRow, error) { return l.get(id) }, until)
}

// List returns at most q.Limit letters behind q.After, the one that failed last first; fewer mean that there are no more.
// They come without the bytes of their records, of which each may have megabytes.
func (l *Letters) List(_ context.Context, q LetterQuery) ([]*ledger.LetterRow, error) {
	if err := l.Ready(); err != nil {
		return nil, err
	}
	var out []*ledger.LetterRow
	for len(out) < q.Limit {
		page := l.index.list(q, q.Limit-len(out))
		for _, m := range page {
			q.After = m
			row, err := l.get(m.ID)
			if err != nil {
				return nil, err
			}
			if row != nil { // it may have gone since
				row.Original = rag.Raw{}
				out = append(out, row)
			}
		}
		if len(page) == 0 {
			break
		}
	}
	return out, nil
}

// Counts is the number of letters by state.
func (l *Letters) Counts() map[rag.LetterState]int64 { return l.index.counts() }

// letterIndex keeps what lists need of each letter.
type letterIndex struct {
	mu      sync.RWMutex
	byID    map[string]*letterEntry
	byState map[rag.LetterState]*btree.BTreeG[*letterEntry]
}

type letterEntry struct {
	mark      Mark
	state     rag.LetterState
	stage     string
	reason    string
	document  string
	partition int32
}

func newLetterIndex() *letterIndex {
	return &letterIndex{byID: make(map[string]*letterEntry), byState: make(map[rag.LetterState]*btree.BTreeG[*letterEntry])}
}

func newLetterTree() *btree.BTreeG[*letterEntry] {
	return btree.NewBTreeGOptions(func(a, b *letterEntry) bool { return a.mark.compare(b.mark) < 0 }, btree.Options{NoLocks: true})
}

func (x *letterIndex) put(partition int32, key string, row *ledger.LetterRow) []string {
	e := &letterEntry{
		mark: Mark{At: row.LastFailed, ID: key}, state: row.State, stage: row.Failure.Stage, reason: row.Failure.Reason,
		document: row.Subject.DocumentID, partition: partition,
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(key)
	x.byID[key] = e
	t := x.byState[e.state]
	if t == nil {
		t = newLetterTree()
		x.byState[e.state] = t
	}
	t.Set(e)
	return []string{key}
}

// drop forgets a letter; the caller holds the lock.
func (x *letterIndex) drop(key string) {
	if e := x.byID[key]; e != nil {
		delete(x.byID, key)
		x.byState[e.state].Delete(e)
	}
}

func (x *letterIndex) remove(key string, gone func() bool) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if gone() {
		x.drop(key)
	}
	return []string{key}
}

func (x *letterIndex) reset(partition int32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, e := range x.byID {
		if e.partition == partition {
			x.drop(key)
		}
	}
}

func (e *letterEntry) matches(q LetterQuery) bool {
	return (q.Stage == "" || e.stage == q.Stage) && (q.Reason == "" || e.reason == q.Reason) &&
		(q.DocumentID == "" || e.document == q.DocumentID)
}

func asked(state, want rag.LetterState) bool {
	return want == "" || state == want || want == rag.LetterReplaying && state == rag.LetterSent
}

// list merges the first limit entries behind the mark of each state that is asked for.
func (x *letterIndex) list(q LetterQuery, limit int) []Mark {
	x.mu.RLock()
	defer x.mu.RUnlock()
	from := q.After
	if first := (Mark{At: q.Until.Add(-time.Nanosecond)}); !q.Until.IsZero() && (from == (Mark{}) || first.compare(from) > 0) {
		from = first
	}
	var out []Mark
	for state, t := range x.byState {
		if !asked(state, q.State) {
			continue
		}
		n := 0
		take := func(e *letterEntry) bool {
			if !q.Since.IsZero() && e.mark.At.Before(q.Since) {
				return false // and so is all that follows
			}
			if e.matches(q) && (q.After == (Mark{}) || e.mark.compare(q.After) > 0) {
				out = append(out, e.mark)
				n++
			}
			return n < limit
		}
		if from == (Mark{}) {
			t.Scan(take)
		} else {
			t.Ascend(&letterEntry{mark: from}, take)
		}
	}
	slices.SortFunc(out, Mark.compare)
	return out[:min(limit, len(out))]
}

func (x *letterIndex) counts() map[rag.LetterState]int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make(map[rag.LetterState]int64, len(x.byState))
	for s, t := range x.byState {
		if n := t.Len(); n > 0 {
			out[s] = int64(n)
		}
	}
	return out
}
