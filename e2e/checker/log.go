package checker

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Log is the records of some topics, each topic's by partition and offset.
type Log map[string][]*kgo.Record

// ReadLog reads topics from their beginning to the end that they had when it began; broker is host:port, or several with
// commas between them. opts are further options of the client.
func ReadLog(ctx context.Context, broker string, topics []string, opts ...kgo.Opt) (Log, error) {
	asking, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(broker, ",")...))...)
	if err != nil {
		return nil, err
	}
	defer asking.Close()
	starts, err := offsets(ctx, asking, topics, -2)
	if err != nil {
		return nil, err
	}
	ends, err := offsets(ctx, asking, topics, -1)
	if err != nil {
		return nil, err
	}
	from := map[string]map[int32]kgo.Offset{}
	missing := 0
	for topic, partitions := range ends {
		for p, end := range partitions {
			if end > starts[topic][p] {
				if from[topic] == nil {
					from[topic] = map[int32]kgo.Offset{}
				}
				from[topic][p] = kgo.NewOffset().AtStart()
				missing++
			}
		}
	}
	log := Log{}
	if missing == 0 {
		return log, nil
	}
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(broker, ",")...), kgo.ConsumePartitions(from), kgo.FetchMaxWait(200*time.Millisecond))...)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for missing > 0 {
		fetches := c.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading the log: %d partitions not at their end: %w", missing, ctx.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end := ends[r.Topic][r.Partition]
			if r.Offset >= end {
				return
			}
			log[r.Topic] = append(log[r.Topic], r)
			if r.Offset == end-1 {
				missing--
			}
		})
	}
	for _, records := range log {
		sort.Slice(records, func(i, j int) bool {
			if records[i].Partition != records[j].Partition {
				return records[i].Partition < records[j].Partition
			}
			return records[i].Offset < records[j].Offset
		})
	}
	return log, nil
}

// Partitions counts the partitions of a topic.
func Partitions(ctx context.Context, broker, topic string) (int, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(broker, ",")...))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	of, err := partitions(ctx, c, []string{topic})
	return len(of[topic]), err
}

func partitions(ctx context.Context, c *kgo.Client, topics []string) (map[string][]int32, error) {
	req := kmsg.NewMetadataRequest()
	for _, t := range topics {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr(t)
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("asking for topics: %w", err)
	}
	out := map[string][]int32{}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return nil, fmt.Errorf("topic %s: %w", *t.Topic, err)
		}
		for _, p := range t.Partitions {
			out[*t.Topic] = append(out[*t.Topic], p.Partition)
		}
	}
	return out, nil
}

// offsets lists the first (-2) or the next (-1) offset of every partition.
func offsets(ctx context.Context, c *kgo.Client, topics []string, at int64) (map[string]map[int32]int64, error) {
	of, err := partitions(ctx, c, topics)
	if err != nil {
		return nil, err
	}
	req := kmsg.NewListOffsetsRequest()
	req.ReplicaID = -1
	for t, ps := range of {
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = t
		for _, p := range ps {
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition, rp.Timestamp = p, at
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	out := map[string]map[int32]int64{}
	for _, shard := range c.RequestSharded(ctx, &req) {
		if shard.Err != nil {
			return nil, fmt.Errorf("asking for offsets: %w", shard.Err)
		}
		resp, ok := shard.Resp.(*kmsg.ListOffsetsResponse)
		if !ok {
			return nil, fmt.Errorf("asking for offsets: a %T", shard.Resp)
		}
		for _, t := range resp.Topics {
			if out[t.Topic] == nil {
				out[t.Topic] = map[int32]int64{}
			}
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return nil, fmt.Errorf("offset of %s/%d: %w", t.Topic, p.Partition, err)
				}
				out[t.Topic][p.Partition] = p.Offset
			}
		}
	}
	return out, nil
}

// header is the value of the first header of that name.
func header(r *kgo.Record, name string) (string, bool) {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value), true
		}
	}
	return "", false
}
