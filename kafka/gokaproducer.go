package kafka

import (
	"context"
	"hash"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
)

// Goka is this producer as goka takes it. Its Close closes the producer. goka's own one waits without limit; this one
// fails the promise at the delivery timeout and when the producer closes.
//
// goka's headers are a map without order or repeated keys, and its keys are never null: what has to keep its bytes goes
// through Send.
func (p *Producer) Goka() goka.Producer { return gokaProducer{p} }

// GokaProducerBuilder starts a producer for each processor that is built; the processor closes it.
func GokaProducerBuilder(cfg Config, opts ProducerOptions) goka.ProducerBuilder {
	return func([]string, string, func() hash.Hash32) (goka.Producer, error) {
		p, err := NewProducer(cfg, opts)
		if err != nil {
			return nil, err
		}
		return p.Goka(), nil
	}
}

type gokaProducer struct{ p *Producer }

func (g gokaProducer) Emit(topic, key string, value []byte) *goka.Promise {
	return g.EmitWithHeaders(topic, key, value, nil)
}

func (g gokaProducer) EmitWithHeaders(topic, key string, value []byte, headers goka.Headers) *goka.Promise {
	promise, finish := goka.NewPromiseWithFinisher()
	r := Record{Topic: topic, Key: []byte(key), Value: value}
	for k, v := range headers {
		r.Headers = append(r.Headers, Header{Key: []byte(k), Value: v})
	}
	err := g.p.Send(context.Background(), r, func(partition int32, offset int64, err error) {
		if err != nil {
			finish(nil, err)
			return
		}
		// goka stores the offset of a table's record with its row.
		finish(&sarama.ProducerMessage{Topic: topic, Partition: partition, Offset: offset}, nil)
	})
	if err != nil {
		finish(nil, err)
	}
	return promise
}

func (g gokaProducer) Close() error { return g.p.Close() }
