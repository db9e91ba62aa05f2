package main

import (
	"testing"

	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

// The topics of `waymark broker` are as they should be: it compacts by its own clock, so what is compacted elsewhere must
// not be there (contract rule 13).
func TestTopicsOfTheEmbeddedBroker(t *testing.T) {
	broker := kafkatest.StartBroker(t, kafkatest.Plan(t, "waymark", 2)...)
	cfg := &config.Config{Kafka: config.Kafka{Brokers: broker.Addrs(), TopicPrefix: "waymark", Partitions: 2, Replication: 1}}
	differences, err := nodeRuntime{}.PlanTopics(kafkatest.Context(t), cfg)
	if err != nil || len(differences) > 0 {
		t.Errorf("the plan differs: %v, %v", differences, err)
	}
	if applied, err := (nodeRuntime{}).ApplyTopics(kafkatest.Context(t), cfg); err != nil || len(applied) > 0 {
		t.Errorf("applied %v, %v", applied, err)
	}
}
