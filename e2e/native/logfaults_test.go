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

// Row 13: what was passed on is deleted, and the tables are compacted down to their last records while processes that have
// lost their local state read them again, under load. They come to the same rows as before.
func TestCompactedWhileItRecovers(t *testing.T) {
	needNative(t)
	needKillable(t, 3)
	p := newPods(t, "compacted")
	pods := []*process{p.run("api", "api"), p.run("worker", workers...)}
	p.waitReady()
	l := p.startLoad(20, 10*time.Millisecond)
	l.await(150)
	m := l.end()
	p.check(m)

	var tables []string
	for _, role := range workers {
		tables = append(tables, "compacted-"+role+"-table")
	}
	passed := []string{"compacted.chunks", "compacted.vectors"}
	const day = 24 * time.Hour
	retain := func(d time.Duration) {
		alter(t, passed, map[string]string{"retention.ms": fmt.Sprint(d.Milliseconds())})
	}
	lag := func(d time.Duration) {
		alter(t, tables, map[string]string{"min.compaction.lag.ms": fmt.Sprint(d.Milliseconds())})
	}
	alter(t, tables, map[string]string{"segment.ms": "500", "min.cleanable.dirty.ratio": "0.01"})
	rounds := 2
	if all() {
		rounds = 6
	}
	for round := range rounds {
		retain(time.Second) // everything was read: only then may retention come to it
		eventually(t, "what was passed on to be deleted", func() error {
			if first, next := offsetsOf(t, -2, passed...), offsetsOf(t, -1, passed...); first < next {
				return fmt.Errorf("%d of %d chunks and vectors are", first, next)
			}
			return nil
		})
		retain(30 * day) // as planned: the processes would not start otherwise
		lag(day)
		l := p.startLoadOn(m, 20, 20*time.Millisecond, fmt.Sprint("round-", round))
		l.await(20)
		for _, pod := range pods {
			pod.signal(syscall.SIGKILL)
		}
		for _, pod := range pods {
			p.loseState(pod)
		}
		for _, pod := range pods {
			pod.awaitOutput(t, "Ready: ") // the topics were checked; the tables are being read
		}
		lag(0)
		p.waitReady()
		l.await(30)
		var written, kept int64
		eventually(t, "the tables to be compacted", func() error {
			if written, kept = offsetsOf(t, -1, tables...), recordsOf(t, tables...); kept >= written*9/10 {
				return fmt.Errorf("%d of %d rows stand in them", kept, written)
			}
			return nil
		})
		t.Logf("%d of %d rows stand in the tables; %d chunks and vectors were deleted", kept, written, offsetsOf(t, -2, passed...))
		p.check(l.end())
	}
}

// loseState starts a process that has ended without its data folder.
func (p *pods) loseState(pod *process) {
	p.t.Helper()
	if err := os.RemoveAll(filepath.Join(p.dir, pod.name)); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Truncate(pod.log, 0); err != nil {
		p.t.Fatal(err)
	}
	if err := pod.launch(); err != nil {
		p.t.Fatal(err)
	}
}
