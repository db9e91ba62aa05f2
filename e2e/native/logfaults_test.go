package native

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/e2e/checker"
)

// alter sets settings of topics.
func alter(t *testing.T, topics []string, settings map[string]string) {
	t.Helper()
	req := kmsg.NewIncrementalAlterConfigsRequest()
	for _, topic := range topics {
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		for name, value := range settings {
			c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			c.Name, c.Value = name, kmsg.StringPtr(value)
			r.Configs = append(r.Configs, c)
		}
		req.Resources = append(req.Resources, r)
	}
	resp, err := req.RequestWith(t.Context(), kafkaClient(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			t.Fatalf("%s: %v", r.ResourceName, err)
		}
	}
}

// offsetsOf counts the records that were ever written to the topics: the first (-2) or the next (-1) offsets, summed up.
func offsetsOf(t *testing.T, at int64, topics ...string) (sum int64) {
	t.Helper()
	m, err := metadata(kafkaClient(t))
	if err != nil {
		t.Fatal(err)
	}
	req := kmsg.NewListOffsetsRequest()
	req.ReplicaID = -1
	for _, topic := range m.Topics {
		for _, name := range topics {
			if topic.Topic == nil || *topic.Topic != name {
				continue
			}
			rt := kmsg.NewListOffsetsRequestTopic()
			rt.Topic = name
			for _, p := range topic.Partitions {
				rp := kmsg.NewListOffsetsRequestTopicPartition()
				rp.Partition, rp.Timestamp = p.Partition, at
				rt.Partitions = append(rt.Partitions, rp)
			}
			req.Topics = append(req.Topics, rt)
		}
	}
	for _, shard := range kafkaClient(t).RequestSharded(t.Context(), &req) {
		resp, ok := shard.Resp.(*kmsg.ListOffsetsResponse)
		if !ok {
			t.Fatalf("offsets: %v", shard.Err)
		}
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					t.Fatalf("offset of %s: %v", topic.Topic, err)
				}
				sum += p.Offset
			}
		}
	}
	return sum
}

// recordsOf counts the records that stand in the topics.
func recordsOf(t *testing.T, topics ...string) (n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	log, err := checker.ReadLog(ctx, strings.Join(suite.brokers.Addrs(), ","), topics)
	if err != nil {
		t.Fatal(err)
	}
	for _, records := range log {
		n += int64(len(records))
	}
	return n
}

// Row 13: the tables are compacted down to their last records, and what was passed on is deleted, while processes that have
// lost their local state read the tables again, under load. They come to the same rows as before.
func TestCompactedWhileItRecovers(t *testing.T) {
	needNative(t)
	needKillable(t, 3)
	p := newPods(t, "compacted")
	gateway := p.run("api", "api")
	worker := p.run("worker", workers...)
	p.waitReady()
	first := p.startLoad(20, 10*time.Millisecond)
	first.await(150)
	m := first.end()
	p.check(m)

	var tables []string
	for _, role := range workers {
		tables = append(tables, "compacted-"+role+"-table")
	}
	passed := []string{"compacted.chunks", "compacted.vectors"}
	alter(t, tables, map[string]string{"segment.ms": "500", "min.cleanable.dirty.ratio": "0.01"})
	alter(t, passed, map[string]string{"segment.ms": "500"})
	const day = 24 * time.Hour
	keep := func(lag, retention time.Duration) {
		alter(t, tables, map[string]string{"min.compaction.lag.ms": fmt.Sprint(lag.Milliseconds())})
		alter(t, passed, map[string]string{"retention.ms": fmt.Sprint(retention.Milliseconds())})
	}

	second := p.startLoadOn(m, 20, 20*time.Millisecond, "later")
	rounds := 2
	if all() {
		rounds = 6
	}
	for range rounds {
		worker.signal(syscall.SIGKILL)
		gateway.signal(syscall.SIGKILL)
		keep(day, 30*day) // as planned: they would not start otherwise
		for _, pod := range []*process{worker, gateway} {
			if err := os.RemoveAll(filepath.Join(p.dir, pod.name)); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(pod.log, 0); err != nil {
				t.Fatal(err)
			}
			if err := pod.launch(); err != nil {
				t.Fatal(err)
			}
		}
		for _, pod := range []*process{worker, gateway} {
			pod.awaitOutput(t, "Ready: ") // the topics are checked; the tables are being read
		}
		keep(0, time.Second)
		p.waitReady()
		second.await(30)
		eventually(t, "the tables to be compacted, and what was passed on to be deleted", func() error {
			written, kept := offsetsOf(t, -1, tables...), recordsOf(t, tables...)
			deleted := offsetsOf(t, -2, passed...)
			if kept >= written*9/10 || deleted == 0 {
				return fmt.Errorf("%d of %d rows stand in the tables, %d chunks and vectors are deleted", kept, written, deleted)
			}
			return nil
		})
		t.Logf("%d of %d rows stand in the tables, %d of %d chunks and vectors are deleted", recordsOf(t, tables...), offsetsOf(t, -1, tables...),
			offsetsOf(t, -2, passed...), offsetsOf(t, -1, passed...))
	}
	p.check(second.end())
}
