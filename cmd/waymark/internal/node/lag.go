package node

import (
	"context"
	"errors"
	"fmt"
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
	conf, err := cfg.Sarama()
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

// Lag is, per stage, the number of records behind the committed offsets.
func (l *lagReader) Lag(context.Context) (map[string]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int64{}
	for stage, in := range l.inputs() {
		n, err := l.group(in.group, in.topics)
		if err != nil {
			return nil, fmt.Errorf("lag of %s: %w", in.group, err)
		}
		out[stage] = n
	}
	return out, nil
}

func (l *lagReader) group(group string, topics []string) (int64, error) {
	asked := map[string][]int32{}
	for _, t := range topics {
		partitions, err := l.client.Partitions(t)
		if err != nil {
			return 0, err
		}
		asked[t] = partitions
	}
	offsets, err := l.admin.ListConsumerGroupOffsets(group, asked)
	if errors.Is(err, sarama.ErrGroupIDNotFound) { // nobody has read anything yet, or the offsets are lost
		offsets, err = &sarama.OffsetFetchResponse{}, nil
	}
	if err != nil {
		return 0, err
	}
	var sum int64
	for t, partitions := range asked {
		for _, p := range partitions {
			end, err := l.client.GetOffset(t, p, sarama.OffsetNewest)
			if err != nil {
				return 0, err
			}
			done := int64(-1)
			if b := offsets.GetBlock(t, p); b != nil {
				done = b.Offset
			}
			if done < 0 {
				if done, err = l.client.GetOffset(t, p, sarama.OffsetOldest); err != nil {
					return 0, err
				}
			}
			sum += max(0, end-done)
		}
	}
	return sum, nil
}
