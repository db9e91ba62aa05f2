package kafka

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// lane is the sarama producer for all topics with the same limit. sarama fills a batch up to one size for all topics, and
// a broker refuses a batch above the topic's: with one producer for all, two records that fit would fail together.
type lane struct {
	client   sarama.Client
	producer sarama.AsyncProducer
	input    chan<- *sarama.ProducerMessage
	pacer    *pacer // nil: records go to the producer at once
	pacing   sync.WaitGroup
	results  sync.WaitGroup
	// patience is how long to wait between two looks for leaders, in nanoseconds.
	patience atomic.Int64
	cut      atomic.Bool // the connections are gone: nothing is worth waiting for
}

// handOverBuffer is how many records may stand between two goroutines of sarama. They hold pointers, and what is in flight
// is bounded elsewhere; with fewer, senders and sarama wait for each other at every record.
const handOverBuffer = 1024

// newLane connects. settle is called once for each message that was handed to the producer.
func newLane(cfg Config, limit int, gather bool, settle func(*sarama.ProducerMessage, error)) (*lane, error) {
	l := &lane{}
	// Where no broker answers, the first contact should fail soon.
	l.patience.Store(int64(connectBackoff))
	conf, err := cfg.Sarama(func(s *sarama.Config) {
		s.Producer.MaxMessageBytes = limit - batchMargin
		s.Producer.Timeout = produceTimeout
		s.ChannelBufferSize = handOverBuffer
		s.Net.ReadTimeout = produceReadTimeout
		s.Metadata.Retry.Max = leaderRetries
		backoff := s.Producer.Retry.BackoffFunc
		s.Producer.Retry.BackoffFunc = func(retries, most int) time.Duration {
			if l.cut.Load() {
				return time.Millisecond
			}
			return backoff(retries, most)
		}
		s.Metadata.Retry.BackoffFunc = func(int, int) time.Duration { return time.Duration(l.patience.Load()) }
	})
	if err != nil {
		return nil, err
	}
	if l.client, err = sarama.NewClient(cfg.Brokers, conf); err != nil {
		return nil, err
	}
	if l.producer, err = sarama.NewAsyncProducerFromClient(l.client); err != nil {
		return nil, errors.Join(err, l.client.Close())
	}
	// From here on a missing leader is waited for.
	l.patience.Store(int64(leaderBackoff))
	l.input = l.producer.Input()
	if gather {
		l.pacer = newPacer(l.input)
		l.input = l.pacer.in
		l.pacing.Go(l.pacer.run)
	}
	l.results.Go(func() {
		for m := range l.producer.Successes() {
			settle(m, nil)
		}
	})
	l.results.Go(func() {
		for e := range l.producer.Errors() {
			settle(e.Msg, e.Err)
		}
	})
	return l, nil
}

// cutOff closes the connections: what is in flight, and what is sent later, fails.
func (l *lane) cutOff() error {
	l.cut.Store(true)
	l.patience.Store(int64(time.Millisecond))
	err := l.client.Close()
	if errors.Is(err, sarama.ErrClosedClient) {
		return nil
	}
	return err
}

// close ends the producer, which may be slow to end, and then has its connections cut; nobody may send any more.
func (l *lane) close(timeout time.Duration) error {
	done := make(chan struct{})
	if l.pacer != nil {
		close(l.pacer.in)
	}
	go func() {
		l.pacing.Wait() // sarama panics on what comes after its end
		l.producer.AsyncClose()
		l.results.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(timeout):
	}
	err := l.cutOff()
	// With the connections gone every attempt fails at once; only a pause between attempts is left to wait for.
	<-done
	return err
}
