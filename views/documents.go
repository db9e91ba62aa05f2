package views

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
)

// Mark is a place in a list that is ordered from the newest to the oldest, then by id. The zero Mark is before the first.
type Mark struct {
	At time.Time
	ID string
}

// compare orders marks as lists do.
func (m Mark) compare(o Mark) int { return cmp.Or(o.At.Compare(m.At), cmp.Compare(m.ID, o.ID)) }

// DocumentQuery asks for a page of documents.
type DocumentQuery struct {
	Status rag.Status // of the latest version; "" is any
	After  Mark       // the last entry of the page before
	Limit  int        // at least 1
}

// DocumentEntry is one document of a list. At is what the list is ordered by.
type DocumentEntry struct {
	ID  string
	At  time.Time
	Row *ledger.DocumentRow
}

// Documents is the view of the indexer's table: one row for each document. All methods but Run may be called
// concurrently, at any time; those that return rows fail with a *NotReadyError until the view is complete.
type Documents struct {
	*view[ledger.DocumentRow]
	index *documentIndex
}

// NewDocuments makes a view that is empty until Run is called. merge must be commutative, associative and idempotent.
func NewDocuments(o Options, table stage.Topic[ledger.DocumentRow], merge func(a, b *ledger.DocumentRow) *ledger.DocumentRow) *Documents {
	ix := newDocumentIndex()
	return &Documents{view: newView[ledger.DocumentRow](o, table, merge, ix), index: ix}
}

// Get returns the row of a document; nil without an error if it has none.
func (d *Documents) Get(_ context.Context, id string) (*ledger.DocumentRow, error) { return d.get(id) }

// Wait returns the row of a document as soon as until is true for it (the row may be nil). When ctx ends first it returns
// the row as it is then, with ctx's error.
func (d *Documents) Wait(ctx context.Context, id string, until func(*ledger.DocumentRow) bool) (*ledger.DocumentRow, error) {
	return wait(ctx, &d.hub, id, func() (*ledger.DocumentRow, error) { return d.get(id) }, until)
}

// List returns at most q.Limit documents behind q.After, the one changed last first; fewer mean that there are no more.
func (d *Documents) List(ctx context.Context, q DocumentQuery) ([]DocumentEntry, error) {
	if err := d.Ready(); err != nil {
		return nil, err
	}
	var out []DocumentEntry
	for len(out) < q.Limit {
		page := d.index.list(q.Status, q.After, q.Limit-len(out))
		for _, m := range page {
			q.After = m
			row, err := d.Get(ctx, m.ID)
			if err != nil {
				return nil, err
			}
			if row != nil { // it may have gone since
				out = append(out, DocumentEntry{ID: m.ID, At: m.At, Row: row})
			}
		}
		if len(page) == 0 {
			break
		}
	}
	return out, nil
}

// Each calls do for every document that has a row at the time of the call, in no order, with its row as it is then or later.
// It ends at the first error.
func (d *Documents) Each(ctx context.Context, do func(id string, row *ledger.DocumentRow) error) error {
	if err := d.Ready(); err != nil {
		return err
	}
	for _, id := range d.index.ids() {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, err := d.Get(ctx, id)
		if err == nil && row != nil { // it may have gone since
			err = do(id, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Counts is the number of documents by the status of their latest version.
func (d *Documents) Counts() map[rag.Status]int64 { return d.index.counts() }

// Served is the revision of a document that readers may see; false: none. It costs one look into a map, for use as the
// filter of a search. It is only as fresh as Lag says, and knows nothing before the view is ready.
func (d *Documents) Served(id string) (rag.Revision, bool) { return d.index.served(id) }

// documentIndex keeps what lists and searches need of each document.
type documentIndex struct {
	mu       sync.RWMutex
	byID     map[string]*documentEntry
	byStatus map[rag.Status]*btree.BTreeG[*documentEntry]
	history  servedHistory
}

type documentEntry struct {
	mark      Mark
	status    rag.Status // "" while the row knows no version
	served    rag.Revision
	serves    bool
	partition int32
}

func newDocumentIndex() *documentIndex {
	return &documentIndex{byID: make(map[string]*documentEntry), byStatus: make(map[rag.Status]*btree.BTreeG[*documentEntry])}
}

func newDocumentTree() *btree.BTreeG[*documentEntry] {
	return btree.NewBTreeGOptions(func(a, b *documentEntry) bool { return a.mark.compare(b.mark) < 0 }, btree.Options{NoLocks: true})
}

func (x *documentIndex) put(partition int32, key string, row *ledger.DocumentRow) []string {
	e := &documentEntry{mark: Mark{ID: key}, partition: partition, served: row.Served.Revision, serves: row.Served.Count > 0}
	if c, ok := ledger.Latest(row); ok {
		e.status, e.mark.At = c.Status, c.At
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.changes(key, e)
	x.drop(key)
	x.byID[key] = e
	if e.status != "" {
		t := x.byStatus[e.status]
		if t == nil {
			t = newDocumentTree()
			x.byStatus[e.status] = t
		}
		t.Set(e)
	}
	return []string{key}
}

// changes notes for open snapshots that a document becomes another, or none; the caller holds the lock.
func (x *documentIndex) changes(key string, next *documentEntry) {
	var was, is documentEntry
	if e := x.byID[key]; e != nil {
		was = *e
	}
	if next != nil {
		is = *next
	}
	if was.serves != is.serves || was.served != is.served {
		x.history.changed(key, was.served, was.serves)
	}
}

// drop forgets a document; the caller holds the lock.
func (x *documentIndex) drop(key string) {
	e := x.byID[key]
	if e == nil {
		return
	}
	delete(x.byID, key)
	if t := x.byStatus[e.status]; t != nil {
		t.Delete(e)
	}
}

func (x *documentIndex) remove(key string, gone func() bool) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if gone() {
		x.changes(key, nil)
		x.drop(key)
	}
	return []string{key}
}

func (x *documentIndex) reset(partition int32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.history.resets++
	for key, e := range x.byID {
		if e.partition == partition {
			x.drop(key)
		}
	}
}

// list merges the first limit entries behind the mark of each status that is asked for.
func (x *documentIndex) list(status rag.Status, after Mark, limit int) []Mark {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []Mark
	for s, t := range x.byStatus {
		if status != "" && s != status {
			continue
		}
		n := 0
		take := func(e *documentEntry) bool {
			if after != (Mark{}) && e.mark.compare(after) <= 0 {
				return true
			}
			out = append(out, e.mark)
			n++
			return n < limit
		}
		if after == (Mark{}) {
			t.Scan(take)
		} else {
			t.Ascend(&documentEntry{mark: after}, take)
		}
	}
	slices.SortFunc(out, Mark.compare)
	return out[:min(limit, len(out))]
}

func (x *documentIndex) ids() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Keys(x.byID))
}

func (x *documentIndex) counts() map[rag.Status]int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make(map[rag.Status]int64, len(x.byStatus))
	for s, t := range x.byStatus {
		if n := t.Len(); n > 0 {
			out[s] = int64(n)
		}
	}
	return out
}

func (x *documentIndex) served(id string) (rag.Revision, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.now(id)
}

func (x *documentIndex) servedAt(s *Snapshot, id string) (rag.Revision, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if was, changed := x.history.at(s, id); changed {
		return was.served, was.serves
	}
	return x.now(id)
}

// now is what a document serves; the caller holds the lock.
func (x *documentIndex) now(id string) (rag.Revision, bool) {
	e := x.byID[id]
	if e == nil || !e.serves {
		return rag.Revision{}, false
	}
	return e.served, true
}

func (x *documentIndex) open(s *Snapshot) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.history.begin(s)
}

func (x *documentIndex) close(s *Snapshot) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.history.end(s)
}
