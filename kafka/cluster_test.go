package kafka_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

func TestCheckCluster(t *testing.T) {
	kafkatest.NoLeaks(t)
	b := kafkatest.StartBroker(t, kafkatest.Plan(t, "w", 2)...)
	cfg, topics, ctx := b.Config(), kafka.NewTopics("w"), kafkatest.Context(t)
	for range 2 {
		if err := kafka.CheckCluster(ctx, cfg, topics, 3); err != nil {
			t.Fatal(err)
		}
	}
	records := kafkatest.ReadAll(t, cfg, topics.Cluster)
	if len(records) != 1 {
		t.Fatalf("%d records, want the one of the first call", len(records))
	}
	var rec kafka.ClusterRecord
	if err := json.Unmarshal(records[0].Value, &rec); err != nil {
		t.Fatal(err)
	}
	if d := rec.Topics[topics.Documents]; rec.Epoch != 3 || d.Partitions != 2 || d.ID == "" {
		t.Fatalf("record %s", records[0].Value)
	}

	var epoch *kafka.EpochError
	if err := kafka.CheckCluster(ctx, cfg, topics, 2); !errors.As(err, &epoch) || epoch.Stored != 3 || !strings.Contains(err.Error(), "set kafka.epoch to 3") {
		t.Fatalf("lower epoch: %v", err)
	}
	// The operator raises it.
	for range 2 {
		if err := kafka.CheckCluster(ctx, cfg, topics, 4); err != nil {
			t.Fatal(err)
		}
	}
	if err := kafka.CheckCluster(ctx, cfg, topics, 3); !errors.As(err, &epoch) {
		t.Fatalf("epoch went back: %v", err)
	}
}

func TestCheckClusterNoticesTopicsThatAreNew(t *testing.T) {
	topics := kafka.NewTopics("w")
	for _, topic := range []string{topics.Documents, topics.Progress, topics.Commands} {
		b := kafkatest.StartBroker(t, kafkatest.Plan(t, "w", 2)...)
		cfg, ctx := b.Config(), kafkatest.Context(t)
		if err := kafka.CheckCluster(ctx, cfg, topics, 0); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.Cluster().DeleteTopic(topic), b.Cluster().CreateTopic(topic, 2, nil)); err != nil {
			t.Fatal(err)
		}
		err := kafka.CheckCluster(ctx, cfg, topics, 0)
		var epoch *kafka.EpochError
		if !errors.As(err, &epoch) || len(epoch.Changed) != 1 || !strings.Contains(err.Error(), topic) || !strings.Contains(err.Error(), "set kafka.epoch to 1") {
			t.Fatalf("%s made anew: %v", topic, err)
		}
		if err := kafka.CheckCluster(ctx, cfg, topics, 1); err != nil {
			t.Fatalf("with a higher epoch: %v", err)
		}
	}
}

// Nobody keeps offsets of replays.
func TestCheckClusterAcceptsNewReplays(t *testing.T) {
	topics := kafka.NewTopics("w")
	b := kafkatest.StartBroker(t, kafkatest.Plan(t, "w", 2)...)
	cfg, ctx := b.Config(), kafkatest.Context(t)
	if err := kafka.CheckCluster(ctx, cfg, topics, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Cluster().DeleteTopic(topics.Replays), b.Cluster().CreateTopic(topics.Replays, 2, nil)); err != nil {
		t.Fatal(err)
	}
	if err := kafka.CheckCluster(ctx, cfg, topics, 0); err != nil {
		t.Fatal(err)
	}
}

func TestCheckClusterNoticesPartitions(t *testing.T) {
	plan, topics := kafkatest.Plan(t, "w", 2), kafka.NewTopics("w")
	b := kafkatest.StartBroker(t, plan...)
	cfg, ctx := b.Config(), kafkatest.Context(t)
	if err := kafka.CheckCluster(ctx, cfg, topics, 0); err != nil {
		t.Fatal(err)
	}
	addPartitions(t, cfg, topics.Documents, 3)
	err := kafka.CheckCluster(ctx, cfg, topics, 0)
	var epoch *kafka.EpochError
	if !errors.As(err, &epoch) || !epoch.Repartitioned || !strings.Contains(err.Error(), "had 2 partitions and has 3") {
		t.Fatalf("error %v", err)
	}
	// Rows stand in the partition of their key: a higher epoch would not find them.
	if strings.Contains(err.Error(), "set kafka.epoch") || !strings.Contains(err.Error(), "kafka.topic_prefix") {
		t.Fatalf("the advice does not help: %v", err)
	}
}

func TestCheckClusterNeedsTheTopics(t *testing.T) {
	cfg := kafkatest.Start(t)
	err := kafka.CheckCluster(kafkatest.Context(t), cfg, kafka.NewTopics("w"), 0)
	if !errors.Is(err, kafka.ErrNoClusterTopic) || !strings.Contains(err.Error(), "w.") {
		t.Fatalf("error %v", err)
	}
}

func TestTopicIDs(t *testing.T) {
	b := kafkatest.StartBroker(t, kafkatest.Topic("a", 1), kafkatest.Topic("b", 1))
	ids, err := kafka.TopicIDs(kafkatest.Context(t), b.Config(), "a", "b", "missing")
	if err != nil || len(ids) != 2 || ids["a"] == "" || ids["a"] == ids["b"] {
		t.Fatalf("ids %v, %v", ids, err)
	}
}
