package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

// Schedules aimed at single rules of the delivery contract. Each one breaks in its own way as soon as its rule does.

// tamperedSender lets a test decide what becomes of each record.
type tamperedSender struct {
	engine.Sender
	send func(out stage.Output, ack func(int64, error), next engine.Sender) error
}

func (s tamperedSender) Send(ctx context.Context, out stage.Output, ack func(int64, error)) error {
	return s.send(out, ack, s.Sender)
}

// tampered is a pod's environment with a sender of the test's own. What such a pod leaves unsent is not waited for.
func (w *world) tampered(pod string, send func(stage.Output, func(int64, error), engine.Sender) error) engine.Env {
	env := w.env(pod)
	open := env.NewSender
	env.NewSender = func() (engine.Sender, goka.Producer, error) {
		s, p, err := open()
		return tamperedSender{s, send}, p, err
	}
	env.DrainTimeout = 50 * time.Millisecond
	return env
}

// written is a handler that sends the message on and writes its row.
func written(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
	return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}, Row: seen(row, m)}, nil
}

// kept is a handler that writes its row and sends nothing on.
func kept(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
	return stage.Result[counts]{Row: seen(row, m)}, nil
}

// stranger writes a row of the key k into the table, as a process does that does not own it.
func (w *world) stranger(last map[string]int64) {
	w.t.Helper()
	row, err := countsCodec{}.Encode(counts{Last: last})
	if err != nil {
		w.t.Fatal(err)
	}
	kafkatest.Produce(w.t, w.cfg, kafka.Record{Topic: "g-table", Key: []byte("k"), Value: row})
}

// rows are what the records of the table say, one after the other.
func (w *world) rows() (all []map[string]int64) {
	w.t.Helper()
	for _, value := range w.values("g-table") {
		row, err := countsCodec{}.Decode([]byte(value))
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, row.Last)
	}
	return all
}

func (w *world) lastRow() map[string]int64 {
	w.t.Helper()
	rows := w.rows()
	return rows[len(rows)-1]
}

// What was sent before a group came for the first time is its work too.
func TestGroupStartsAtTheOldestRecord(t *testing.T) {
	w := newWorld(t)
	w.send("k", "before")
	w.run("a", group(t, engine.Input(in, written), engine.Table(countsCodec{}, mergeCounts)))
	kafkatest.Wait(t, "a first record", func() bool {
		if len(w.values("out")) > 0 {
			return true
		}
		w.send("k", "after")
		return false
	})
	if first := w.values("out")[0]; first != "before" {
		t.Errorf("the group began with %q", first)
	}
}

// What is done early waits for what was delivered before it: nothing is committed while the first message is not done.
func TestCommitWaitsForTheSlowest(t *testing.T) {
	w := newWorld(t)
	done := make(chan string, 10)
	env := w.tampered("a", func(o stage.Output, ack func(int64, error), next engine.Sender) error {
		if string(o.Value) == "slow" {
			return nil // it is on its way for as long as this pod lives
		}
		return next.Send(t.Context(), o, func(offset int64, err error) {
			ack(offset, err)
			done <- string(o.Value)
		})
	})
	w.send("k", "slow", "fast", "fast")
	stop := w.runIn(env, group(t, engine.Input(in, echo), engine.Table(countsCodec{}, mergeCounts)))
	for range 2 {
		kafkatest.Receive(t, "the acknowledgement of what is fast", done)
	}
	stop() // commits what may be committed
	if offset := w.committed("k"); offset > 0 {
		t.Fatalf("committed %d, with offset 0 not done", offset)
	}
	w.run("a", group(t, engine.Input(in, echo), engine.Table(countsCodec{}, mergeCounts)))
	w.waitCommitted("k", 3)
	if got := fmt.Sprint(w.values("out")); got != "[fast fast slow fast fast]" {
		t.Errorf("out %s", got)
	}
}

// A message of a batch is done when the batch is, not when it joined one.
func TestCommitWaitsForTheBatch(t *testing.T) {
	w := newWorld(t)
	options := engine.BatchOptions{MaxMessages: 10, MaxBytes: 1 << 20, Linger: time.Millisecond}
	begun := make(chan string, 10)
	env := w.env("a")
	env.DrainTimeout = 50 * time.Millisecond
	w.send("k", "1")
	stop := w.runIn(env, group(t, engine.Table(countsCodec{}, mergeCounts),
		engine.Batch(in, options, func(ctx context.Context, b stage.Batch[string, counts]) stage.BatchResult[counts] {
			begun <- b.Messages[0].Value
			<-ctx.Done()
			return stage.BatchResult[counts]{Errors: map[int]error{0: stage.Outage("store", 0, ctx.Err())}}
		})))
	kafkatest.Receive(t, "the batch to begin", begun)
	stop()
	if offset := w.committed("k"); offset > 0 {
		t.Fatalf("committed %d while the batch was being written", offset)
	}
	w.run("a", group(t, engine.Table(countsCodec{}, mergeCounts), engine.Batch(in, options, echoBatch)))
	if got := w.waitFor("out", 1); got[0] != "1" {
		t.Errorf("out %v", got)
	}
}

func echoBatch(_ context.Context, b stage.Batch[string, counts]) (res stage.BatchResult[counts]) {
	for _, m := range b.Messages {
		res.Outputs = append(res.Outputs, out.Record(m.Key, m.Value))
	}
	return res
}

// The pod dies with the row in its local store and nothing in Kafka, neither the outputs nor the row's record. The row that
// it finds when it comes again is no reason to leave out either.
func TestRedeliverySendsOutputsAndRowAgain(t *testing.T) {
	w := newWorld(t)
	unsent := make(chan string, 10)
	env := w.tampered("a", func(o stage.Output, _ func(int64, error), _ engine.Sender) error {
		unsent <- o.Topic
		return nil
	})
	w.send("k", "1")
	stop := w.runIn(env, group(t, engine.Input(in, written), engine.Table(countsCodec{}, mergeCounts)))
	for _, want := range []string{"out", "g-table"} {
		if topic := kafkatest.Receive(t, "a record for "+want, unsent); topic != want {
			t.Fatalf("a record for %s, want %s", topic, want)
		}
	}
	stop()
	known := make(chan bool, 10)
	w.run("a", group(t, engine.Table(countsCodec{}, mergeCounts),
		engine.Input(in, func(ctx context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
			known <- row != nil && row.Last["1"] == 1
			return written(ctx, m, row)
		})))
	if !kafkatest.Receive(t, "the redelivery", known) {
		t.Fatal("the local store has lost the row: this test shows nothing")
	}
	w.waitCommitted("k", 1)
	if got := fmt.Sprint(w.values("out")); got != "[1]" {
		t.Errorf("committed with the outputs %s", got)
	}
	if rows := w.values("g-table"); len(rows) != 1 {
		t.Errorf("committed with %d records in the table", len(rows))
	}
}

// Behind the owner's last row stands an old one: a process that was stopped had it in flight. Whoever recovers the table
// merges them.
func TestRecoveryMergesRows(t *testing.T) {
	w := newWorld(t)
	g := func(known chan *counts) *engine.Group {
		return group(t, engine.Table(countsCodec{}, mergeCounts),
			engine.Input(in, func(ctx context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
				known <- row
				return written(ctx, m, row)
			}))
	}
	stop := w.run("a", g(make(chan *counts, 10)))
	w.send("k", "1", "2")
	w.waitCommitted("k", 2)
	stop()
	old := w.values("g-table")[0]
	kafkatest.Produce(t, w.cfg, kafka.Record{Topic: "g-table", Key: []byte("k"), Value: []byte(old)})
	known := make(chan *counts, 10)
	w.run("b", g(known))
	w.send("k", "3")
	if row := kafkatest.Receive(t, "the row", known); row == nil || row.Last["1"] != 1 || row.Last["2"] != 2 {
		t.Errorf("the recovered row is %+v, want messages 1 and 2", row)
	}
}

var errAway = errors.New("connection refused")

// An outage counts for nothing, however often it is met, and does not use up what other failures have left.
func TestOutageIsNoAttempt(t *testing.T) {
	const tries = 3 // as in env
	failing := func() func(value string) error {
		var mu sync.Mutex
		calls := map[string]int{}
		return func(value string) error {
			mu.Lock()
			defer mu.Unlock()
			calls[value]++
			switch n := calls[value]; {
			case n < tries:
				return errors.New("passing")
			case n < tries+2*tries:
				return stage.Outage("store", 0, errAway)
			}
			return nil
		}
	}
	one, many := failing(), failing()
	for name, input := range map[string]engine.Option{
		"message": engine.Input(in, func(ctx context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
			if err := one(m.Value); err != nil {
				return stage.Result[counts]{}, err
			}
			return echo(ctx, m, row)
		}),
		"batch": engine.Batch(in, engine.BatchOptions{MaxMessages: 10, MaxBytes: 1 << 20, Linger: time.Millisecond},
			func(ctx context.Context, b stage.Batch[string, counts]) stage.BatchResult[counts] {
				if err := many(b.Messages[0].Value); err != nil {
					res := stage.BatchResult[counts]{Errors: map[int]error{}}
					for i := range b.Messages {
						res.Errors[i] = err
					}
					return res
				}
				return echoBatch(ctx, b)
			}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run("a", group(t, input, engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad),
				engine.WithCanary(func(context.Context, string) error { return errAway })))
			w.send("k", "1")
			kafkatest.Wait(t, "an outcome", func() bool { return len(w.values("out"))+len(w.values("bad")) > 0 })
			if got := w.values("bad"); len(got) != 0 {
				t.Errorf("after an outage it failed: %v", got)
			}
		})
	}
}
