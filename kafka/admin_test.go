package kafka_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

func TestApplyMakesWhatDiffFinds(t *testing.T) {
	kafkatest.NoLeaks(t)
	cfg := kafkatest.Start(t)
	plan := kafkatest.Plan(t, "w", 3)
	ctx := kafkatest.Context(t)

	before, err := kafka.Diff(ctx, cfg, plan)
	if err != nil {
		t.Fatal(err)
	}
	if len(before) != len(plan) {
		t.Fatalf("%d differences, want one for each of %d topics", len(before), len(plan))
	}
	for _, d := range before {
		if d.Kind != kafka.DifferenceMissing || !d.Fixable {
			t.Errorf("difference %+v", d)
		}
	}
	applied, err := kafka.Apply(ctx, cfg, plan)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(applied, before) {
		t.Errorf("applied %v, want %v", applied, before)
	}
	for range 2 {
		if left, err := kafka.Diff(ctx, cfg, plan); err != nil || len(left) != 0 {
			t.Fatalf("after apply: %v, %v", left, err)
		}
		if applied, err = kafka.Apply(ctx, cfg, plan); err != nil || len(applied) != 0 {
			t.Fatalf("second apply changed %v, %v", applied, err)
		}
	}
}

func TestApplyAltersSettings(t *testing.T) {
	cfg := kafkatest.Start(t, kafkatest.Topic("t", 2))
	ctx := kafkatest.Context(t)
	spec := kafkatest.Topic("t", 2)
	spec.Config = map[string]string{"retention.ms": "1234", "cleanup.policy": "delete"}
	want := []kafka.Difference{{Topic: "t", Kind: kafka.DifferenceConfig, Key: "retention.ms", Have: "604800000", Want: "1234", Fixable: true}}
	applied, err := kafka.Apply(ctx, cfg, []kafka.TopicSpec{spec})
	if err != nil || !slices.Equal(applied, want) {
		t.Fatalf("applied %+v, %v, want %+v", applied, err, want)
	}
	if left, err := kafka.Diff(ctx, cfg, []kafka.TopicSpec{spec}); err != nil || len(left) != 0 {
		t.Fatalf("after apply: %v, %v", left, err)
	}
}

// More partitions would move keys away from their rows, fewer are impossible: an operator has to decide.
func TestApplyNeverTouchesPartitionsAndReplicas(t *testing.T) {
	for _, partitions := range []int32{1, 4} {
		cfg := kafkatest.Start(t, kafkatest.Topic("t", 2))
		ctx := kafkatest.Context(t)
		spec := kafkatest.Topic("t", partitions)
		spec.Replication = 3
		plan := []kafka.TopicSpec{spec, kafkatest.Topic("new", 1)}
		applied, err := kafka.Apply(ctx, cfg, plan)
		var unfixable *kafka.UnfixableError
		if !errors.As(err, &unfixable) || len(unfixable.Differences) != 2 {
			t.Fatalf("error %v", err)
		}
		for _, word := range []string{"t: has 2 partitions", "t: has 1 replication"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("error %q does not say %q", err, word)
			}
		}
		if len(applied) != 1 || applied[0].Topic != "new" {
			t.Errorf("applied %v, want the topic that could be made", applied)
		}
	}
}

// A topic of one replica that wants two in sync takes no record any more.
func TestApplyAsksForNoMoreReplicasInSyncThanThereAre(t *testing.T) {
	cfg := kafkatest.Start(t, kafkatest.Topic("t", 1))
	spec := kafkatest.Topic("t", 1)
	spec.Replication = 3
	spec.Config = map[string]string{"min.insync.replicas": "2", "retention.ms": "-1"}
	applied, err := kafka.Apply(kafkatest.Context(t), cfg, []kafka.TopicSpec{spec})
	var unfixable *kafka.UnfixableError
	if !errors.As(err, &unfixable) || len(unfixable.Differences) != 1 {
		t.Fatalf("error %v", err)
	}
	if len(applied) != 1 || applied[0].Key != "retention.ms" {
		t.Errorf("applied %v", applied)
	}
	if spec.Config["min.insync.replicas"] != "2" {
		t.Error("the plan itself was changed")
	}
}

func TestApplyAtTheSameTime(t *testing.T) {
	cfg := kafkatest.Start(t)
	plan := kafkatest.Plan(t, "w", 2)
	ctx := kafkatest.Context(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := kafka.Apply(ctx, cfg, plan); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if left, err := kafka.Diff(ctx, cfg, plan); err != nil || len(left) != 0 {
		t.Fatalf("after apply: %v, %v", left, err)
	}
}

// The broker says that a topic exists when another process was faster.
func TestApplyAcceptsThatATopicExistsAlready(t *testing.T) {
	b := kafkatest.StartBroker(t)
	asked := make(chan struct{}, 1)
	b.Cluster().ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		answer := kmsg.NewCreateTopicsResponseTopic()
		answer.Topic, answer.ErrorCode = req.(*kmsg.CreateTopicsRequest).Topics[0].Topic, kerr.TopicAlreadyExists.Code
		resp.Topics = append(resp.Topics, answer)
		asked <- struct{}{}
		return resp, nil, true
	})
	done := make(chan error, 1)
	go func() {
		_, err := kafka.Apply(kafkatest.Context(t), b.Config(), []kafka.TopicSpec{kafkatest.Topic("t", 1)})
		done <- err
	}()
	kafkatest.Receive(t, "the request", asked)
	if err := b.Cluster().CreateTopic("t", 1, nil); err != nil { // the other process
		t.Fatal(err)
	}
	if err := kafkatest.Receive(t, "apply", done); err != nil {
		t.Fatal(err)
	}
}

func TestAdminFailsClearlyWithoutBroker(t *testing.T) {
	kafkatest.NoLeaks(t)
	_, err := kafka.Diff(kafkatest.Context(t), kafka.Config{Brokers: []string{"127.0.0.1:1"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Fatalf("error %v", err)
	}
}
