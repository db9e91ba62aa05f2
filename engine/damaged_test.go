package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka/storage"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/stage"
)

// spoilt are stores whose files turn out to be damaged when a row is read, until they are opened again.
type spoilt struct {
	engine.Stores
	opened atomic.Int32
}

func (s *spoilt) Builder() storage.Builder {
	build := s.Stores.Builder()
	return func(topic string, partition int32) (storage.Storage, error) {
		s.opened.Add(1)
		return build(topic, partition)
	}
}

func (s *spoilt) Get(topic string, partition int32) (storage.Storage, bool) {
	st, ok := s.Stores.Get(topic, partition)
	if s.opened.Load() <= partitions {
		return unreadable{st}, ok
	}
	return st, ok
}

type unreadable struct{ storage.Storage }

func (unreadable) Get(string) ([]byte, error) {
	return nil, fmt.Errorf("%w: bad magic number", kafka.ErrStoreDamaged)
}

// LevelDB finds damaged files when it reads them, which may be long after it was opened. The store is opened again then, and
// rebuilt; a partition that only waited would wait for ever. No message is charged with it, also not in a batch.
func TestStoreThatIsFoundDamagedIsOpenedAgain(t *testing.T) {
	for name, input := range map[string]engine.Option{
		"one by one": engine.Input(in, func(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
			return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}, Row: seen(row, m)}, nil
		}),
		"in batches": engine.Batch(in, engine.BatchOptions{MaxMessages: 10, MaxBytes: 1 << 20, Linger: time.Millisecond},
			func(_ context.Context, b stage.Batch[string, counts]) stage.BatchResult[counts] {
				res := stage.BatchResult[counts]{Rows: map[string]*counts{}}
				for _, m := range b.Messages {
					row := b.Row(m.Key)
					if !b.Valid() {
						panic("what is made of a row that cannot be read does not count")
					}
					if earlier := res.Rows[m.Key]; earlier != nil {
						row = earlier
					}
					res.Rows[m.Key] = seen(row, m)
					res.Outputs = append(res.Outputs, out.Record(m.Key, m.Value))
				}
				return res
			}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			// A canary that passes: whatever else works, this store does not.
			g := group(t, input, engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad),
				engine.WithCanary(func(context.Context, string) error { return nil }))
			env := w.env("a")
			env.Stores = &spoilt{Stores: env.Stores}
			w.runIn(env, g)
			w.send("k", "1", "2")
			if got := w.waitFor("out", 2); fmt.Sprint(got) != "[1 2]" {
				t.Errorf("out %v", got)
			}
			if got := w.values("bad"); len(got) != 0 {
				t.Errorf("bad %v", got)
			}
			w.waitCommitted("k", 2)
		})
	}
}
