package kafkalocal

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/kafka"
)

// A real broker tells what a user may do, and all that is missing is named at once; nothing is read or written for it.
func TestRightsOnARealBroker(t *testing.T) {
	r := release(t)
	s := newSigner(t)
	c := securedBroker(t, r, s.keys(t))
	ctx := within(t, time.Minute)
	admin := kafka.Config{Brokers: c.Addrs(Plaintext)}
	var plan []kafka.TopicSpec
	for _, name := range []string{"mine", "read-only", "theirs"} {
		plan = append(plan, kafka.TopicSpec{Name: name, Partitions: 1, Replication: 1, Config: map[string]string{"cleanup.policy": "delete"}})
	}
	if _, err := kafka.Apply(ctx, admin, plan); err != nil {
		t.Fatal(err)
	}
	allow(t, c, "waymark", "--operation", "All", "--topic", "mine")
	allow(t, c, "waymark", "--operation", "Read", "--topic", "read-only", "--group", "mine")
	user := kafka.Config{Brokers: c.Addrs(SASL), SASL: &kafka.SASL{Mechanism: kafka.SASLPlain, User: "waymark", Password: "waymark-secret"}}
	var all []kafka.Access
	for _, spec := range plan {
		for _, o := range []kafka.Operation{kafka.OperationRead, kafka.OperationWrite, kafka.OperationDescribeConfigs} {
			all = append(all, kafka.Access{Operation: o, Topic: spec.Name})
		}
	}
	all = append(all, kafka.Access{Operation: kafka.OperationRead, Group: "mine"}, kafka.Access{Operation: kafka.OperationRead, Group: "theirs"})
	if err := kafka.CheckAccess(ctx, admin, all); err != nil {
		t.Errorf("who may do everything: %v", err)
	}
	err := kafka.CheckAccess(ctx, user, all)
	var access *kafka.AccessError
	want := "Write on topic read-only, DescribeConfigs on topic read-only, Read on topic theirs, Write on topic theirs, " +
		"DescribeConfigs on topic theirs, Read on group theirs"
	if !errors.As(err, &access) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
	if _, err := kafka.CheckTopics(ctx, user, plan[:2]); !errors.As(err, &access) || !strings.Contains(err.Error(), "DescribeConfigs on topic read-only") {
		t.Errorf("settings that may not be read: %v", err)
	}
	if _, err := kafka.CheckTopics(ctx, user, plan); !errors.As(err, &access) || !strings.Contains(err.Error(), "Describe on topic theirs") {
		t.Errorf("a topic that may not be seen: %v", err)
	}
	weaker := plan[0]
	weaker.Config = map[string]string{kafka.MinInSyncReplicas: "2"}
	weaker.Replication = 3
	var grave *kafka.TopicsError
	if _, err := kafka.CheckTopics(ctx, user, []kafka.TopicSpec{weaker}); !errors.As(err, &grave) || !strings.Contains(err.Error(), "has 1 replication, planned 3") {
		t.Errorf("fewer replicas than planned: %v", err)
	}
}
