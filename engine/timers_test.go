package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

// A timer acts on what readers can see. A row that Kafka has not acknowledged is not that, however long it takes: here the
// time of the row before it comes while the new one is on its way.
func TestTimerWaitsForTheRowOnItsWay(t *testing.T) {
	w := newWorld(t)
	var acknowledged atomic.Bool
	withheld, fired := make(chan func(), 1), make(chan string, 10)
	env := w.tampered("a", func(o stage.Output, ack func(int64, error), next engine.Sender) error {
		if o.Topic == "g-table" && strings.Contains(string(o.Value), `"2"`) && !acknowledged.Load() {
			withheld <- func() {
				acknowledged.Store(true)
				if err := next.Send(t.Context(), o, ack); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		return next.Send(t.Context(), o, ack)
	})
	g := group(t,
		engine.Input(in, kept),
		engine.Table(countsCodec{}, mergeCounts),
		engine.Timer(stage.Timer[counts]{
			Next: func(*counts) (time.Time, bool) { return time.Unix(0, 0), true },
			MinDelay: func(row *counts) time.Duration {
				if row.Last["later"] > 0 {
					return time.Second
				}
				return 500 * time.Millisecond
			},
			Fire: func(_ context.Context, key string, row *counts, _ func() bool) ([]stage.Output, error) {
				if row.Last["2"] > 0 && !acknowledged.Load() {
					t.Error("the timer acts on a row that nobody can see")
				}
				fired <- key
				return nil, nil
			},
		}))
	w.runIn(env, g)
	w.send("k", "1", "2")
	release := kafkatest.Receive(t, "the row on its way", withheld)
	w.send("a", "later") // on the same partition: when it fires, the time of the first row is over
	for key := ""; key != "a"; {
		key = kafkatest.Receive(t, "the later timer", fired)
	}
	release()
	for key := ""; key != "k"; {
		key = kafkatest.Receive(t, "the timer of the acknowledged row", fired)
	}
}

// The time in a row was chosen by the clock of another machine, which may be hours ahead of this one's; or this one's is
// hours behind. Nothing waits for longer than it may.
func TestTimerBoundsWhatAWrongClockCanDo(t *testing.T) {
	w := newWorld(t)
	fired := make(chan time.Time, 10)
	const most = 300 * time.Millisecond
	g := group(t,
		engine.Input(in, kept),
		engine.Table(countsCodec{}, mergeCounts),
		engine.Timer(stage.Timer[counts]{
			Next:     func(*counts) (time.Time, bool) { return time.Unix(1<<33, 0), true },
			MaxDelay: func(*counts) time.Duration { return most },
			Fire: func(_ context.Context, _ string, _ *counts, _ func() bool) ([]stage.Output, error) {
				fired <- time.Now()
				return nil, nil
			},
		}))
	w.run("a", g)
	began := time.Now()
	w.send("k", "1")
	if after := kafkatest.Receive(t, "the timer", fired).Sub(began); after < most {
		t.Errorf("it fires after %s, and its time is in 2242", after)
	}
}
