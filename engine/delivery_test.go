package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// A stage learns which messages an owner before it may have begun: at least those that it had in flight, none that came
// later, and none at all where each is delivered once at most.
func TestRedeliveredTellsWhatAnEarlierOwnerMayHaveBegun(t *testing.T) {
	for _, c := range []struct {
		delivery stage.Delivery
		second   string
	}{{stage.AtLeastOnce, "[left:true more:true late:false]"}, {stage.AtMostOnce, "[more:false late:false]"}} {
		t.Run(string(c.delivery), func(t *testing.T) {
			w := newWorld(t)
			told := make(chan string, 10)
			tell := func(ctx context.Context, m stage.Message[string], _ *counts) (stage.Result[counts], error) {
				told <- fmt.Sprintf("%s:%t", m.Value, m.Redelivered)
				return echo(ctx, m, nil)
			}
			g := func() *engine.Group {
				return group(t, engine.Input(in, tell), engine.Table(countsCodec{}, mergeCounts), engine.Deliver(c.delivery))
			}
			w.send("k", "done")
			stop := w.run("a", g())
			kafkatest.Receive(t, "the first message", told)
			w.waitCommitted("k", 1)
			stop()
			// The second owner has one in flight when it ends.
			env := w.tampered("a", func(stage.Output, func(int64, error), engine.Sender) error { return nil })
			stop = w.runIn(env, g())
			w.send("k", "left")
			if got := kafkatest.Receive(t, "the second message", told); got != "left:false" && got != "left:true" { // as it came before or after the claim
				t.Errorf("%s", got)
			}
			if c.delivery == stage.AtMostOnce {
				w.waitCommitted("k", 2)
			}
			stop()
			w.send("k", "more")
			w.run("a", g())
			var got []string
			for len(got) < strings.Count(c.second, ":") {
				if len(got) == strings.Count(c.second, ":")-1 {
					w.send("k", "late")
				}
				got = append(got, kafkatest.Receive(t, "a message of the third owner", told))
			}
			if fmt.Sprint(got) != c.second {
				t.Errorf("%v, want %s", got, c.second)
			}
		})
	}
}
