package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

func echo(_ context.Context, m stage.Message[string], _ *counts) (stage.Result[counts], error) {
	return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}}, nil
}

func TestExactlyOnceIsRefused(t *testing.T) {
	_, err := engine.NewGroup("g", engine.Input(in, echo), engine.Deliver(stage.ExactlyOnce))
	if !errors.Is(err, engine.ErrExactlyOnce) {
		t.Errorf("%v", err)
	}
	if _, err := engine.NewGroup("g", engine.Input(in, echo), engine.Deliver("twice")); err == nil {
		t.Error("an unknown contract was taken")
	}
}

// At-most-once: the offset is committed before the work, so that what was in hand when the process ended is not worked on
// again. The handler below waits until it is told to go on, and the group is ended while it waits.
func TestAtMostOnceCommitsBeforeTheWork(t *testing.T) {
	w := newWorld(t)
	begun, hold := make(chan string, 10), make(chan struct{})
	waiting := func(ctx context.Context, m stage.Message[string], _ *counts) (stage.Result[counts], error) {
		begun <- m.Value
		select {
		case <-hold:
		case <-ctx.Done():
			return stage.Result[counts]{}, ctx.Err()
		}
		return echo(ctx, m, nil)
	}
	for _, c := range []struct {
		delivery  stage.Delivery
		committed int64
		after     string
	}{{stage.AtMostOnce, 1, "[second]"}, {stage.AtLeastOnce, -1, "[first second]"}} {
		t.Run(string(c.delivery), func(t *testing.T) {
			w = newWorld(t)
			g := group(t, engine.Input(in, waiting), engine.Table(countsCodec{}, mergeCounts), engine.Deliver(c.delivery))
			w.send("k", "first")
			stop := w.run("a", g)
			kafkatest.Receive(t, "the work to begin", begun)
			if c.committed >= 0 {
				w.waitCommitted("k", c.committed)
			}
			stop()
			w.send("k", "second")
			w.run("a", group(t, engine.Input(in, echo), engine.Table(countsCodec{}, mergeCounts), engine.Deliver(c.delivery)))
			kafkatest.Wait(t, "the second message", func() bool {
				v := w.values("out")
				return len(v) > 0 && v[len(v)-1] == "second"
			})
			if got := fmt.Sprint(w.values("out")); got != c.after {
				t.Errorf("out %s, want %s", got, c.after)
			}
		})
	}
}
