package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/pipeline"
)

// lagReader asks the cluster how far behind each stage is: it works in any process, whoever runs the stages.
type lagReader struct {
	client sarama.Client
	admin  sarama.ClusterAdmin
	topics kafka.Topics
	mu     sync.Mutex // the admin client's look-ups are not worth doing twice at once
}

func newLagReader(cfg kafka.Config, topics kafka.Topics) (*lagReader, error) {
	// A broker that hangs is asked twice at most: the look for another leader comes after that (offsets).
	conf, err := cfg.Sarama(func(s *sarama.Config) { s.Admin.Retry.Max = 1 })
	if err != nil {
		return nil, err
	}
	client, err := sarama.NewClient(cfg.Brokers, conf)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return &lagReader{client: client, admin: admin, topics: topics}, nil
}

// Close ends the connections.
func (l *lagReader) Close(context.Context) error { return l.admin.Close() }

// inputs are the topics of each stage.
func (l *lagReader) inputs() map[string]struct {
	group  string
	topics []string
} {
	t := l.topics
	return map[string]struct {
		group  string
		topics []string
	}{
		pipeline.RoleChunker:     {t.Groups.Chunker, []string{t.Documents, t.Replays}},
		pipeline.RoleEmbedder:    {t.Groups.Embedder, []string{t.Chunks}},
		pipeline.RoleIndexer:     {t.Groups.Indexer, []string{t.Vectors, t.Progress}},
		pipeline.RoleTracker:     {t.Groups.Tracker, []string{t.Events}},
		pipeline.RoleDeadLetters: {t.Groups.DeadLetters, []string{t.DeadLetters, t.Commands}},
	}
}

// Lag is, per stage, the number of records behind the committed offsets. What was committed is asked before the ends: where all
// are 0, every record that any stage had written by then was done.
func (l *lagReader) Lag(context.Context) (map[string]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	done := map[string]map[int32]int64{} // by topic and partition; where nothing is committed, the oldest offset
	all, fresh := map[string][]int32{}, map[string][]int32{}
	for _, in := range l.inputs() {
		of, err := l.partitions(in.topics...)
		if err != nil {
			return nil, fmt.Errorf("lag of %s: %w", in.group, err)
		}
		committed, err := l.committed(in.group, of)
		if err != nil {
			return nil, fmt.Errorf("lag of %s: %w", in.group, err)
		}
		maps.Copy(all, of)
		for t, partitions := range of {
			done[t] = map[int32]int64{}
			for _, p := range partitions {
				if b := committed.GetBlock(t, p); b != nil && b.Offset >= 0 {
					done[t][p] = b.Offset
				} else {
					fresh[t] = append(fresh[t], p)
				}
			}
		}
	}
	oldest, err := l.offsets(fresh, sarama.OffsetOldest)
	if err != nil {
		return nil, fmt.Errorf("lag: %w", err)
	}
	for t, of := range oldest {
		maps.Copy(done[t], of)
	}
	ends, err := l.offsets(all, sarama.OffsetNewest)
	if err != nil {
		return nil, fmt.Errorf("lag: %w", err)
	}
	out := map[string]int64{}
	for stage, in := range l.inputs() {
		out[stage] = 0
		for _, t := range in.topics {
			for p, end := range ends[t] {
				out[stage] += max(0, end-done[t][p])
			}
		}
	}
	return out, nil
}

func (l *lagReader) partitions(topics ...string) (map[string][]int32, error) {
	out := map[string][]int32{}
	for _, t := range topics {
		partitions, err := l.client.Partitions(t)
		if err != nil {
			return nil, err
		}
		out[t] = partitions
	}
	return out, nil
}

// committed are the offsets of a group; it has none where nobody has read anything yet, or they are lost.
func (l *lagReader) committed(group string, of map[string][]int32) (*sarama.OffsetFetchResponse, error) {
	offsets, err := l.admin.ListConsumerGroupOffsets(group, of)
	if errors.Is(err, sarama.ErrGroupIDNotFound) {
		return &sarama.OffsetFetchResponse{}, nil
	}
	return offsets, err
}

// offsets are those of a time (sarama.OffsetNewest, say), asked with one request to each broker: one for each partition, as
// the client's own look-up sends, would make a status that is polled a load of its own.
func (l *lagReader) offsets(of map[string][]int32, at int64) (map[string]map[int32]int64, error) {
	query, topics := map[string]map[int32]int64{}, slices.Collect(maps.Keys(of))
	for t, partitions := range of {
		query[t] = map[int32]int64{}
		for _, p := range partitions {
			query[t][p] = at
		}
	}
	if len(query) == 0 {
		return nil, nil
	}
	out, err := l.listOffsets(query)
	if err == nil {
		return out, nil
	}
	// A leader that has changed is known after this.
	if err := l.client.RefreshMetadata(topics...); err != nil {
		return nil, err
	}
	return l.listOffsets(query)
}

func (l *lagReader) listOffsets(query map[string]map[int32]int64) (map[string]map[int32]int64, error) {
	answer, err := l.admin.ListOffsets(query, nil)
	if err != nil {
		return nil, err
	}
	out := map[string]map[int32]int64{}
	for t, partitions := range query {
		out[t] = map[int32]int64{}
		for p := range partitions {
			r := answer[t][p]
			if r == nil {
				return nil, fmt.Errorf("no offset of %s/%d", t, p)
			}
			if r.Err != nil && !errors.Is(r.Err, sarama.ErrNoError) { // sarama puts the code for none in its place
				return nil, fmt.Errorf("offset of %s/%d: %w", t, p, r.Err)
			}
			out[t][p] = r.Offset
		}
	}
	return out, nil
}
