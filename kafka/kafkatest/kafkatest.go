// Package kafkatest gives tests a Kafka broker of their own and a few things to do with it. Nothing in it sleeps: every
// wait polls what it waits for and fails the test at a deadline.
package kafkatest

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/embedded"
)

// Timeout is how long a wait may take before the test fails. It is long, because a busy machine is no failure.
const Timeout = 30 * time.Second

// pollInterval is the pause between two looks of Wait.
const pollInterval = 5 * time.Millisecond

// Start runs a broker with the given topics until the test ends.
func Start(t testing.TB, topics ...kafka.TopicSpec) kafka.Config {
	t.Helper()
	return StartBroker(t, topics...).Config()
}

// StartBroker is Start for tests that need the broker's faults too.
func StartBroker(t testing.TB, topics ...kafka.TopicSpec) *embedded.Broker {
	t.Helper()
	dir, err := os.MkdirTemp("", "kafkatest-")
	if err != nil {
		t.Fatal(err)
	}
	// The broker may write a last time after a test that has hung or broken it has closed it: the folder goes in the end.
	t.Cleanup(func() { removeAll(t, dir) })
	return StartIn(t, dir, topics...)
}

// removeAll removes a folder that somebody may still be writing to.
func removeAll(t testing.TB, dir string) {
	t.Helper()
	var err error
	for range 100 {
		if err = os.RemoveAll(dir); err == nil {
			return
		}
		<-time.After(pollInterval)
	}
	t.Errorf("remove the broker's folder: %v", err)
}

// StartIn is StartBroker in a folder of the test's own; it may be stopped with Stop and started again there.
func StartIn(t testing.TB, dir string, topics ...kafka.TopicSpec) *embedded.Broker {
	t.Helper()
	b, err := embedded.Start(Context(t), embedded.Options{Dir: dir, Plan: topics})
	if err != nil {
		t.Fatalf("start broker: %v", err)
	}
	t.Cleanup(func() { Stop(t, b) })
	return b
}

// Stop closes a broker now; closing it again does nothing.
func Stop(t testing.TB, b *embedded.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Errorf("stop broker: %v", err)
	}
}

// Context ends with the test, and after Timeout.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	t.Cleanup(cancel)
	return ctx
}

// Topic is a topic with partitions and the broker's default settings.
func Topic(name string, partitions int32) kafka.TopicSpec {
	return kafka.TopicSpec{Name: name, Partitions: partitions, Replication: 1}
}

// Plan is the pipeline's plan for the embedded broker.
func Plan(t testing.TB, prefix string, partitions int32) []kafka.TopicSpec {
	t.Helper()
	plan, err := kafka.Plan(kafka.PlanOptions{Prefix: prefix, Partitions: partitions, Replication: 1, Embedded: true})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// Produce writes records in order, each to the home partition of its key, and returns them with their positions.
func Produce(t testing.TB, cfg kafka.Config, records ...kafka.Record) []kafka.Record {
	t.Helper()
	limits := make(map[string]int)
	for _, r := range records {
		limits[r.Topic] = kafka.MaxDocumentBytes
	}
	p, err := kafka.NewProducer(cfg, kafka.ProducerOptions{Limits: limits})
	if err != nil {
		t.Fatalf("produce: %v", err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Errorf("produce: %v", err)
		}
	}()
	ctx := Context(t)
	out := make([]kafka.Record, len(records))
	acks := make(chan error, len(records))
	for i, r := range records {
		out[i] = r
		if err := p.Send(ctx, r, func(partition int32, offset int64, err error) {
			out[i].Partition, out[i].Offset = partition, offset
			acks <- err
		}); err != nil {
			t.Fatalf("produce record %d: %v", i, err)
		}
	}
	for range records {
		if err := <-acks; err != nil {
			t.Fatalf("produce: %v", err)
		}
	}
	return out
}

// ReadAll returns every record of a topic, partition after partition, as a consumer with read_committed sees it.
func ReadAll(t testing.TB, cfg kafka.Config, topic string) []kafka.Record {
	t.Helper()
	r, err := kafka.NewReader(cfg)
	if err != nil {
		t.Fatalf("read %s: %v", topic, err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Errorf("read %s: %v", topic, err)
		}
	}()
	ctx := Context(t)
	n, err := r.Partitions(ctx, topic)
	if err != nil {
		t.Fatalf("read %s: %v", topic, err)
	}
	var out []kafka.Record
	for p := range n {
		if err := r.Each(ctx, topic, p, func(rec kafka.Record) error {
			out = append(out, rec)
			return nil
		}); err != nil {
			t.Fatalf("read %s: %v", topic, err)
		}
	}
	return out
}

// Committed is the offset that a group has committed for a partition; -1 if none.
func Committed(t testing.TB, cfg kafka.Config, group, topic string, partition int32) int64 {
	t.Helper()
	conf, err := cfg.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sarama.NewClusterAdmin(cfg.Brokers, conf)
	if err != nil {
		t.Fatalf("committed offset: %v", err)
	}
	defer func() {
		if err := admin.Close(); err != nil {
			t.Errorf("committed offset: %v", err)
		}
	}()
	offsets, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {partition}})
	if errors.Is(err, sarama.ErrGroupIDNotFound) {
		return -1
	}
	if err != nil {
		t.Fatalf("committed offset: %v", err)
	}
	block := offsets.GetBlock(topic, partition)
	if block == nil {
		return -1
	}
	return block.Offset
}

// Wait polls until done reports true, and fails the test after Timeout. what completes "timeout waiting for …".
func Wait(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(Timeout)
	defer deadline.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}

// Receive returns the next value of a channel, and fails the test after Timeout.
func Receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	deadline := time.NewTimer(Timeout)
	defer deadline.Stop()
	select {
	case v := <-c:
		return v
	case <-deadline.C:
		t.Fatalf("timeout waiting for %s", what)
		panic("unreachable")
	}
}

// CountOffsetRequests tells how many requests for offsets of partitions (ListOffsets) a broker has had since.
func CountOffsetRequests(b *embedded.Broker) func() int64 {
	var n atomic.Int64
	b.Cluster().ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		n.Add(1)
		return nil, nil, false // the broker answers it
	})
	return n.Load
}
