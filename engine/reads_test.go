package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka/storage"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

// countedStores count what is read from and written to them.
type countedStores struct {
	engine.Stores
	reads, writes atomic.Int64
	untilWrite    atomic.Int64 // reads before the latest write
}

func (s *countedStores) Get(topic string, partition int32) (storage.Storage, bool) {
	st, ok := s.Stores.Get(topic, partition)
	return countedStore{st, s}, ok
}

type countedStore struct {
	storage.Storage
	of *countedStores
}

func (s countedStore) Get(key string) ([]byte, error) {
	s.of.reads.Add(1)
	return s.Storage.Get(key)
}

func (s countedStore) Set(key string, value []byte) error {
	defer s.of.writes.Add(1)
	s.of.untilWrite.Store(s.of.reads.Load())
	return s.Storage.Set(key, value)
}

// handler is a stage that adds each message to its row, with what a test does while it works.
type handler func(ctx context.Context, m stage.Message[string])

func (h handler) oneByOne() engine.Option {
	return engine.Input(in, func(ctx context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
		h(ctx, m)
		return stage.Result[counts]{Row: seen(row, m), Outputs: []stage.Output{out.Record(m.Key, m.Value)}}, nil
	})
}

func (h handler) inBatches() engine.Option {
	return engine.Batch(in, engine.BatchOptions{MaxMessages: 1, MaxBytes: 1 << 20, Linger: time.Millisecond},
		func(ctx context.Context, b stage.Batch[string, counts]) stage.BatchResult[counts] {
			m := b.Messages[0]
			row := b.Row(m.Key)
			h(ctx, m)
			return stage.BatchResult[counts]{Rows: map[string]*counts{m.Key: seen(row, m)}, Outputs: []stage.Output{out.Record(m.Key, m.Value)}}
		})
}

func forEachKind(t *testing.T, h handler, test func(t *testing.T, name string, w *world, stores *countedStores)) {
	t.Helper()
	for name, input := range map[string]engine.Option{"one by one": h.oneByOne(), "in batches": h.inBatches()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			env := w.env("a")
			stores := &countedStores{Stores: env.Stores}
			env.Stores = stores
			w.runIn(env, group(t, input, engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad)))
			w.send("k", "1")
			test(t, name, w, stores)
		})
	}
}

// Between the read for the handler and the write there is no other, where nobody else writes. What a batch writes is compared
// with what stands there.
func TestARowIsReadOnceForAMessage(t *testing.T) {
	forEachKind(t, func(context.Context, stage.Message[string]) {}, func(t *testing.T, name string, w *world, stores *countedStores) {
		w.waitFor("out", 1)
		kafkatest.Wait(t, "the row", func() bool { return stores.writes.Load() == 1 })
		want := map[string]int64{"one by one": 1, "in batches": 2}[name]
		if got := stores.untilWrite.Load(); got != want {
			t.Errorf("%d reads until the row was written, want %d", got, want)
		}
	})
}

// A row that somebody else has written while a message was worked on is merged, not overwritten (contract rule 12).
func TestARowThatChangesMeanwhileIsMerged(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	wait := func(ctx context.Context, _ stage.Message[string]) {
		begun <- struct{}{}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
	}
	forEachKind(t, wait, func(t *testing.T, _ string, w *world, stores *countedStores) {
		kafkatest.Receive(t, "the message", begun)
		w.stranger(map[string]int64{"stranger": 7})
		kafkatest.Wait(t, "the follower to take the stranger's row", func() bool { return stores.writes.Load() == 1 })
		goOn <- struct{}{}
		w.waitFor("g-table", 2)
		if row := w.rows()[1]; row["1"] != 1 || row["stranger"] != 7 {
			t.Errorf("the row says %v", row)
		}
	})
}
