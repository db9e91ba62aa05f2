package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/stage"
)

// sleepyClock is a machine's clock on which the process can oversleep.
type sleepyClock struct {
	engine.Clock
	slept atomic.Int64
}

func (c *sleepyClock) Mono() time.Duration { return c.Clock.Mono() + time.Duration(c.slept.Load()) }

// A process that was stopped in the middle of its work, for longer than the group waits for a member, applies nothing of it
// when it wakes: the message has another owner (contract rule 14).
func TestWorkOfASleeperIsNotApplied(t *testing.T) {
	sleep := func(c *sleepyClock, calls *atomic.Int64) string {
		if calls.Add(1) > 1 {
			return "awake"
		}
		c.slept.Add(int64(time.Hour))
		return "asleep"
	}
	for name, input := range map[string]func(*sleepyClock, *atomic.Int64) engine.Option{
		"one by one": func(c *sleepyClock, calls *atomic.Int64) engine.Option {
			return engine.Input(in, func(_ context.Context, m stage.Message[string], _ *counts) (stage.Result[counts], error) {
				return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, sleep(c, calls))}}, nil
			})
		},
		"batch": func(c *sleepyClock, calls *atomic.Int64) engine.Option {
			return engine.Batch(in, engine.BatchOptions{MaxMessages: 10, MaxBytes: 1 << 20, Linger: time.Millisecond},
				func(_ context.Context, b stage.Batch[string, counts]) stage.BatchResult[counts] {
					return stage.BatchResult[counts]{Outputs: []stage.Output{out.Record(b.Messages[0].Key, sleep(c, calls))}}
				})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			env := w.env("a")
			c, calls := &sleepyClock{Clock: engine.SystemClock()}, &atomic.Int64{}
			env.Clock = c
			w.runIn(env, group(t, input(c, calls), engine.Table(countsCodec{}, mergeCounts)))
			w.send("k", "1")
			w.waitCommitted("k", 1)
			if got := w.values("out"); fmt.Sprint(got) != "[awake]" {
				t.Errorf("sent %v", got)
			}
		})
	}
}
