package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// searchLogged searches for every served chunk whose vector the log has. Of two records of one chunk the later one was
// written last.
func (r *run) searchLogged(ctx context.Context) error {
	var batch []sinks.Object
	err := r.Log.Vectors(ctx, func(v rag.Vector) error {
		d := r.documents[v.DocumentID]
		if !d.has(v.Revision, v.Index) || d.asked.Has(v.Index) {
			return nil
		}
		d.asked = d.asked.With(v.Index, v.Index+1)
		batch = append(batch, sinks.Object{ID: r.id(v.Chunk), Chunk: v.Chunk, Vector: v.Values})
		if len(batch) < searchBatch {
			return nil
		}
		full := batch
		batch = nil
		return r.search(ctx, full)
	})
	if err != nil {
		return fmt.Errorf("search for what the log has: %w", err)
	}
	if err := r.search(ctx, batch); err != nil {
		return err
	}
	return r.confirm(ctx)
}

// search asks the store for a batch; what is not found is looked for a second time later.
func (r *run) search(ctx context.Context, batch []sinks.Object) error {
	missing, err := r.missing(ctx, batch)
	if err != nil {
		return err
	}
	r.suspects = append(r.suspects, missing...)
	if len(r.suspects) < confirmBatch {
		return nil
	}
	return r.confirm(ctx)
}

// missing are the objects that a search does not find.
func (r *run) missing(ctx context.Context, objects []sinks.Object) ([]sinks.Object, error) {
	var out []sinks.Object
	for batch := range slices.Chunk(objects, searchBatch) {
		indexes, err := r.Store.Missing(ctx, batch)
		if err != nil {
			return nil, fmt.Errorf("search the store: %w", err)
		}
		for _, i := range indexes {
			out = append(out, batch[i])
		}
	}
	return out, nil
}

// confirm takes the second look at chunks that were not found. Their document served them before the first search; if it
// still does after the second, nobody was allowed to remove them meanwhile.
func (r *run) confirm(ctx context.Context) error {
	if len(r.suspects) == 0 {
		return nil
	}
	missing, err := r.missing(ctx, r.suspects)
	r.suspects = nil
	if err != nil || len(missing) == 0 {
		return err
	}
	lost, err := r.stillServed(ctx, missing)
	if err != nil {
		return err
	}
	found := make([]*Finding, len(lost))
	for i, o := range lost {
		kind := Missing
		if r.documents[o.Chunk.DocumentID].present.Has(o.Chunk.Index) {
			kind = Unsearchable
		}
		found[i] = r.find(kind, o.Chunk.DocumentID, o.Chunk.Revision, o.Chunk.Index)
	}
	if !r.repair {
		return nil
	}
	for from := 0; from < len(lost); from += searchBatch {
		to := min(from+searchBatch, len(lost))
		if err := r.rewrite(ctx, lost[from:to], found[from:to]); err != nil {
			return err
		}
	}
	return nil
}

// stillServed keeps the chunks that are served by rows newer than the call.
func (r *run) stillServed(ctx context.Context, objects []sinks.Object) ([]sinks.Object, error) {
	if err := r.fresh(ctx); err != nil {
		return nil, err
	}
	var out []sinks.Object
	for _, o := range objects {
		served, err := r.serves(ctx, o.Chunk.DocumentID, o.Chunk.Revision)
		if err != nil {
			return nil, err
		}
		if served {
			out = append(out, o)
		}
	}
	return out, nil
}

// searchOlder searches for the served chunks whose vectors the log no longer has: what is in the store is embedded again,
// what is not in the store is gone.
func (r *run) searchOlder(ctx context.Context) error {
	gone := map[string][]rag.Chunk{}
	var batch []sinks.Object
	for _, id := range slices.Sorted(maps.Keys(r.documents)) {
		d := r.documents[id]
		if d.count == 0 || d.asked.Full(d.count) {
			continue
		}
		seen := d.asked
		err := r.Store.Scan(ctx, id, func(o sinks.Object) error {
			if d.has(o.Chunk.Revision, o.Chunk.Index) && r.proper(o) && !seen.Has(o.Chunk.Index) {
				seen = seen.With(o.Chunk.Index, o.Chunk.Index+1)
				d.present = d.present.With(o.Chunk.Index, o.Chunk.Index+1)
				batch = append(batch, o)
			}
			if len(batch) < searchBatch {
				return nil
			}
			full := batch
			batch = nil
			return r.searchEmbedded(ctx, full)
		})
		if err != nil {
			return fmt.Errorf("search for what the log no longer has: %w", err)
		}
		for i := range d.count {
			if !seen.Has(i) {
				gone[id] = append(gone[id], rag.Chunk{Subject: rag.Subject{DocumentID: id, Revision: d.served}, Index: i})
			}
		}
	}
	if err := r.searchEmbedded(ctx, batch); err != nil {
		return err
	}
	if err := r.confirm(ctx); err != nil {
		return err
	}
	return r.findGone(ctx, gone)
}

// searchEmbedded searches for objects of the store by vectors made anew.
func (r *run) searchEmbedded(ctx context.Context, objects []sinks.Object) error {
	if len(objects) == 0 {
		return nil
	}
	texts := make([]string, len(objects))
	for i := range objects {
		texts[i] = objects[i].Chunk.Text
	}
	vectors, err := r.Embedder.Embed(ctx, texts)
	if err != nil {
		return fmt.Errorf("embed chunks of the store: %w", err)
	}
	for i := range objects {
		objects[i].Vector = vectors[i] // nil is never found, and never written
	}
	return r.search(ctx, objects)
}

// findGone reports chunks that neither the store nor the log has.
func (r *run) findGone(ctx context.Context, gone map[string][]rag.Chunk) error {
	if len(gone) == 0 {
		return nil
	}
	if err := r.fresh(ctx); err != nil {
		return err
	}
	for id, chunks := range gone {
		served, err := r.serves(ctx, id, chunks[0].Revision)
		if err != nil {
			return err
		}
		if !served {
			continue
		}
		for _, c := range chunks {
			f := r.find(Missing, id, c.Revision, c.Index)
			f.Note = noteGone
		}
	}
	return nil
}
