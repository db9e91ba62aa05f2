package verify

import (
	"context"
	"fmt"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// Notes of findings that are left.
const (
	noteGone  = "the log no longer has the chunk: delete the document and submit it again"
	noteAbove = "it is above what the document serves; the next version that is served takes it away"
	noteMoved = "the document has changed meanwhile"
)

// rewrite writes served chunks again, delete and insert, and searches for them. found are their findings.
func (r *run) rewrite(ctx context.Context, objects []sinks.Object, found []*Finding) error {
	var todo []int
	for i, o := range objects {
		served, err := r.serves(ctx, o.Chunk.DocumentID, o.Chunk.Revision)
		switch {
		case err != nil:
			return err
		case served:
			todo = append(todo, i)
		default:
			found[i].Note = noteMoved
		}
	}
	written, err := r.write(ctx, objects, todo, found)
	if err != nil {
		return err
	}
	missing, err := r.Store.Missing(ctx, at(objects, written))
	if err != nil {
		return fmt.Errorf("search the store: %w", err)
	}
	unfound := map[int]bool{}
	for _, i := range missing {
		unfound[written[i]] = true
	}
	if err := r.fresh(ctx); err != nil {
		return err
	}
	for _, i := range written {
		c := objects[i].Chunk
		served, err := r.serves(ctx, c.DocumentID, c.Revision)
		switch {
		case err != nil:
			return err
		case !served: // its removal may have come first
			r.documents[c.DocumentID].stray(c.Revision)
			found[i].Note = noteMoved
		case unfound[i]:
			found[i].Note = "it was written, and a search still does not find it"
			continue
		}
		found[i].Repaired++
	}
	return nil
}

// write returns the indexes, of todo, of the objects that the store has acknowledged.
func (r *run) write(ctx context.Context, objects []sinks.Object, todo []int, found []*Finding) (written []int, err error) {
	for attempt := 1; len(todo) > 0; attempt++ {
		repair := map[int]bool{}
		for j := range todo {
			repair[j] = true
		}
		var ambiguous []int
		for j, res := range r.Store.Upsert(ctx, at(objects, todo), repair) {
			switch {
			case res.Outcome == sinks.Done:
				written = append(written, todo[j])
			case res.Outcome == sinks.Ambiguous && attempt < attempts:
				ambiguous = append(ambiguous, todo[j])
			default:
				found[todo[j]].Note = fmt.Sprintf("the store answered %s: %v", res.Outcome, res.Err)
			}
		}
		if todo = ambiguous; len(todo) == 0 {
			break
		}
		if err := wait(ctx, r.After(r.Settle)); err != nil {
			return nil, err
		}
	}
	return written, nil
}

func at(objects []sinks.Object, indexes []int) []sinks.Object {
	out := make([]sinks.Object, len(indexes))
	for j, i := range indexes {
		out[j] = objects[i]
	}
	return out
}

// remove takes exactly one revision away; "" means that it is gone, everything else says why not.
func (r *run) remove(ctx context.Context, documentID string, rev rag.Revision) string {
	for attempt := 1; ; attempt++ {
		res := r.Store.Remove(ctx, documentID, rag.Removal{Exact: true, Revision: rev})
		switch {
		case res.Outcome == sinks.Done:
			return ""
		case res.Outcome != sinks.Ambiguous || attempt == attempts:
			return fmt.Sprintf("the store answered %s: %v", res.Outcome, res.Err)
		}
	}
}

// evict takes an object out of the served revision, whose chunks are not touched: it is overwritten as one of a revision
// that no document ever has, which is then removed. What is left when the process dies in between is stale.
func (r *run) evict(ctx context.Context, o sinks.Object) (string, error) {
	vectors, err := r.Embedder.Embed(ctx, []string{o.Chunk.Text})
	if err != nil {
		return "", fmt.Errorf("embed a chunk of the store: %w", err)
	}
	o.Vector, o.Chunk.Revision = vectors[0], nowhere
	if res := r.Store.Upsert(ctx, []sinks.Object{o}, map[int]bool{0: true})[0]; res.Outcome != sinks.Done {
		return fmt.Sprintf("the store answered %s: %v", res.Outcome, res.Err), nil
	}
	return r.remove(ctx, o.Chunk.DocumentID, nowhere), nil
}

// nowhere is a revision that no document has: versions begin at 1.
var nowhere = rag.Revision{}
