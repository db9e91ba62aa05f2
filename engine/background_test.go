package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

// counting remembers each message in the row of its key.
func counting(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
	next := mergeCounts(row0(row), &counts{Last: map[string]int64{m.Value: m.Record.Offset}})
	return stage.Result[counts]{Row: next}, nil
}

func row0(row *counts) *counts {
	if row == nil {
		return &counts{}
	}
	return row
}

// Work in the background runs once for each partition, sees the rows and how far its inputs were delivered, begins anew
// after an error or a panic, and ends with the session.
func TestBackground(t *testing.T) {
	kafkatest.NoLeaks(t)
	w := newWorld(t)
	key := "key"
	home := kafka.PartitionOf([]byte(key), partitions)
	var tries, ended atomic.Int32
	seen := make(chan int64, 100)
	work := func(ctx context.Context, p stage.Owned[counts]) error {
		if p.Partition != home {
			<-ctx.Done()
			ended.Add(1)
			return nil
		}
		switch tries.Add(1) {
		case 1:
			return errors.New("the first time")
		case 2:
			panic("the second time")
		}
		kafkatest.Wait(t, "the row and the delivery of its message", func() bool {
			row := p.Row(key)
			next, known := p.Delivered("in")
			return row != nil && known && next == row.Last["second"]+1
		})
		if _, known := p.Delivered("no such input"); known {
			t.Error("something was delivered of an input that does not exist")
		}
		if !p.Valid() {
			t.Error("the partition is owned and not valid")
		}
		p.Alone(func(context.Context) { seen <- p.Row(key).Last["second"] })
		<-ctx.Done()
		ended.Add(1)
		return nil
	}
	g, err := engine.NewGroup("g", engine.Input(in, counting), engine.Table[counts](countsCodec{}, mergeCounts), engine.Background(work))
	if err != nil {
		t.Fatal(err)
	}
	stop := w.run("pod", g)
	w.send(key, "first", "second")
	if got := kafkatest.Receive(t, "the work", seen); got != 1 {
		t.Errorf("the row says %d, want the offset 1", got)
	}
	stop()
	if ended.Load() != partitions {
		t.Errorf("%d of %d works have ended with the session", ended.Load(), partitions)
	}
}

// While work in the background acts alone, no batch of its partition does.
func TestBackgroundActsAlone(t *testing.T) {
	kafkatest.NoLeaks(t)
	w := newWorld(t)
	home := kafka.PartitionOf([]byte("a"), partitions)
	var acting atomic.Int32
	var both atomic.Bool
	alone, begun, free := make(chan struct{}), make(chan struct{}), make(chan struct{})
	work := func(ctx context.Context, p stage.Owned[counts]) error {
		if p.Partition != home {
			return nil
		}
		p.Alone(func(context.Context) {
			acting.Add(1)
			close(alone)
			<-free
			acting.Add(-1)
		})
		return nil
	}
	handle := func(_ context.Context, b stage.Batch[string, counts]) stage.BatchResult[counts] {
		both.Store(acting.Load() > 0)
		return stage.BatchResult[counts]{Outputs: []stage.Output{out.Record(b.Messages[0].Key, b.Messages[0].Value)}}
	}
	handleOther := func(_ context.Context, m stage.Message[string], _ *counts) (stage.Result[counts], error) {
		close(begun)
		return stage.Result[counts]{}, nil
	}
	g, err := engine.NewGroup("g", engine.Batch(in, engine.BatchOptions{MaxMessages: 1, MaxBytes: 1 << 20, Linger: 1}, handle),
		engine.Input(bad, handleOther), engine.Output(out), engine.Table[counts](countsCodec{}, mergeCounts), engine.Background(work))
	if err != nil {
		t.Fatal(err)
	}
	stop := w.run("pod", g)
	kafkatest.Receive(t, "the work in the background", alone)
	w.send("a", "x")
	kafkatest.Produce(t, w.cfg, kafka.Record{Topic: "bad", Key: []byte("a"), Value: []byte("y")}) // delivered behind the batch's message, or nearly so
	kafkatest.Receive(t, "messages, which need not wait", begun)
	if n := len(w.values("out")); n > 0 {
		t.Errorf("%d batches have acted beside the work", n)
	}
	close(free)
	w.waitFor("out", 1)
	stop()
	if both.Load() {
		t.Error("a batch acted beside the work")
	}
}

func TestBackgroundNeedsTheTableOfItsRows(t *testing.T) {
	work := func(context.Context, stage.Owned[string]) error { return nil }
	if _, err := engine.NewGroup("g", engine.Input(in, counting), engine.Table[counts](countsCodec{}, mergeCounts), engine.Background(work)); err == nil {
		t.Error("work on rows that the table does not hold was taken")
	}
}
