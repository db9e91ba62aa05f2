package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

// copying passes every message on and notes it in the row.
func copying(t testing.TB, options ...engine.Option) *engine.Group {
	t.Helper()
	return group(t, append([]engine.Option{
		engine.Input(in, func(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
			return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}, Row: seen(row, m)}, nil
		}),
		engine.Table(countsCodec{}, mergeCounts),
	}, options...)...)
}

// admin does something to the topics, as an operator does.
func admin(t testing.TB, cfg kafka.Config, do func(sarama.ClusterAdmin) error) {
	t.Helper()
	conf, err := cfg.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	a, err := sarama.NewClusterAdmin(cfg.Brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(do(a), a.Close()); err != nil {
		t.Fatal(err)
	}
}

// Retention has deleted what a group that was away for long has not read: it goes on at the oldest record that there is,
// and commits.
func TestRetentionPassedTheCommittedOffset(t *testing.T) {
	w := newWorld(t)
	stop := w.run("a", copying(t))
	w.send("k", "1", "2")
	w.waitCommitted("k", 2)
	stop()
	w.send("k", "3", "4", "5", "6")
	admin(t, w.cfg, func(a sarama.ClusterAdmin) error {
		return a.DeleteRecords("in", map[int32]int64{kafka.PartitionOf([]byte("k"), partitions): 4})
	})
	w.run("a", copying(t))
	if got := fmt.Sprint(w.waitFor("out", 4)); got != "[1 2 5 6]" {
		t.Errorf("out %s", got)
	}
	w.waitCommitted("k", 6)
	w.send("k", "7")
	w.waitCommitted("k", 7)
}

// The committed offset lies behind the end of the log, as after an unclean election of a leader: what is there is read
// again from the oldest on, and nothing is waited for that never comes.
func TestCommittedOffsetBehindTheEnd(t *testing.T) {
	b := kafkatest.StartBroker(t, kafkatest.Topic("in", partitions), kafkatest.Topic("out", partitions), kafkatest.Topic("g-table", partitions))
	w := &world{t: t, cfg: b.Config(), dir: t.TempDir()}
	stop := w.run("a", copying(t))
	w.send("k", "1", "2", "3")
	w.waitCommitted("k", 3)
	stop()
	if err := errors.Join(b.Cluster().DeleteTopic("in"), b.Cluster().CreateTopic("in", partitions, nil)); err != nil {
		t.Fatal(err)
	}
	w.send("k", "4")
	w.run("a", copying(t))
	if got := w.waitFor("out", 4); got[3] != "4" {
		t.Errorf("out %v", got)
	}
	w.waitCommitted("k", 1)
}

// A row that a newer release has written holds the messages of its partition, also in a batch; those of others go on, and
// nothing dies.
func TestRowOfANewerRelease(t *testing.T) {
	for name, input := range map[string]engine.Option{
		"one by one": engine.Input(in, func(_ context.Context, m stage.Message[string], row *string) (stage.Result[string], error) {
			return stage.Result[string]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}, Row: &m.Value}, nil
		}),
		"in batches": engine.Batch(in, engine.BatchOptions{MaxMessages: 10, MaxBytes: 1 << 20, Linger: time.Millisecond},
			func(_ context.Context, b stage.Batch[string, string]) stage.BatchResult[string] {
				res := stage.BatchResult[string]{Rows: map[string]*string{}}
				for _, m := range b.Messages {
					if row := b.Row(m.Key); row == nil {
						res.Rows[m.Key] = &m.Value
					}
					res.Outputs = append(res.Outputs, out.Record(m.Key, m.Value))
				}
				return res
			}),
	} {
		t.Run(name, func(t *testing.T) { rowOfANewerRelease(t, input) })
	}
}

func rowOfANewerRelease(t *testing.T, input engine.Option) {
	w := newWorld(t)
	beside := "d"
	if kafka.PartitionOf([]byte("k"), partitions) == kafka.PartitionOf([]byte(beside), partitions) {
		t.Fatal("both keys are on one partition")
	}
	kafkatest.Produce(t, w.cfg, kafka.Record{Topic: "g-table", Key: []byte("k"), Value: []byte("newer")})
	g := group(t, input,
		engine.Table(text{}, func(a, b *string) *string { longest := max(*a, *b); return &longest }),
		engine.OnFailure(func(_ context.Context, f engine.Failure, _ *string) (stage.Result[string], error) {
			return stage.Result[string]{Outputs: []stage.Output{bad.Record(string(f.Record.Key), f.Err.Error())}}, nil
		}))
	r := engine.NewRunner(g, w.env("a"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	w.send("k", "1")
	w.send(beside, "2", "3")
	if got := fmt.Sprint(w.waitFor("out", 2)); got != "[2 3]" {
		t.Errorf("out %s", got)
	}
	kafkatest.Wait(t, "not ready", func() bool { return r.Ready() != nil && strings.Contains(r.Ready().Error(), "newer_format") })
	cancel()
	if err := kafkatest.Receive(t, "end", done); err != nil {
		t.Error(err)
	}
	if got := w.values("bad"); len(got) != 0 || w.committed("k") > 0 {
		t.Errorf("bad %v, committed %d", got, w.committed("k"))
	}
	if rows := w.values("g-table"); !slices.Contains(rows, "newer") {
		t.Errorf("rows %v", rows)
	}
}

// A row that cannot be read counts as none, and is written anew; the messages of other keys do not notice.
func TestRowThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	kafkatest.Produce(t, w.cfg, kafka.Record{Topic: "g-table", Key: []byte("k"), Value: []byte(`{"Last":{"1`)},
		kafka.Record{Topic: "g-table", Key: []byte("k2"), Value: nil}, kafka.Record{Topic: "g-table", Key: nil, Value: []byte("x")})
	w.run("a", copying(t))
	w.send("k", "1")
	w.send("k2", "2")
	w.waitFor("out", 2)
	kafkatest.Wait(t, "a row that can be read", func() bool {
		rows := w.values("g-table")
		return slices.Contains(rows, `{"Last":{"1":1}}`)
	})
}

// impatient is a clock for which a quarter of a minute is short: what looks at the topics now and then looks all the time.
type impatient struct{ engine.Clock }

func (c impatient) After(d time.Duration) <-chan time.Time {
	if d == 15*time.Second {
		d = 20 * time.Millisecond
	}
	return c.Clock.After(d)
}

// Under running groups somebody gives a topic more partitions, or deletes it and makes it anew: keys have other homes, and
// offsets another meaning. The groups end with an error that says so; nothing is worked on in the wrong place.
func TestTopicsThatChangeUnderRunningGroups(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, w *world, c engine.Config)
		is     func(error) bool
	}{
		"partitions added to the input": {
			func(t *testing.T, w *world, _ engine.Config) {
				admin(t, w.cfg, func(a sarama.ClusterAdmin) error { return a.CreatePartitions("in", partitions+1, nil, false) })
			},
			func(err error) bool {
				var topics *engine.TopicsError
				return errors.As(err, &topics) && len(topics.Differences) == 1 && topics.Differences[0].Topic == "in" && topics.Differences[0].Kind == kafka.DifferencePartitions
			},
		},
		"the input made anew": {
			func(t *testing.T, _ *world, c engine.Config) { remake(t, c, "in") },
			func(err error) bool {
				var remade *engine.TopicRemadeError
				return errors.As(err, &remade) && remade.Topic == "in"
			},
		},
		"the table made anew": {
			func(t *testing.T, _ *world, c engine.Config) { remake(t, c, "first-table") },
			func(err error) bool {
				var remade *engine.TopicRemadeError
				return errors.As(err, &remade) && remade.Topic == "first-table"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, config := application(t)
			config.Clock = impatient{engine.SystemClock()}
			s, err := engine.NewSupervisor(config, chain(t)...)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- s.Run(t.Context()) }()
			kafkatest.Wait(t, "readiness", func() bool { return s.Ready() == nil })
			w.send("k", "1")
			w.waitFor("out", 1)
			c.change(t, w, config)
			if err := kafkatest.Receive(t, "the end of the groups", done); !c.is(err) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
