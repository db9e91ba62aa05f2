package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka/storage"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

// failingOnce are stores of which the one of partition 1 of the group's table cannot be opened the first time. Those of
// partition 0 open only after that.
type failingOnce struct {
	engine.Stores
	once   sync.Once
	failed chan struct{}
}

func (f *failingOnce) Builder() storage.Builder {
	build := f.Stores.Builder()
	return func(topic string, partition int32) (storage.Storage, error) {
		if partition == 0 {
			<-f.failed
			return build(topic, partition)
		}
		fails := false
		if topic == "g-table" {
			f.once.Do(func() {
				fails = true
				time.AfterFunc(100*time.Millisecond, func() { close(f.failed) }) // goka says to nobody that it gives up
			})
		}
		if fails {
			return nil, errors.New("the disk is odd")
		}
		return build(topic, partition)
	}
}

// A partition whose store cannot be opened must not take the process along with a group that joins a table: goka goes on
// with the tables of the other partitions although it has closed them.
func TestStoreThatCannotBeOpenedAtFirst(t *testing.T) {
	cfg := kafkatest.Start(t, kafkatest.Topic("in", partitions), kafkatest.Topic("out", partitions), kafkatest.Topic("g-table", partitions),
		kafkatest.Topic("joined", partitions))
	w := &world{t: t, cfg: cfg, dir: t.TempDir()}
	g := group(t,
		engine.Input(in, func(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
			return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}, Row: seen(row, m)}, nil
		}),
		engine.Join(stage.Topic[string]{Name: "joined", Codec: text{}}, nil),
		engine.Table(countsCodec{}, mergeCounts),
	)
	env := w.env("a")
	env.Stores = &failingOnce{Stores: env.Stores, failed: make(chan struct{})}
	w.runIn(env, g)
	for _, key := range []string{"a", "d"} {
		w.send(key, key)
	}
	if kafka.PartitionOf([]byte("a"), partitions) == kafka.PartitionOf([]byte("d"), partitions) {
		t.Fatal("both keys are on one partition")
	}
	w.waitFor("out", 2)
}

// A table whose topic has lost what the local store read from it, as after an unclean election of a leader or a power cut
// of the embedded broker, comes up again, and gets its rows back.
func TestTableTopicThatLostItsRows(t *testing.T) {
	b := kafkatest.StartBroker(t, kafkatest.Topic("in", partitions), kafkatest.Topic("out", partitions), kafkatest.Topic("g-table", partitions))
	w := &world{t: t, cfg: b.Config(), dir: t.TempDir()}
	g := group(t,
		engine.Input(in, func(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
			return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}, Row: seen(row, m)}, nil
		}),
		engine.Table(countsCodec{}, mergeCounts),
	)
	stop := w.run("a", g)
	w.send("a", "1", "2", "3")
	w.waitCommitted("a", 3)
	kafkatest.Wait(t, "all rows in the table", func() bool { return len(w.values("g-table")) >= 3 })
	stop()
	if err := errors.Join(b.Cluster().DeleteTopic("g-table"), b.Cluster().CreateTopic("g-table", partitions, nil)); err != nil {
		t.Fatal(err)
	}

	w.run("a", g)
	w.send("d", "4") // the other partition
	w.waitFor("out", 4)
	w.waitFor("g-table", 2)
	for _, r := range kafkatest.ReadAll(t, w.cfg, "g-table") {
		if string(r.Key) == "a" && strings.Contains(string(r.Value), `"3":3`) {
			return
		}
	}
	t.Errorf("the table's topic has %q", w.values("g-table"))
}
