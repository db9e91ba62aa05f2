package ingest

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/rag"
)

const (
	// maxPending is how many accepted documents may wait for their final status before uploads wait too.
	maxPending = 10_000
	// lookEvery is how long one question to the API waits for the documents that it names.
	lookEvery = time.Second
)

// tracker follows accepted documents to their final status.
type tracker struct {
	api  API
	room *semaphore.Weighted

	mu      sync.Mutex
	queue   []client.WaitFor       // the one to ask for next is first
	pending map[client.WaitFor]int // how many submissions share the key
	closed  bool
	news    chan struct{} // capacity 1: something was added, or the end came
}

func newTracker(api API) *tracker {
	return &tracker{
		api: api, room: semaphore.NewWeighted(maxPending), pending: map[client.WaitFor]int{}, news: make(chan struct{}, 1),
	}
}

// add follows one more submission; it waits while too many are pending.
func (t *tracker) add(ctx context.Context, key client.WaitFor) error {
	if err := t.room.Acquire(ctx, 1); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[key] == 0 {
		t.queue = append(t.queue, key)
	}
	t.pending[key]++
	t.notify()
	return nil
}

// close says that nothing will be added any more.
func (t *tracker) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.notify()
}

func (t *tracker) notify() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// next takes keys from the front of the queue; none at all means the end.
func (t *tracker) next(ctx context.Context) ([]client.WaitFor, error) {
	for {
		t.mu.Lock()
		n := min(len(t.queue), client.MaxWaitFor)
		keys := append([]client.WaitFor(nil), t.queue[:n]...)
		t.queue = t.queue[n:]
		end := t.closed
		t.mu.Unlock()
		if n > 0 || end {
			return keys, nil
		}
		select {
		case <-t.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// settle takes the final ones out, puts the others back, and returns the outcomes.
func (t *tracker) settle(asked []client.WaitFor, final []client.FinalMessage) []Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	var outcomes []Outcome
	for _, f := range final {
		key := client.WaitFor{MessageID: f.MessageID, DocumentID: f.DocumentID}
		for range t.pending[key] {
			outcomes = append(outcomes, finalOutcome(f))
		}
		t.room.Release(int64(t.pending[key]))
		delete(t.pending, key)
	}
	for _, key := range asked {
		if t.pending[key] > 0 {
			t.queue = append(t.queue, key)
		}
	}
	return outcomes
}

// run asks until everything has ended, and tells what it learns.
func (t *tracker) run(ctx context.Context, ended func(Outcome), seen func(statuses map[string]int)) error {
	for {
		keys, err := t.next(ctx)
		if err != nil || len(keys) == 0 {
			return err
		}
		result, err := t.api.Wait(ctx, keys, lookEvery)
		if err != nil {
			return err
		}
		seen(result.Statuses)
		for _, o := range t.settle(keys, result.Final) {
			ended(o)
		}
	}
}

// retrying is the part of the statuses that people should know of.
func retrying(statuses map[string]int) int { return statuses[string(rag.StatusRetrying)] }
