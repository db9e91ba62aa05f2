package weaviate

import (
	"context"
	"sync"
	"time"
)

// maxSuspects bounds the memory; beyond it the oldest are forgotten, and the indexer's own read-back finds them.
const maxSuspects = 100_000

// suspects are the ids of objects whose last write did not end well, with the time of its end.
type suspects struct {
	opened time.Time

	mu    sync.Mutex
	since map[string]time.Time
}

func newSuspects(now time.Time) *suspects {
	return &suspects{opened: now, since: make(map[string]time.Time)}
}

func (s *suspects) add(id string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.since) >= maxSuspects {
		s.forgetOldest()
	}
	s.since[id] = now
}

func (s *suspects) forgetOldest() {
	var oldest string
	for id, at := range s.since {
		if oldest == "" || at.Before(s.since[oldest]) {
			oldest = id
		}
	}
	delete(s.since, oldest)
}

func (s *suspects) clear(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, id)
}

func (s *suspects) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.since[id]
	return ok
}

// settled returns when the last write of id cannot be running any more. One that this process has not seen ended before it
// was opened.
func (s *suspects) settled(id string, settle time.Duration) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.since[id]; ok {
		return at.Add(settle)
	}
	return s.opened.Add(settle)
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
