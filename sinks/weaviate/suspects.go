package weaviate

import (
	"context"
	"sync"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// maxSuspects bounds the memory; beyond it the oldest are forgotten, and the indexer's own read-back finds them.
const maxSuspects = 100_000

// suspects are objects whose last write did not end well, by their ids.
type suspects struct {
	opened time.Time

	mu   sync.Mutex
	byID map[string]suspect
}

type suspect struct {
	ended    time.Time // of a write that was not answered; zero if it was
	document string
	revision rag.Revision
}

func newSuspects(now time.Time) *suspects {
	return &suspects{opened: now, byID: make(map[string]suspect)}
}

// add remembers an object whose write has ended at a time, without an answer, or with one that is not good.
func (s *suspects) add(o *sinks.Object, ended time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= maxSuspects {
		s.forgetOldest()
	}
	s.byID[o.ID] = suspect{ended, o.Chunk.DocumentID, o.Chunk.Revision}
}

func (s *suspects) forgetOldest() {
	var oldest string
	for id, x := range s.byID {
		if oldest == "" || x.ended.Before(s.byID[oldest].ended) {
			oldest = id
		}
	}
	delete(s.byID, oldest)
}

// removed are the suspects that a removal concerns.
func (s *suspects) removed(documentID string, r rag.Removal) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, x := range s.byID {
		if x.document == documentID && r.Removes(x.revision) {
			ids = append(ids, id)
		}
	}
	return ids
}

// forget forgets objects that were removed, but for those whose write ended at settled or later, and may be running still.
func (s *suspects) forget(ids []string, settled time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.byID[id].ended.Before(settled) {
			delete(s.byID, id)
		}
	}
}

func (s *suspects) clear(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

func (s *suspects) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.byID[id]
	return ok
}

// inheritedSettle is how long after it was opened a store waits for the writes of a process before it. Their connections ended
// with that process, and with them what the server did for them.
const inheritedSettle = 2 * time.Second

// settled returns when the last write of id cannot be running any more. One that this process has not seen ended soon after
// it was opened.
func (s *suspects) settled(id string, settle time.Duration) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x, ok := s.byID[id]; ok {
		return x.ended.Add(settle)
	}
	return s.opened.Add(min(settle, inheritedSettle))
}

// sleepUntil waits for a time or for the end of the context.
func sleepUntil(ctx context.Context, at time.Time) error {
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
