package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

func newReader(t *testing.T, cfg kafka.Config) *kafka.Reader {
	t.Helper()
	r, err := kafka.NewReader(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func addPartitions(t *testing.T, cfg kafka.Config, topic string, n int32) {
	t.Helper()
	conf, err := cfg.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	a, err := sarama.NewClusterAdmin(cfg.Brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.CreatePartitions(topic, n, nil, false), a.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestReaderReadsByPosition(t *testing.T) {
	kafkatest.NoLeaks(t)
	cfg := kafkatest.Start(t, kafkatest.Topic("t", 2))
	ctx := kafkatest.Context(t)
	var records []kafka.Record
	for i := range 300 {
		records = append(records, kafka.Record{Topic: "t", Key: fmt.Append(nil, "k", i), Value: bytes.Repeat([]byte{byte(i)}, 10+i)})
	}
	records = kafkatest.Produce(t, cfg, records...)
	r := newReader(t, cfg)
	for _, want := range records {
		got, err := r.Read(ctx, "t", want.Partition, want.Offset)
		if err != nil || !bytes.Equal(got.Key, want.Key) || !bytes.Equal(got.Value, want.Value) || got.Offset != want.Offset || got.Partition != want.Partition {
			t.Fatalf("record %+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := r.Read(ctx, "t", 0, 1000); !errors.Is(err, kafka.ErrGone) {
		t.Fatalf("behind the end: %v", err)
	}
	_, next, err := r.Offsets(ctx, "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(ctx, "t", 0, next); !errors.Is(err, kafka.ErrGone) {
		t.Fatalf("at the end: %v", err)
	}
	if _, err := r.Read(ctx, "missing", 0, 0); err == nil || errors.Is(err, kafka.ErrGone) {
		t.Fatalf("missing topic: %v", err)
	}
}

func TestReaderTellsWhatIsGone(t *testing.T) {
	spec := kafkatest.Topic("t", 1)
	spec.Config = map[string]string{"cleanup.policy": "compact", "retention.ms": "-1"}
	b := kafkatest.StartBroker(t, spec)
	for i := range 5 { // one batch each
		kafkatest.Produce(t, b.Config(), kafka.Record{Topic: "t", Key: []byte("same"), Value: fmt.Append(nil, i)})
	}
	kafkatest.Produce(t, b.Config(), kafka.Record{Topic: "t", Key: []byte("other"), Value: []byte("x")})
	b.Cluster().Compact()
	r, ctx := newReader(t, b.Config()), kafkatest.Context(t)
	for offset := range int64(4) {
		if _, err := r.Read(ctx, "t", 0, offset); !errors.Is(err, kafka.ErrGone) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	if got, err := r.Read(ctx, "t", 0, 4); err != nil || string(got.Value) != "4" {
		t.Errorf("offset 4: %s, %v", got.Value, err)
	}
}

func TestReaderReadsTheLargestRecord(t *testing.T) {
	plan := kafkatest.Plan(t, "w", 1)
	cfg := kafkatest.Start(t, plan...)
	documents := kafka.NewTopics("w").Documents
	large := bytes.Repeat([]byte("0123456789abcdef"), (11<<20)/16)
	kafkatest.Produce(t, cfg, kafka.Record{Topic: documents, Value: []byte("a")}, kafka.Record{Topic: documents, Value: large},
		kafka.Record{Topic: documents, Value: []byte("b")})
	r := newReader(t, cfg)
	for offset, want := range [][]byte{[]byte("a"), large, []byte("b")} {
		got, err := r.Read(kafkatest.Context(t), documents, 0, int64(offset))
		if err != nil || !bytes.Equal(got.Value, want) {
			t.Fatalf("offset %d: %d bytes, %v", offset, len(got.Value), err)
		}
	}
}

// What a transaction has taken back is not there, and its marker is no record.
func TestReaderSeesOnlyWhatIsCommitted(t *testing.T) {
	cfg := kafkatest.Start(t, kafkatest.Topic("t", 1))
	conf, err := cfg.Sarama(func(s *sarama.Config) { s.Producer.Transaction.ID = "tx" })
	if err != nil {
		t.Fatal(err)
	}
	p, err := sarama.NewSyncProducer(cfg.Brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	send := func(v string, end func() error) {
		if err := p.BeginTxn(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: "t", Value: sarama.StringEncoder(v)}); err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	send("aborted", p.AbortTxn)
	send("committed", p.CommitTxn)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	got := kafkatest.ReadAll(t, cfg, "t")
	if len(got) != 1 || string(got[0].Value) != "committed" {
		t.Fatalf("records %v", got)
	}
	r, ctx := newReader(t, cfg), kafkatest.Context(t)
	for _, offset := range []int64{0, 1} {
		if _, err := r.Read(ctx, "t", 0, offset); !errors.Is(err, kafka.ErrGone) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
}

func TestReaderIsBounded(t *testing.T) {
	kafkatest.NoLeaks(t)
	b := kafkatest.StartBroker(t, kafkatest.Topic("t", 1))
	kafkatest.Produce(t, b.Config(), kafka.Record{Topic: "t", Value: []byte("x")})
	r := newReader(t, b.Config())
	kafkatest.Stop(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := r.Read(ctx, "t", 0, 0)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kafka.ErrGone) {
		t.Fatalf("error %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Fatalf("took %v", took)
	}
}

func TestReaderGoesOnAfterTheBrokerCameBack(t *testing.T) {
	dir := t.TempDir()
	b := kafkatest.StartIn(t, dir, kafkatest.Topic("t", 1))
	kafkatest.Produce(t, b.Config(), kafka.Record{Topic: "t", Value: []byte("x")})
	r := newReader(t, b.Config())
	for range 2 {
		kafkatest.Stop(t, b)
		b = kafkatest.StartIn(t, dir)
		if got, err := r.Read(kafkatest.Context(t), "t", 0, 0); err != nil || string(got.Value) != "x" {
			t.Fatalf("%s, %v", got.Value, err)
		}
	}
}
