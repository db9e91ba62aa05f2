package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

const (
	// maxBatch bounds how long one transaction keeps others from writing.
	maxBatch = 500
	// maxCulprits is how many objects of a batch are found out one by one: each costs another run of the batch.
	maxCulprits = 8
)

// Upsert implements sinks.Sink. A batch of up to 500 objects is one transaction, so that its good objects are done
// together; larger ones are cut. Objects to repair need nothing special: every write replaces all parts of a chunk, and
// it waits until an earlier transaction, whatever became of it, has let go of the lock.
func (s *Store) Upsert(ctx context.Context, objects []sinks.Object, _ map[int]bool) []sinks.Result {
	results := make([]sinks.Result, len(objects))
	for start := 0; start < len(objects); start += maxBatch {
		end := min(start+maxBatch, len(objects))
		s.upsertBatch(ctx, objects[start:end], results[start:end])
	}
	return results
}

func (s *Store) upsertBatch(ctx context.Context, objects []sinks.Object, results []sinks.Result) {
	rows := make([]row, len(objects))
	var todo []int               // indexes of the objects without a result
	last := make(map[string]int) // of several objects with one id, the last is written
	for i := range objects {
		if err := sinks.Validate(objects[i], s.options.Dimensions); err != nil {
			results[i] = sinks.Result{Outcome: sinks.Rejected, Err: err}
			continue
		}
		rows[i] = newRow(&objects[i])
		last[string(rows[i].id)] = i
		todo = append(todo, i)
	}
	written := slices.DeleteFunc(slices.Clone(todo), func(i int) bool { return last[string(rows[i].id)] != i })
	s.putResults(ctx, rows, written, results)
	for _, i := range todo {
		results[i] = results[last[string(rows[i].id)]]
	}
}

// putResults writes the rows with the given indexes and fills in their results: objects that cannot be written are left
// out, so that the others can.
func (s *Store) putResults(ctx context.Context, rows []row, todo []int, results []sinks.Result) {
	for culprits := 0; len(todo) > 0; culprits++ {
		failed, err := s.putAll(ctx, rows, todo)
		if err == nil {
			return
		}
		result := classify(err)
		alone := failed >= 0 && (result.Outcome == sinks.Rejected || result.Outcome == sinks.Transient)
		if !alone || culprits == maxCulprits {
			for _, i := range todo {
				results[i] = notWritten(result, alone && i != todo[failed])
			}
			return
		}
		results[todo[failed]] = result
		todo = append(todo[:failed], todo[failed+1:]...)
	}
}

// notWritten is the result of the objects of a transaction that failed; bystander says that another one was the cause.
func notWritten(r sinks.Result, bystander bool) sinks.Result {
	if !bystander {
		return r
	}
	return sinks.Result{Outcome: sinks.Transient, Err: fmt.Errorf("not written, because other objects of the batch failed: %w", r.Err)}
}

// putAll writes the rows with the given indexes in one transaction. On an error that one row caused, failed is its
// place in todo; else it is -1.
func (s *Store) putAll(ctx context.Context, rows []row, todo []int) (failed int, err error) {
	failed = -1
	err = s.writer.transact(ctx, func(ctx context.Context, t *transaction) error {
		var old []stored
		for _, i := range todo {
			c, ok, err := t.lookUp(ctx, rows[i].id)
			if err != nil {
				return err
			}
			if ok {
				old = append(old, c)
			}
		}
		if err := t.delete(ctx, old); err != nil {
			return err
		}
		for n, i := range todo {
			if err := t.insert(ctx, &rows[i]); err != nil {
				failed = n
				return err
			}
		}
		return nil
	})
	return failed, err
}

// Remove implements sinks.Sink, in transactions of at most 500 chunks.
func (s *Store) Remove(ctx context.Context, documentID string, r rag.Removal) sinks.Result {
	condition := "(version, generation) < (?, ?)"
	if mutant.Active == mutant.RemoveAllOthers {
		condition = "(version, generation) <> (?, ?)"
	}
	if r.Exact {
		condition = "(version, generation) = (?, ?)"
	}
	query := "SELECT key, metadata FROM chunk WHERE document = ? AND " + condition + " LIMIT ?"
	for {
		var found int
		err := s.writer.transact(ctx, func(ctx context.Context, t *transaction) error {
			chunks, err := t.find(ctx, query, documentID, int64(r.Revision.Version), r.Revision.Generation, maxBatch)
			if err != nil {
				return err
			}
			found = len(chunks)
			return t.delete(ctx, chunks)
		})
		if err != nil {
			return classify(fmt.Errorf("remove: %w", err))
		}
		if found < maxBatch {
			return sinks.Result{}
		}
	}
}

// find reads chunks to be removed.
func (t *transaction) find(ctx context.Context, query string, args ...any) ([]stored, error) {
	rows, err := t.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var chunks []stored
	for rows.Next() {
		var c stored
		if err := rows.Scan(&c.key, &c.metadata); err != nil {
			return nil, err
		}
		chunks = append(chunks, c)
	}
	return chunks, rows.Err()
}
