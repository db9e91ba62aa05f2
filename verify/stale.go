package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
)

// pause waits until what the pipeline was about to remove or to confirm at the first look is removed or confirmed.
func (r *run) pause(ctx context.Context) error {
	if len(r.suspicious()) == 0 {
		return nil
	}
	over := r.After(r.RemovalDelay + beyondRemoval)
	r.unsettled = r.Pipeline.Settled(ctx)
	return wait(ctx, over)
}

func wait(ctx context.Context, c <-chan time.Time) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// suspicious are the documents with objects that seemed to be stale or doubled.
func (r *run) suspicious() []string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(r.documents)) {
		if d := r.documents[id]; len(d.strays)+len(d.foreign) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// judge takes the second look at objects that no row seemed to account for.
func (r *run) judge(ctx context.Context) error {
	for ids := range slices.Chunk(r.suspicious(), judgeBatch) {
		again := make([]*second, len(ids))
		for i, id := range ids {
			var err error
			if again[i], err = r.lookAgain(ctx, id); err != nil {
				return err
			}
		}
		if err := r.fresh(ctx); err != nil {
			return err
		}
		for i, id := range ids {
			if err := r.decide(ctx, id, again[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// second is what the second look has shown of a document: only what the first look has shown as well.
type second struct {
	strays  map[rag.Revision][]int // indexes of objects
	foreign []sinks.Object
}

func (r *run) lookAgain(ctx context.Context, id string) (*second, error) {
	d, s := r.documents[id], &second{strays: map[rag.Revision][]int{}}
	err := r.Store.Scan(ctx, id, func(o sinks.Object) error {
		c := o.Chunk
		switch {
		case d.strays[c.Revision]:
			s.strays[c.Revision] = append(s.strays[c.Revision], c.Index)
		case d.foreign[o.ID] && c.Revision == d.served:
			s.foreign = append(s.foreign, o)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at a document again: %w", err)
	}
	return s, nil
}

// decide compares what both looks have shown with the row as it is now, which is newer than both.
func (r *run) decide(ctx context.Context, id string, s *second) error {
	row, err := r.Rows.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("read the row of a document: %w", err)
	}
	for rev, indexes := range s.strays {
		if !stale(row, rev) {
			continue
		}
		below := row != nil && rev.Less(row.Served.Revision)
		if !below && r.unsettled != nil {
			r.undecided += len(indexes)
			continue
		}
		var f *Finding
		for _, i := range indexes {
			f = r.find(Stale, id, rev, i)
		}
		if err := r.removeStale(ctx, f, below || row == nil); err != nil {
			return err
		}
	}
	if row == nil || row.Served.Count == 0 || row.Served.Revision != r.documents[id].served {
		return nil
	}
	for _, o := range s.foreign {
		if err := r.decideForeign(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// stale reports whether a row accounts for no chunk of a revision: it is not served, not in work, and its removal is not due.
// row may be nil.
func stale(row *ledger.DocumentRow, rev rag.Revision) bool {
	if row == nil {
		return true
	}
	if _, working := row.Work[rev]; working || row.Served.Count > 0 && row.Served.Revision == rev {
		return false
	}
	for due := range row.Due {
		if due.Exact && due.Revision == rev || !due.Exact && rev.Less(due.Revision) {
			return false
		}
	}
	return true
}

// removeStale removes a revision if nobody can be about to write or to serve it, by the row as it is now.
func (r *run) removeStale(ctx context.Context, f *Finding, allowed bool) error {
	switch {
	case !r.repair:
		return nil
	case !allowed:
		f.Note = noteAbove
		return nil
	}
	row, err := r.Rows.Get(ctx, f.DocumentID)
	if err != nil {
		return fmt.Errorf("read the row of a document: %w", err)
	}
	if !stale(row, f.Revision) || row != nil && !f.Revision.Less(row.Served.Revision) {
		f.Note = noteMoved
		return nil
	}
	if f.Note = r.remove(ctx, f.DocumentID, f.Revision); f.Note == "" {
		f.Repaired = f.Objects
	}
	return nil
}

// decideForeign deals with an object in the served revision that is none of its chunks.
func (r *run) decideForeign(ctx context.Context, o sinks.Object) error {
	kind := Doubled
	if r.proper(o) {
		kind = Stale // beyond the last chunk
	}
	f := r.find(kind, o.Chunk.DocumentID, o.Chunk.Revision, o.Chunk.Index)
	if !r.repair {
		return nil
	}
	note, err := r.evict(ctx, o)
	if err != nil {
		return err
	}
	if f.Note = note; note == "" {
		f.Repaired++
	}
	return nil
}
