package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

// A stranger's row that is written and read while an own one, which knows nothing of it, is still on its way stands before that
// one: compaction would drop it. The owner sends the merged row (contract rule 12), whether the acknowledgement of its own
// comes before it reads it back or after.
func TestAStrangersRowBeforeAnOwnOneIsNotLost(t *testing.T) {
	for name, late := range map[string]bool{"acknowledged at once": false, "read back before it is acknowledged": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sent, let := make(chan struct{}, 10), make(chan struct{})
			acknowledge := make(chan func(), 10)
			var held atomic.Bool
			env := w.tampered("a", func(o stage.Output, ack func(int64, error), next engine.Sender) error {
				if o.Topic != "g-table" || !held.CompareAndSwap(false, true) {
					return next.Send(t.Context(), o, ack)
				}
				go func() { // until the test lets it go on
					sent <- struct{}{}
					<-let
					if err := next.Send(context.WithoutCancel(t.Context()), o, func(offset int64, err error) {
						if late {
							acknowledge <- func() { ack(offset, err) }
							return
						}
						ack(offset, err)
					}); err != nil {
						ack(0, err)
					}
				}()
				return nil
			})
			stores := &countedStores{Stores: env.Stores}
			env.Stores = stores
			w.runIn(env, group(t, engine.Input(in, written), engine.Table(countsCodec{}, mergeCounts)))
			w.send("k", "1")
			kafkatest.Receive(t, "the own row to be held", sent)
			w.stranger(map[string]int64{"stranger": 7})
			kafkatest.Wait(t, "the follower to take the stranger's row", func() bool { return stores.writes.Load() == 2 })
			read := stores.reads.Load()
			close(let)
			if late {
				kafkatest.Wait(t, "the own row to be read back", func() bool { return stores.reads.Load() > read })
				kafkatest.Receive(t, "the acknowledgement", acknowledge)()
			}
			kafkatest.Wait(t, "a last row with both", func() bool {
				last := w.lastRow()
				return last["1"] == 1 && last["stranger"] == 7
			})
		})
	}
}

// What a batch writes is merged with what stands there, also where it has read that and says only what is new.
func TestRowsOfABatchAreMerged(t *testing.T) {
	w := newWorld(t)
	options := engine.BatchOptions{MaxMessages: 1, MaxBytes: 1 << 20, Linger: time.Millisecond}
	w.run("a", group(t, engine.Table(countsCodec{}, mergeCounts),
		engine.Batch(in, options, func(_ context.Context, b stage.Batch[string, counts]) stage.BatchResult[counts] {
			m := b.Messages[0]
			b.Row(m.Key)
			return stage.BatchResult[counts]{Rows: map[string]*counts{m.Key: seen(nil, m)}, Outputs: []stage.Output{out.Record(m.Key, m.Value)}}
		})))
	w.send("k", "1", "2")
	w.waitFor("out", 2)
	w.waitFor("g-table", 2)
	if row := w.rows()[1]; row["1"] != 1 || row["2"] != 2 {
		t.Errorf("the row says %v", row)
	}
}

// Timers that are due together do not wait for each other's acknowledgements, which take as long as a busy producer gathers.
func TestTimersAreAcknowledgedTogether(t *testing.T) {
	const rows = 8
	w := newWorld(t)
	fired := make(chan func(), 100)
	env := w.tampered("a", func(o stage.Output, ack func(int64, error), next engine.Sender) error {
		if o.Topic != "said" {
			return next.Send(t.Context(), o, ack)
		}
		return next.Send(t.Context(), o, func(offset int64, err error) { fired <- func() { ack(offset, err) } })
	})
	g := group(t,
		engine.Input(in, kept),
		engine.Table(countsCodec{}, mergeCounts),
		engine.Timer(stage.Timer[counts]{
			Next: func(*counts) (time.Time, bool) { return time.Unix(0, 0), true },
			Fire: func(_ context.Context, key string, _ *counts, _ func() bool) ([]stage.Output, error) {
				return []stage.Output{said.Record(key, "fired")}, nil
			},
		}))
	w.runIn(env, g)
	for i := range rows {
		w.send(fmt.Sprint("k", i), "x")
	}
	var acks []func()
	for i := range rows {
		acks = append(acks, kafkatest.Receive(t, fmt.Sprintf("row %d to fire", i), fired))
	}
	for _, ack := range acks {
		ack()
	}
}
