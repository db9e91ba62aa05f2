package engine

import (
	"context"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/internal/mutant"
)

// saveOffsetEvery bounds how much of the table is read again after a crash.
const saveOffsetEvery = 500

// follow reads the partition's own table while this process owns it, merges what strangers wrote (a stopped process that
// woke up, the owner before) and writes again every row whose record says something else: otherwise the stranger's row
// would be the last one, and compaction would drop the good one (contract rule 12).
func (s *rowStore) follow() {
	if mutant.Active == mutant.OwnerNotFollowing {
		return
	}
	for key := range s.p.r.dirty.take(s.p.id) {
		s.rewrite(key)
	}
	for try := 1; s.p.ctx.Err() == nil; try++ {
		if err := s.followOnce(); err != nil {
			s.p.log.Warn("following the table failed", "topic", s.topic, "error", err)
		}
		if !s.p.sleep(s.p.ctx, s.p.r.env.Retry.wait(try, s.p.r.env.Jitter())) {
			return
		}
	}
}

func (s *rowStore) followOnce() error {
	stored, err := s.st.GetOffset(sarama.OffsetOldest)
	if err != nil {
		return err
	}
	next := sarama.OffsetOldest
	if stored >= 0 {
		next = stored + 1
	}
	newest, err := s.p.r.client.GetOffset(s.topic, s.p.id, sarama.OffsetNewest)
	if err != nil {
		return err
	}
	if next > newest {
		s.p.log.Error("the table's topic ends before what was read from it; its rows are written again", "topic", s.topic, "newest", newest, "read", next)
		if err := s.rewriteAll(); err != nil {
			return err
		}
		stored, next = -1, sarama.OffsetOldest
	}
	consumer, err := s.p.r.consumer.ConsumePartition(s.topic, s.p.id, next)
	if err != nil {
		return err
	}
	read := &tableReader{s: s, saved: stored, at: stored}
	defer func() {
		consumer.AsyncClose()
		for range consumer.Messages() { // drained so that the consumer can close
		}
		for range consumer.Errors() { // drained so that the consumer can close
		}
	}()
	err = read.loop(s.p.ctx, consumer)
	return joinErrors(err, read.save())
}

// rewriteAll sends every local row again.
func (s *rowStore) rewriteAll() error {
	it, err := s.st.Iterator()
	if err != nil {
		return err
	}
	defer it.Release()
	for it.Next() && s.p.ctx.Err() == nil {
		s.rewrite(string(it.Key()))
	}
	return it.Err()
}

// tableReader is one pass of a follower through the table's topic.
type tableReader struct {
	s         *rowStore
	saved, at int64
}

func (t *tableReader) loop(ctx context.Context, consumer sarama.PartitionConsumer) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err, ok := <-consumer.Errors():
			if !ok {
				return nil
			}
			return err
		case <-t.s.again.ready:
			for _, key := range t.s.again.take() {
				t.s.rewrite(key)
			}
		case m, ok := <-consumer.Messages():
			if !ok {
				return nil
			}
			if err := t.apply(m); err != nil {
				return err
			}
		}
	}
}

func (t *tableReader) apply(m *sarama.ConsumerMessage) error {
	key := string(m.Key)
	differs, err := t.s.absorb(key, m.Value)
	if err != nil {
		return err
	}
	if differs && t.s.differing(key, m.Offset) {
		t.s.rewrite(key)
	}
	t.s.passed(key, m.Offset)
	t.at = m.Offset
	if t.at-t.saved >= saveOffsetEvery {
		return t.save()
	}
	return nil
}

// save writes down how far the topic has been read. Reading a record again is harmless.
func (t *tableReader) save() error {
	if t.at <= t.saved {
		return nil
	}
	t.saved = t.at
	return t.s.st.SetOffset(t.at)
}

// absorb merges a record of the table into the local row; it reports whether the row says something else than the record.
func (s *rowStore) absorb(key string, value []byte) (differs bool, err error) {
	if value == nil {
		return false, nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	current, err := s.st.Get(key)
	if err != nil {
		return false, err
	}
	merged, differs, err := mergeValues(s.table, current, value)
	if err != nil {
		return false, err
	}
	if current != nil && s.table.same(merged, current) {
		return differs, nil
	}
	if err := s.store(key, merged); err != nil {
		return false, err
	}
	if row, err := s.decode(key, merged); err == nil && row != nil && s.p.timers != nil {
		s.p.timers.acknowledged(key, row)
	}
	return differs, nil
}

// sleep waits; false if ctx ended first.
func (p *partition) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-p.r.env.Clock.After(d):
		return true
	}
}

// keyQueue collects keys, each once, for one reader.
type keyQueue struct {
	ready chan struct{}
	mu    *sync.Mutex
	keys  map[string]struct{}
}

func newKeyQueue() keyQueue {
	return keyQueue{ready: make(chan struct{}, 1), mu: &sync.Mutex{}, keys: map[string]struct{}{}}
}

func (q *keyQueue) add(key string) {
	q.mu.Lock()
	q.keys[key] = struct{}{}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *keyQueue) take() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	keys := make([]string, 0, len(q.keys))
	for k := range q.keys {
		keys = append(keys, k)
	}
	clear(q.keys)
	return keys
}
