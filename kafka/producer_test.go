package kafka_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

func newProducer(t *testing.T, cfg kafka.Config, opts kafka.ProducerOptions) *kafka.Producer {
	t.Helper()
	p, err := kafka.NewProducer(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

func TestProducerKeepsBytesNullsAndHeaders(t *testing.T) {
	cfg := kafkatest.Start(t, kafkatest.Topic("t", 1))
	records := []kafka.Record{
		{Topic: "t", Key: []byte("k"), Value: []byte("v"), Headers: []kafka.Header{
			{Key: []byte("b"), Value: []byte("1")}, {Key: []byte("a"), Value: []byte{0xff}}, {Key: []byte("b"), Value: []byte("2")},
		}},
		{Topic: "t", Key: nil, Value: []byte("no key")},
		{Topic: "t", Key: []byte{}, Value: []byte("empty key")},
		{Topic: "t", Key: []byte("tombstone"), Value: nil},
		{Topic: "t", Key: []byte("empty"), Value: []byte{}},
		{Topic: "t", Key: []byte("old"), Value: []byte("v"), Timestamp: time.UnixMilli(1_600_000_000_123)},
	}
	kafkatest.Produce(t, cfg, records...)
	got := kafkatest.ReadAll(t, cfg, "t")
	if len(got) != len(records) {
		t.Fatalf("%d records, want %d", len(got), len(records))
	}
	for i, want := range records {
		g := got[i]
		if !sameBytes(g.Key, want.Key) || !sameBytes(g.Value, want.Value) || g.Offset != int64(i) {
			t.Errorf("record %d is %+v, want %+v", i, g, want)
		}
		if len(g.Headers) != len(want.Headers) {
			t.Fatalf("record %d has headers %v, want %v", i, g.Headers, want.Headers)
		}
		for j, h := range want.Headers {
			if !sameBytes(g.Headers[j].Key, h.Key) || !sameBytes(g.Headers[j].Value, h.Value) {
				t.Errorf("record %d header %d is %v, want %v", i, j, g.Headers[j], h)
			}
		}
	}
	if !got[5].Timestamp.Equal(records[5].Timestamp) {
		t.Errorf("timestamp %v, want %v", got[5].Timestamp, records[5].Timestamp)
	}
}

// sameBytes tells null from empty.
func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func TestProducerKeepsOrderPerPartition(t *testing.T) {
	const partitions, perKey, keys = 3, 200, 7
	cfg := kafkatest.Start(t, kafkatest.Topic("t", partitions))
	var records []kafka.Record
	for i := range perKey {
		for k := range keys {
			records = append(records, kafka.Record{Topic: "t", Key: fmt.Appendf(nil, "k%d", k), Value: fmt.Append(nil, i)})
		}
	}
	for _, r := range kafkatest.Produce(t, cfg, records...) {
		if want := kafka.PartitionOf(r.Key, partitions); r.Partition != want {
			t.Fatalf("key %s went to partition %d, want %d", r.Key, r.Partition, want)
		}
	}
	next := make(map[string]int)
	for _, r := range kafkatest.ReadAll(t, cfg, "t") {
		if want := fmt.Sprint(next[string(r.Key)]); string(r.Value) != want {
			t.Fatalf("key %s: %s, want %s", r.Key, r.Value, want)
		}
		next[string(r.Key)]++
	}
	for k, n := range next {
		if n != perKey {
			t.Errorf("key %s: %d records", k, n)
		}
	}
}

func TestProducerSendsToThePartitionThatIsNamed(t *testing.T) {
	cfg := kafkatest.Start(t, kafkatest.Topic("t", 4))
	p := newProducer(t, cfg, kafka.ProducerOptions{})
	ctx := kafkatest.Context(t)
	type position struct {
		partition int32
		err       error
	}
	acks := make(chan position, 1)
	send := func(to int32) position {
		if err := p.SendTo(ctx, to, kafka.Record{Topic: "t", Key: []byte("k")}, func(partition int32, _ int64, err error) {
			acks <- position{partition, err}
		}); err != nil {
			return position{err: err}
		}
		return kafkatest.Receive(t, "acknowledgement", acks)
	}
	for to := range int32(4) {
		if got := send(to); got.err != nil || got.partition != to {
			t.Fatalf("sent to %d, stands in %d, %v", to, got.partition, got.err)
		}
	}
	if got := send(4); got.err == nil {
		t.Fatal("a partition that does not exist was accepted")
	}
	if got := send(-1); got.err == nil {
		t.Fatal("a negative partition was accepted")
	}
}

func TestProducerRefusesWhatIsTooLarge(t *testing.T) {
	plan := kafkatest.Plan(t, "w", 1)
	cfg := kafkatest.Start(t, plan...)
	topics := kafka.NewTopics("w")
	p := newProducer(t, cfg, kafka.ProducerOptions{Limits: kafka.Limits(plan)})
	ctx := kafkatest.Context(t)

	var tooLarge *kafka.TooLargeError
	_, _, err := p.SendSync(ctx, kafka.Record{Topic: topics.Documents, Key: []byte("k"), Value: make([]byte, kafka.MaxDocumentBytes)})
	if !errors.As(err, &tooLarge) || tooLarge.Topic != topics.Documents || tooLarge.Size <= tooLarge.Limit {
		t.Fatalf("error %v", err)
	}
	// The largest record that passes the check has to pass the broker too, even if compression makes it larger.
	for _, topic := range []string{topics.Documents, topics.DeadLetters} {
		limit := kafka.MaxRecordBytes
		if topic == topics.Documents {
			limit = kafka.MaxDocumentBytes
		}
		value := make([]byte, limit)
		_, _ = rand.Read(value)
		r := kafka.Record{Topic: topic, Key: []byte("k"), Value: value}
		for p.Check(r) != nil {
			r.Value = r.Value[:len(r.Value)-1]
		}
		if _, _, err := p.SendSync(ctx, r); err != nil {
			t.Fatalf("record of %d bytes to %s: %v", len(r.Value), topic, err)
		}
		got := kafkatest.ReadAll(t, cfg, topic)
		if len(got) != 1 || !bytes.Equal(got[0].Value, r.Value) {
			t.Fatalf("%d records in %s", len(got), topic)
		}
	}
	if _, _, err := p.SendSync(ctx, kafka.Record{Topic: "w.documentz"}); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Fatalf("unknown topic: %v", err)
	}
}

// Two records that fit must not be refused together, because they happened to share a batch.
func TestProducerBatchesFitTheTopic(t *testing.T) {
	plan := kafkatest.Plan(t, "w", 1)
	cfg := kafkatest.Start(t, plan...)
	var records []kafka.Record
	for i := range 6 {
		value := make([]byte, 5<<20)
		_, _ = rand.Read(value)
		records = append(records, kafka.Record{Topic: kafka.NewTopics("w").Documents, Key: fmt.Append(nil, i), Value: value})
	}
	kafkatest.Produce(t, cfg, records...)
}

func TestProducerGivesUp(t *testing.T) {
	kafkatest.NoLeaks(t)
	b := kafkatest.StartBroker(t, kafkatest.Topic("t", 1))
	p, err := kafka.NewProducer(b.Config(), kafka.ProducerOptions{DeliveryTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx := kafkatest.Context(t)
	if _, _, err := p.SendSync(ctx, kafka.Record{Topic: "t", Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	kafkatest.Stop(t, b)

	start := time.Now()
	if _, _, err := p.SendSync(ctx, kafka.Record{Topic: "t", Value: []byte("2")}); err == nil {
		t.Fatal("a record was acknowledged without a broker")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("gave up after %v", took)
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, _, err := p.SendSync(short, kafka.Record{Topic: "t", Value: []byte("3")}); err == nil {
		t.Fatal("a record was acknowledged without a broker")
	}
	start = time.Now()
	_ = p.Close() // says that records were in flight
	if took := time.Since(start); took > 25*time.Second {
		t.Errorf("closing took %v", took)
	}
	if _, _, err := p.SendSync(ctx, kafka.Record{Topic: "t"}); !errors.Is(err, kafka.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestProducerCloseWaitsForWhatIsInFlight(t *testing.T) {
	kafkatest.NoLeaks(t)
	b := kafkatest.StartBroker(t, kafkatest.Topic("t", 1))
	p, err := kafka.NewProducer(b.Config(), kafka.ProducerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	var mu sync.Mutex
	acked := 0
	for i := range n {
		if err := p.Send(kafkatest.Context(t), kafka.Record{Topic: "t", Value: fmt.Append(nil, i)}, func(_ int32, _ int64, err error) {
			if err == nil {
				mu.Lock()
				acked++
				mu.Unlock()
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if acked != n {
		t.Fatalf("%d of %d acknowledged", acked, n)
	}
	if got := len(kafkatest.ReadAll(t, b.Config(), "t")); got != n {
		t.Fatalf("%d of %d written", got, n)
	}
	kafkatest.Stop(t, b)
}

func TestProducerGoesOnAfterTheBrokerCameBack(t *testing.T) {
	dir := t.TempDir()
	b := kafkatest.StartIn(t, dir, kafkatest.Topic("t", 1))
	p := newProducer(t, b.Config(), kafka.ProducerOptions{})
	ctx := kafkatest.Context(t)
	for i := range 3 {
		if _, _, err := p.SendSync(ctx, kafka.Record{Topic: "t", Value: fmt.Append(nil, i)}); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		kafkatest.Stop(t, b)
		acks := make(chan error, 1)
		if err := p.Send(ctx, kafka.Record{Topic: "t", Value: fmt.Append(nil, "x", i)}, func(_ int32, _ int64, err error) { acks <- err }); err != nil {
			t.Fatal(err)
		}
		b = kafkatest.StartIn(t, dir)
		if err := kafkatest.Receive(t, "acknowledgement", acks); err != nil {
			t.Fatalf("record sent while the broker was away: %v", err)
		}
	}
	if got := kafkatest.ReadAll(t, b.Config(), "t"); len(got) != 6 {
		t.Fatalf("%d records, want 6", len(got))
	}
}

func TestNewProducerFailsWithoutBroker(t *testing.T) {
	kafkatest.NoLeaks(t)
	start := time.Now()
	if _, err := kafka.NewProducer(kafka.Config{Brokers: []string{"127.0.0.1:1"}}, kafka.ProducerOptions{}); err == nil {
		t.Fatal("no error")
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

// A broker that is there but does not answer holds nobody up for longer than the delivery timeout.
func TestProducerGivesUpOnABrokerThatHangs(t *testing.T) {
	kafkatest.NoLeaks(t)
	b := kafkatest.StartBroker(t, kafkatest.Topic("t", 1))
	p, err := kafka.NewProducer(b.Config(), kafka.ProducerOptions{DeliveryTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	b.Cluster().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		b.Cluster().SleepControl(func() { <-release })
		return nil, nil, false
	})
	defer close(release)
	ctx := kafkatest.Context(t)
	start := time.Now()
	if _, _, err := p.SendSync(ctx, kafka.Record{Topic: "t", Value: []byte("1")}); !errors.Is(err, kafka.ErrDeliveryTimeout) {
		t.Fatalf("error %v", err)
	}
	// Room for 64 MiB: the senders that find none give up too.
	large := make([]byte, 1_000_000)
	for range 70 {
		err = p.Send(ctx, kafka.Record{Topic: "t", Value: large}, func(int32, int64, error) {})
		if err != nil {
			break
		}
	}
	if !errors.Is(err, kafka.ErrDeliveryTimeout) {
		t.Fatalf("memory without a bound: %v", err)
	}
	if err := p.Close(); err == nil {
		t.Error("closing says nothing of what was in flight")
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestProducerCloseWakesSendersThatWait(t *testing.T) {
	kafkatest.NoLeaks(t)
	b := kafkatest.StartBroker(t, kafkatest.Topic("t", 1))
	p, err := kafka.NewProducer(b.Config(), kafka.ProducerOptions{DeliveryTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	kafkatest.Stop(t, b)
	failed := make(chan error, 1)
	waiting := make(chan struct{}, 100)
	go func() {
		for {
			err := p.Send(context.Background(), kafka.Record{Topic: "t", Value: make([]byte, 1_000_000)}, func(int32, int64, error) {})
			if err != nil {
				failed <- err
				return
			}
			waiting <- struct{}{}
		}
	}()
	for range 10 {
		kafkatest.Receive(t, "a record in flight", waiting)
	}
	_ = p.Close() // says that records were in flight
	if err := kafkatest.Receive(t, "the sender", failed); !errors.Is(err, kafka.ErrClosed) {
		t.Fatalf("error %v", err)
	}
}

func TestGokaProducer(t *testing.T) {
	kafkatest.NoLeaks(t)
	cfg := kafkatest.Start(t, kafkatest.Topic("t", 2))
	g, err := kafka.GokaProducerBuilder(cfg, kafka.ProducerOptions{Limits: map[string]int{"t": 100_000}})(nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		m   *sarama.ProducerMessage
		err error
	}
	results := make(chan result, 1)
	await := func(p *goka.Promise) result {
		p.ThenWithMessage(func(m *sarama.ProducerMessage, err error) { results <- result{m, err} })
		return kafkatest.Receive(t, "the promise", results)
	}
	r := await(g.EmitWithHeaders("t", "k", []byte("v"), goka.Headers{"h": []byte("1")}))
	if r.err != nil || r.m.Offset != 0 || r.m.Partition != kafka.PartitionOf([]byte("k"), 2) {
		t.Fatalf("%+v", r)
	}
	if r := await(g.Emit("t", "k", nil)); r.err != nil || r.m.Offset != 1 {
		t.Fatalf("%+v", r)
	}
	var large *kafka.TooLargeError
	if r := await(g.Emit("t", "k", make([]byte, 200_000))); !errors.As(r.err, &large) {
		t.Fatalf("%+v", r)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if r := await(g.Emit("t", "k", nil)); !errors.Is(r.err, kafka.ErrClosed) {
		t.Fatalf("%+v", r)
	}
	got := kafkatest.ReadAll(t, cfg, "t")
	if len(got) != 2 || got[1].Value != nil || string(got[0].Headers[0].Key) != "h" {
		t.Fatalf("records %v", got)
	}
}
