package kafka_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/embedded"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

func open(t *testing.T, s *kafka.Producers) *kafka.Producer {
	t.Helper()
	p, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// two are producers of one connection, and a broker with the topic t.
func two(t *testing.T, o kafka.ProducerOptions) (b *embedded.Broker, s *kafka.Producers, first, second *kafka.Producer) {
	t.Helper()
	kafkatest.NoLeaks(t)
	b = kafkatest.StartBroker(t, kafkatest.Topic("t", 1))
	s = kafka.NewProducers(b.Config(), o)
	return b, s, open(t, s), open(t, s)
}

func wantAcks(t *testing.T, acks ...chan error) {
	t.Helper()
	for _, a := range acks {
		if err := kafkatest.Receive(t, "an acknowledgement", a); err != nil {
			t.Error(err)
		}
	}
}

func send(t *testing.T, p *kafka.Producer, value string) (done chan error) {
	t.Helper()
	done = make(chan error, 1)
	err := p.Send(kafkatest.Context(t), kafka.Record{Topic: "t", Value: []byte(value)}, func(_ int32, _ int64, err error) { done <- err })
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// hold keeps produce requests waiting until release; held tells of each.
func hold(b *embedded.Broker) (held chan struct{}, release func()) {
	held, waiting := make(chan struct{}, 1000), make(chan struct{})
	b.Cluster().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		held <- struct{}{}
		b.Cluster().SleepControl(func() { <-waiting })
		return nil, nil, false
	})
	return held, sync.OnceFunc(func() { close(waiting) })
}

// What the stages of a process have for a broker goes in one request.
func TestProducersShareRequests(t *testing.T) {
	b, _, first, second := two(t, kafka.ProducerOptions{})
	held, release := hold(b)
	defer release()
	acks := []chan error{send(t, first, "alone")}
	kafkatest.Receive(t, "the first request", held)
	// One request is in flight: these have to share the next one.
	for i := range 10 {
		acks = append(acks, send(t, first, fmt.Sprint("first ", i)), send(t, second, fmt.Sprint("second ", i)))
	}
	release()
	wantAcks(t, acks...)
	if n := len(held); n < 1 || n > 3 { // what is on its way between two goroutines of the client may miss the first
		t.Errorf("%d requests for what came together", n)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	if got := kafkatest.ReadAll(t, b.Config(), "t"); len(got) != 21 {
		t.Errorf("%d records", len(got))
	}
}

// A producer that closes waits for its own records and disturbs nobody; the last one ends the connection (NoLeaks).
func TestProducersCloseOneByOne(t *testing.T) {
	b, s, first, second := two(t, kafka.ProducerOptions{Gather: true})
	var acks []chan error
	for i := range 500 {
		acks = append(acks, send(t, first, fmt.Sprint(i)))
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	for _, a := range acks {
		select {
		case err := <-a:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Fatal("it has not waited for its records")
		}
	}
	if _, _, err := first.SendSync(kafkatest.Context(t), kafka.Record{Topic: "t"}); !errors.Is(err, kafka.ErrClosed) {
		t.Errorf("sending after the end: %v", err)
	}
	third := open(t, s) // on a connection of its own
	for _, p := range []*kafka.Producer{second, third} {
		wantAcks(t, send(t, p, "later"))
		if err := errors.Join(p.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	}
	if got := kafkatest.ReadAll(t, b.Config(), "t"); len(got) != 502 {
		t.Errorf("%d records", len(got))
	}
}

// A producer that has nothing on its way does not cut off another that waits for its answers, whichever closes first.
func TestProducersCloseTogether(t *testing.T) {
	b, _, busy, idle := two(t, kafka.ProducerOptions{})
	held, release := hold(b)
	defer release()
	acks := []chan error{send(t, busy, "1"), send(t, busy, "2")}
	kafkatest.Receive(t, "a request", held)
	closed := make(chan error, 1)
	go func() { closed <- busy.Close() }()
	if err := idle.Close(); err != nil {
		t.Error(err)
	}
	release()
	if err := kafkatest.Receive(t, "the end of the busy one", closed); err != nil {
		t.Error(err)
	}
	wantAcks(t, acks...)
}

// What a producer gives up when it closes is ended: it is not written after that, behind what others wrote. Who shares its
// connection hears of it with its next record, and opens another.
func TestProducersEndWhatTheyGiveUp(t *testing.T) {
	b, s, impatient, other := two(t, kafka.ProducerOptions{DeliveryTimeout: 500 * time.Millisecond, Gather: true})
	held, release := hold(b)
	defer release()
	asked := send(t, impatient, "the broker has it")
	kafkatest.Receive(t, "a request", held)
	behind := send(t, impatient, "never sent")
	if err := impatient.Close(); err == nil {
		t.Error("closing says nothing of what was in flight")
	}
	for _, a := range []chan error{asked, behind} {
		if err := kafkatest.Receive(t, "what was given up", a); err == nil {
			t.Error("a record was acknowledged that was not answered")
		}
	}
	release()
	if err := kafkatest.Receive(t, "the other's record", send(t, other, "too late")); err == nil {
		t.Error("a connection that was cut has written a record")
	}
	again := open(t, s)
	if err := kafkatest.Receive(t, "a record by another connection", send(t, again, "again")); err != nil {
		t.Error(err)
	}
	if err := errors.Join(other.Close(), again.Close()); err != nil {
		t.Error(err)
	}
	for _, r := range kafkatest.ReadAll(t, b.Config(), "t") {
		if v := string(r.Value); v != "the broker has it" && v != "again" {
			t.Errorf("%q was written", v)
		}
	}
}

// Without a broker nothing opens, and the next one that asks tries again.
func TestProducersOpenAgain(t *testing.T) {
	kafkatest.NoLeaks(t)
	dir := t.TempDir()
	b := kafkatest.StartIn(t, dir, kafkatest.Topic("t", 1))
	s := kafka.NewProducers(b.Config(), kafka.ProducerOptions{})
	kafkatest.Stop(t, b)
	if _, err := s.Open(); err == nil {
		t.Fatal("opened without a broker")
	}
	b = kafkatest.StartIn(t, dir)
	p := open(t, s)
	if err := errors.Join(kafkatest.Receive(t, "an acknowledgement", send(t, p, "at last")), p.Close()); err != nil {
		t.Error(err)
	}
	kafkatest.Stop(t, b)
}
