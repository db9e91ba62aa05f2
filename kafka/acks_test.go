package kafka_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

// A record that one broker has is lost with that broker's disk: every produce request asks for all replicas, and none is
// sent twice under two names, whichever way it is sent.
func TestEveryRecordAsksForAllReplicas(t *testing.T) {
	kafkatest.NoLeaks(t)
	b := kafkatest.StartBroker(t, kafkatest.Topic("t", 1))
	var mu sync.Mutex
	var requests []*kmsg.ProduceRequest
	b.Cluster().ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.(*kmsg.ProduceRequest))
		return nil, nil, false // the broker goes on with it
	})

	p, err := kafka.NewProducer(b.Config(), kafka.ProducerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.SendSync(kafkatest.Context(t), kafka.Record{Topic: "t", Value: []byte("by the producer")}); err != nil {
		t.Fatal(err)
	}
	promised := make(chan error, 1)
	p.Goka().Emit("t", "k", []byte("by goka")).Then(func(err error) { promised <- err })
	if err := errors.Join(kafkatest.Receive(t, "the promise", promised), p.Close()); err != nil {
		t.Fatal(err)
	}
	settings, err := b.Config().Sarama()
	if err != nil {
		t.Fatal(err)
	}
	s, err := sarama.NewSyncProducer(b.Addrs(), settings)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.SendMessage(&sarama.ProducerMessage{Topic: "t", Value: sarama.StringEncoder("by a client of the settings")})
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}

	mu.Lock()
	defer mu.Unlock()
	if got := kafkatest.ReadAll(t, b.Config(), "t"); len(got) != 3 || len(requests) < 3 {
		t.Fatalf("%d records in %d requests, want 3", len(got), len(requests))
	}
	for i, r := range requests {
		if r.Acks != -1 {
			t.Errorf("produce request %d asks for acks=%d", i, r.Acks)
		}
		for _, topic := range r.Topics {
			for _, partition := range topic.Partitions {
				var batch kmsg.RecordBatch
				if err := batch.ReadFrom(partition.Records); err != nil || batch.ProducerID < 0 {
					t.Errorf("produce request %d has the producer id %d (%v): it is not idempotent", i, batch.ProducerID, err)
				}
			}
		}
	}
}
