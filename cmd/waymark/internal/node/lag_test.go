package node

import (
	"maps"
	"testing"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/pipeline"
)

// Counts are looked at by whoever waits for something: what is asked of the brokers does not grow with the partitions.
func TestLagAsksEachBrokerOnce(t *testing.T) {
	b := kafkatest.StartBroker(t, kafkatest.Plan(t, "waymark", 12)...)
	cfg, names := b.Config(), kafka.NewTopics("waymark")
	produce := func(topic string, n int) {
		for i := range n {
			kafkatest.Produce(t, cfg, kafka.Record{Topic: topic, Key: []byte{byte(i)}, Value: []byte("x")})
		}
	}
	produce(names.Documents, 7)
	lag, err := newLagReader(cfg, names)
	if err != nil {
		t.Fatal(err)
	}
	defer lag.Close(t.Context())
	commitAll(t, lag, names.Groups.Chunker, names.Documents)
	produce(names.Documents, 2)
	produce(names.Events, 1)
	asked := kafkatest.CountOffsetRequests(b)
	got, err := lag.Lag(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{pipeline.RoleChunker: 2, pipeline.RoleEmbedder: 0, pipeline.RoleIndexer: 0, pipeline.RoleTracker: 1, pipeline.RoleDeadLetters: 0}
	if !maps.Equal(got, want) {
		t.Errorf("lag %v, not %v", got, want)
	}
	// The ends, and the oldest offsets of what no group has ever committed.
	if n := asked(); n != 2 {
		t.Errorf("%d requests for offsets", n)
	}
}
