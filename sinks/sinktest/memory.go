package sinktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// Errors of the faults of Memory.
var (
	ErrLost  = errors.New("no answer")
	ErrItem  = errors.New("this object failed")
	ErrAway  = errors.New("the store is away")
	errState = errors.New("the store is closed")
)

// Memory is a store in memory: exact, slow, and as treacherous as asked. A write whose answer was lost leaves new objects
// without their vectors in the index, and only a repair brings them back, as with Weaviate. It is safe for concurrent use.
type Memory struct {
	dimensions int

	mu        sync.Mutex
	objects   map[string]*entry
	armed     []*armed
	intercept Intercept
	away      bool
	closed    bool
	stats     Stats
}

// entry is an object and whether a vector search can see it.
type entry struct {
	sinks.Object
	findable bool
}

// armed is a fault that waits for its write, or a write that waits for its release.
type armed struct {
	fault Fault
	later func()
}

// Stats count what was asked of a Memory.
type Stats struct {
	Upserts  int // calls
	Objects  int // objects in them
	Repaired int // objects of them named in repair
	Removes  int // calls
	Canaries int // calls
	ReadBack int // objects given to Missing
}

// Intercept decides the results of an Upsert before it is applied: objects whose result is not Done are not written. nil
// lets the whole call through. It is called without locks and may block.
type Intercept func(objects []sinks.Object, repair map[int]bool) []sinks.Result

// NewMemory makes an empty store of vectors with the given dimensions.
func NewMemory(dimensions int) *Memory {
	return &Memory{dimensions: dimensions, objects: make(map[string]*entry)}
}

// Arm makes the next write (Upsert or Remove) meet a fault; faults that were armed before come first. release applies a
// write that was LostLater; of other kinds it does nothing.
func (m *Memory) Arm(f Fault) (release func()) {
	a := &armed{fault: f}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed = append(m.armed, a)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if a.later != nil {
			a.later()
			a.later = nil
		}
	}
}

// SetAway makes every call fail until it is set back.
func (m *Memory) SetAway(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
}

// SetIntercept sets what decides results of Upsert; nil takes it away.
func (m *Memory) SetIntercept(f Intercept) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.intercept = f
}

// LoseVectors takes the vectors of objects that were acknowledged out of the index, as a crash of the store may do.
// Writing them again as they are does not help; a repair does.
func (m *Memory) LoseVectors(ids ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if e := m.objects[id]; e != nil {
			e.findable = false
		}
	}
}

// Stats returns the counts since the store was made.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// Objects returns what the store holds, vectors included, ordered by document, revision and index.
func (m *Memory) Objects() []sinks.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sorted("")
}

// Upsert implements sinks.Sink.
func (m *Memory) Upsert(ctx context.Context, objects []sinks.Object, repair map[int]bool) []sinks.Result {
	results := make([]sinks.Result, len(objects))
	if err := ctx.Err(); err != nil {
		return fill(results, sinks.Result{Outcome: sinks.Transient, Err: err})
	}
	m.mu.Lock()
	intercept := m.intercept
	m.mu.Unlock()
	if intercept != nil {
		if decided := intercept(objects, repair); decided != nil {
			copy(results, decided)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Upserts++
	m.stats.Objects += len(objects)
	m.stats.Repaired += len(repair)
	for i, o := range objects {
		if err := sinks.Validate(o, m.dimensions); err != nil && results[i].Outcome == sinks.Done {
			results[i] = sinks.Result{Outcome: sinks.Rejected, Err: err}
		}
	}
	if err := m.unusable(); err != nil {
		return fill(results, sinks.Result{Outcome: sinks.Outage, Err: err})
	}
	objects = slices.Clone(objects) // the caller may use the slice again before a late write
	apply := func(findable bool) {
		for i, o := range objects {
			if results[i].Outcome == sinks.Done {
				m.put(o, repair[i], findable)
			}
		}
	}
	a := m.take()
	if a == nil {
		apply(true)
		return results
	}
	switch a.fault.Kind {
	case FailItem:
		if i := a.fault.Item; i < len(results) && results[i].Outcome == sinks.Done {
			results[i] = sinks.Result{Outcome: sinks.Transient, Err: ErrItem}
		}
		apply(true)
		return results
	case FailAll:
		return fill(results, sinks.Result{Outcome: sinks.Outage, Err: ErrAway})
	case LostAfter:
		apply(false)
	case LostLater:
		a.later = func() { apply(false) }
	}
	answer := slices.Clone(results) // apply goes by results
	return fill(answer, sinks.Result{Outcome: sinks.Ambiguous, Err: ErrLost})
}

// put writes an object. One that is there keeps the state of its vector, unless it is deleted first.
func (m *Memory) put(o sinks.Object, deleteFirst, findable bool) {
	o.Vector = slices.Clone(o.Vector)
	o.Chunk.Subject = rag.Subject{DocumentID: o.Chunk.DocumentID, Revision: o.Chunk.Revision}
	if old := m.objects[o.ID]; old != nil && !deleteFirst {
		old.Object = o
		return
	}
	m.objects[o.ID] = &entry{Object: o, findable: findable}
}

// fill sets every result that is Done.
func fill(results []sinks.Result, r sinks.Result) []sinks.Result {
	for i := range results {
		if results[i].Outcome == sinks.Done {
			results[i] = r
		}
	}
	return results
}

// take returns the fault that the next write meets, or nil.
func (m *Memory) take() *armed {
	if len(m.armed) == 0 {
		return nil
	}
	a := m.armed[0]
	m.armed = m.armed[1:]
	return a
}

func (m *Memory) unusable() error {
	if m.closed {
		return errState
	}
	if m.away {
		return ErrAway
	}
	return nil
}

// Remove implements sinks.Sink.
func (m *Memory) Remove(ctx context.Context, documentID string, r rag.Removal) sinks.Result {
	if err := ctx.Err(); err != nil {
		return sinks.Result{Outcome: sinks.Transient, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Removes++
	if err := m.unusable(); err != nil {
		return sinks.Result{Outcome: sinks.Outage, Err: err}
	}
	apply := func() {
		maps.DeleteFunc(m.objects, func(_ string, e *entry) bool {
			return e.Chunk.DocumentID == documentID && r.Removes(e.Chunk.Revision)
		})
	}
	a := m.take()
	if a == nil {
		apply()
		return sinks.Result{}
	}
	switch a.fault.Kind {
	case FailItem:
		return sinks.Result{Outcome: sinks.Transient, Err: ErrItem}
	case FailAll:
		return sinks.Result{Outcome: sinks.Outage, Err: ErrAway}
	case LostAfter:
		apply()
	case LostLater:
		a.later = apply
	}
	return sinks.Result{Outcome: sinks.Ambiguous, Err: ErrLost}
}

// Missing implements sinks.Sink.
func (m *Memory) Missing(ctx context.Context, objects []sinks.Object) ([]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), m.unusable()); err != nil {
		return nil, err
	}
	m.stats.ReadBack += len(objects)
	var missing []int
	for i, o := range objects {
		e := m.objects[o.ID]
		if e == nil || !e.findable || len(o.Vector) != m.dimensions || cosine(e.Vector, o.Vector) < 1-1e-4 {
			missing = append(missing, i)
		}
	}
	return missing, nil
}

// Canary implements sinks.Sink.
func (m *Memory) Canary(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Canaries++
	return errors.Join(ctx.Err(), m.unusable())
}

// Count implements sinks.Sink.
func (m *Memory) Count(ctx context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), m.unusable()); err != nil {
		return 0, err
	}
	return int64(len(m.objects)), nil
}

// Scan implements sinks.Scanner.
func (m *Memory) Scan(ctx context.Context, documentID string, each func(sinks.Object) error) error {
	m.mu.Lock()
	err := errors.Join(ctx.Err(), m.unusable())
	objects := m.sorted(documentID)
	m.mu.Unlock()
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	for _, o := range objects {
		o.Vector = nil
		if err := each(o); err != nil {
			return err
		}
	}
	return nil
}

// sorted returns the objects of a document, or of all.
func (m *Memory) sorted(documentID string) []sinks.Object {
	var out []sinks.Object
	for _, e := range m.objects {
		if documentID == "" || e.Chunk.DocumentID == documentID {
			out = append(out, e.Object)
		}
	}
	slices.SortFunc(out, byPlace)
	return out
}

// Close implements sinks.Sink. What the store holds stays; Reopen gives it back.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Reopen makes the store usable again after Close.
func (m *Memory) Reopen() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = false
}
