package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// logClient reads and writes the log as any Kafka client would; it is not the product's own.
func logClient(t testing.TB, broker string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(broker, ",")...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// produce writes records as they are: a nil key or value stays null.
func produce(t testing.TB, broker string, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := logClient(t, broker).ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// readTopic reads n records of a topic from its beginning.
func readTopic(t testing.TB, broker, topic string, n int) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	c := logClient(t, broker, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond))
	var all []*kgo.Record
	for len(all) < n {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("%s: %d of %d records: %v", topic, len(all), n, err)
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

func headerOf(r *kgo.Record, key string) (string, error) {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value), nil
		}
	}
	return "", fmt.Errorf("no header %s", key)
}
