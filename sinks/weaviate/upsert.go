package weaviate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weaviate/weaviate/entities/models"

	"github.com/waymarkhq/waymark/sinks"
)

const (
	// maxBatch is where the server's speed reaches its plateau.
	maxBatch = 100
	// maxBatchBytes keeps a request well below the server's limit of 10 MiB.
	maxBatchBytes = 6 << 20
)

// Upsert implements sinks.Sink, in requests of at most 100 objects and 6 MiB. Objects to repair, and those whose last write
// from this process did not end well, come last: they wait until that write cannot be running any more (10 s after it
// ended), are deleted, inserted and looked for by vector. ctx is looked at between requests only.
func (s *Store) Upsert(ctx context.Context, objects []sinks.Object, repair map[int]bool) []sinks.Result {
	results := make([]sinks.Result, len(objects))
	last := make(map[string]int)   // of several objects with one id, the last is written
	again := make(map[string]bool) // and repaired, if any of them is to be
	var valid []int
	for i := range objects {
		if err := sinks.Validate(objects[i], s.options.Dimensions); err != nil {
			results[i] = sinks.Result{Outcome: sinks.Rejected, Err: err}
			continue
		}
		last[objects[i].ID] = i
		again[objects[i].ID] = again[objects[i].ID] || repair[i]
		valid = append(valid, i)
	}
	var plain, suspect []int
	for _, i := range valid {
		switch {
		case last[objects[i].ID] != i:
		case again[objects[i].ID] || s.suspects.has(objects[i].ID):
			suspect = append(suspect, i)
		default:
			plain = append(plain, i)
		}
	}
	w := &upsert{store: s, objects: objects, results: results}
	w.each(ctx, plain, w.insert)
	w.each(ctx, suspect, w.repair)
	for _, i := range valid {
		results[i] = results[last[objects[i].ID]]
	}
	return results
}

// upsert is one call of Upsert.
type upsert struct {
	store   *Store
	objects []sinks.Object
	results []sinks.Result
}

// each gives the objects with the given indexes to write, a batch at a time.
func (w *upsert) each(ctx context.Context, indexes []int, write func(context.Context, []int)) {
	for len(indexes) > 0 {
		n := w.batch(indexes)
		if err := ctx.Err(); err != nil {
			w.set(indexes, sinks.Result{Outcome: sinks.Transient, Err: err})
			return
		}
		write(ctx, indexes[:n])
		indexes = indexes[n:]
	}
}

// batch is how many of the objects go into the next request.
func (w *upsert) batch(indexes []int) int {
	bytes := 0
	for n, i := range indexes {
		c := &w.objects[i].Chunk
		// The terms are about as long as the text, and a float takes 4 bytes in gRPC and about 12 in REST.
		bytes += 2*len(c.Text) + 3*len(c.Title) + len(c.Source) + 2*len(c.Heading) + 12*len(w.objects[i].Vector) + 512
		for _, pair := range c.Metadata {
			bytes += len(pair) + 8
		}
		if n == maxBatch || n > 0 && bytes > maxBatchBytes {
			return n
		}
	}
	return len(indexes)
}

func (w *upsert) set(indexes []int, r sinks.Result) {
	for _, i := range indexes {
		w.results[i] = r
	}
}

// fail sets the result of objects whose request has failed.
func (w *upsert) fail(indexes []int, v verdict, err error) {
	w.set(indexes, sinks.Result{Outcome: v.outcome, Err: err})
	if v.suspect {
		var ended time.Time
		if !v.answered {
			ended = time.Now()
		}
		for _, i := range indexes {
			w.store.suspects.add(&w.objects[i], ended)
		}
	}
}

// insert writes a batch and reads the answer object by object.
func (w *upsert) insert(ctx context.Context, indexes []int) {
	encoded := make([]*models.Object, len(indexes))
	for n, i := range indexes {
		encoded[n] = w.store.encode(&w.objects[i])
	}
	reply, err := w.store.sendBatch(ctx, encoded)
	if err == nil && len(reply) != len(encoded) {
		err = fmt.Errorf("the answer has %d results for %d objects", len(reply), len(encoded))
	}
	if err != nil {
		v := classify(err)
		if v.tooLarge && len(indexes) > 1 {
			half := len(indexes) / 2
			w.insert(ctx, indexes[:half])
			w.insert(ctx, indexes[half:])
			return
		}
		w.fail(indexes, v, fmt.Errorf("batch: %w", err))
		return
	}
	var done []int
	worst := sinks.Done
	for n, i := range indexes {
		if message, failed := objectError(reply[n]); failed {
			v := classifyObject(message)
			worst = max(worst, v.outcome)
			w.fail(indexes[n:n+1], v, fmt.Errorf("object %s: %w", w.objects[i].ID, &objectFailure{message}))
			continue
		}
		w.results[i] = sinks.Result{}
		done = append(done, i)
	}
	if worst != sinks.Done && len(done) > 0 {
		w.doubt(ctx, done, worst)
	}
}

// doubt looks for the objects that an answer calls a success beside failures. The server reports what concerns a whole
// shard, such as that it is read-only, at the first of its objects alone; of the others it has written none.
func (w *upsert) doubt(ctx context.Context, done []int, worst sinks.Outcome) {
	outcome := sinks.Ambiguous
	if worst == sinks.Outage {
		outcome = sinks.Outage
	}
	w.verify(ctx, done, verdict{outcome: outcome, suspect: true}, "beside failures, and not found by its vector")
}

// sendBatch sends one request, which is not given up when ctx is.
func (s *Store) sendBatch(ctx context.Context, objects []*models.Object) ([]models.ObjectsGetResponse, error) {
	select {
	case s.writers <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: other requests come first: %w", errNotSent, ctx.Err())
	}
	defer func() { <-s.writers }()
	ctx, cancel := s.request(ctx)
	defer cancel()
	if s.grpc != nil {
		return s.grpc.send(ctx, objects, s.options.ConsistencyLevel)
	}
	ctx, after := withRetryAfter(ctx)
	reply, err := s.client.Batch().ObjectsBatcher().WithObjects(objects...).
		WithConsistencyLevel(s.options.ConsistencyLevel).Do(ctx)
	if err != nil {
		return nil, unwrap(err, *after)
	}
	return reply, nil
}

// objectError reads the result of one object; everything in it can be missing.
func objectError(r models.ObjectsGetResponse) (message string, failed bool) {
	if r.Result == nil {
		return "the answer says nothing about it", true
	}
	if r.Result.Errors != nil {
		var messages []string
		for _, e := range r.Result.Errors.Error {
			if e != nil {
				messages = append(messages, e.Message)
			}
		}
		if len(messages) > 0 {
			return strings.Join(messages, "; "), true
		}
	}
	if r.Result.Status == nil || *r.Result.Status != models.ObjectsGetResponseAO2ResultStatusSUCCESS {
		return "failed without a reason", true
	}
	return "", false
}

// repair deletes objects, inserts them, and looks for them by vector.
func (w *upsert) repair(ctx context.Context, indexes []int) {
	s := w.store
	ids := make([]string, len(indexes))
	var settled time.Time
	for n, i := range indexes {
		ids[n] = w.objects[i].ID
		if at := s.suspects.settled(ids[n], s.settle); at.After(settled) {
			settled = at
		}
	}
	if err := sleepUntil(ctx, settled); err != nil {
		w.set(indexes, sinks.Result{Outcome: sinks.Transient, Err: err})
		return
	}
	if err := s.deleteIDs(ctx, ids); err != nil {
		w.fail(indexes, classify(err), fmt.Errorf("delete before insert: %w", err))
		return
	}
	w.insert(ctx, indexes)
	w.verify(ctx, indexes, verdict{outcome: sinks.Ambiguous, suspect: true, answered: true}, "not found after the repair")
}

// verify looks by vector for those of the objects that are Done. What is not found is to be repaired.
func (w *upsert) verify(ctx context.Context, indexes []int, lost verdict, what string) {
	var done []int
	var objects []sinks.Object
	for _, i := range indexes {
		if w.results[i].Outcome == sinks.Done {
			done = append(done, i)
			objects = append(objects, w.objects[i])
		}
	}
	missing, err := w.store.missing(ctx, objects, false) // it may be the first that is whole
	if err != nil {
		w.fail(done, lost, fmt.Errorf("verify: %w", err))
		return
	}
	for _, i := range done {
		w.store.suspects.clear(w.objects[i].ID)
	}
	for _, n := range missing {
		w.fail(done[n:n+1], lost, errors.New(what))
	}
}
