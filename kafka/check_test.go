package kafka_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

// What keeps less than the contract needs is refused, with every difference named; what keeps more is told.
func TestCheckTopicsTellsGraveFromHarmless(t *testing.T) {
	want := map[string]string{
		"cleanup.policy": "delete", "retention.ms": "2000000", "min.insync.replicas": "1", "max.message.bytes": "2000000",
		"delete.retention.ms": "2000000", "segment.ms": "2000000", "min.compaction.lag.ms": "2000000",
	}
	for name, c := range map[string]struct {
		key, have string
		harmless  bool
	}{
		"shorter retention":        {"retention.ms", "1000000", false},
		"longer retention":         {"retention.ms", "3000000", true},
		"endless retention":        {"retention.ms", "-1", true},
		"another policy":           {"cleanup.policy", "compact", false},
		"smaller records":          {"max.message.bytes", "1000000", false},
		"larger records":           {"max.message.bytes", "3000000", true},
		"tombstones that go early": {"delete.retention.ms", "1000000", false},
		"a shorter lag":            {"min.compaction.lag.ms", "0", false},
		"another segment":          {"segment.ms", "1000000", true},
		"more in sync":             {"min.insync.replicas", "2", true},
	} {
		t.Run(name, func(t *testing.T) {
			stands := kafkatest.Topic("t", 2)
			stands.Config = map[string]string{}
			for k, v := range want {
				stands.Config[k] = v
			}
			stands.Config[c.key] = c.have
			cfg := kafkatest.Start(t, stands)
			planned := stands
			planned.Config = want
			harmless, err := kafka.CheckTopics(kafkatest.Context(t), cfg, []kafka.TopicSpec{planned})
			var grave *kafka.TopicsError
			switch {
			case c.harmless && (err != nil || len(harmless) != 1 || harmless[0].Key != c.key):
				t.Errorf("%v, %v; want a harmless difference", harmless, err)
			case !c.harmless && (!errors.As(err, &grave) || len(grave.Differences) != 1 || grave.Differences[0].Key != c.key || grave.Missing()):
				t.Errorf("%v, %v; want a grave difference", harmless, err)
			}
		})
	}
}

func TestCheckTopicsNamesAllThatIsWrong(t *testing.T) {
	cfg := kafkatest.Start(t, kafkatest.Topic("few", 2), kafkatest.Topic("alone", 2))
	few, alone, absent := kafkatest.Topic("few", 4), kafkatest.Topic("alone", 2), kafkatest.Topic("absent", 2)
	alone.Replication = 3
	_, err := kafka.CheckTopics(kafkatest.Context(t), cfg, []kafka.TopicSpec{few, alone, absent})
	var grave *kafka.TopicsError
	if !errors.As(err, &grave) || len(grave.Differences) != 3 || grave.Missing() {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{"few: has 2 partitions, planned 4", "alone: has 1 replication, planned 3", "absent: is missing"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	_, err = kafka.CheckTopics(kafkatest.Context(t), cfg, []kafka.TopicSpec{absent})
	if !errors.As(err, &grave) || !grave.Missing() {
		t.Errorf("only missing: %v", err)
	}
}

// All rights that are missing are named at once, for topics and groups.
func TestCheckAccess(t *testing.T) {
	kafkatest.NoLeaks(t)
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, "mine", "read-only", "theirs"),
		kfake.Superuser(kafka.SASLPlain, "admin", "secret"),
		kfake.User(kafka.SASLPlain, "waymark", "secret",
			kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "mine", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationAll, Allow: true},
			kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "read-only", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationRead, Allow: true},
			kfake.ACL{Resource: kmsg.ACLResourceTypeGroup, Name: "mine", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationRead, Allow: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	login := func(user string) kafka.Config {
		return kafka.Config{Brokers: c.ListenAddrs(), SASL: &kafka.SASL{Mechanism: kafka.SASLPlain, User: user, Password: "secret"}}
	}
	var all []kafka.Access
	for _, topic := range []string{"mine", "read-only", "theirs"} {
		all = append(all, kafka.Access{Operation: kafka.OperationRead, Topic: topic}, kafka.Access{Operation: kafka.OperationWrite, Topic: topic})
	}
	for _, group := range []string{"mine", "theirs"} {
		all = append(all, kafka.Access{Operation: kafka.OperationRead, Group: group})
	}
	if err := kafka.CheckAccess(kafkatest.Context(t), login("admin"), all); err != nil {
		t.Errorf("admin: %v", err)
	}
	err = kafka.CheckAccess(kafkatest.Context(t), login("waymark"), all)
	var access *kafka.AccessError
	if !errors.As(err, &access) {
		t.Fatalf("waymark: %v", err)
	}
	want := "Write on topic read-only, Read on topic theirs, Write on topic theirs, Read on group theirs"
	if !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}
