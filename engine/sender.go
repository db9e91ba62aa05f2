package engine

import (
	"context"
	"errors"

	"github.com/lovoo/goka"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/stage"
)

// ReasonTooLarge is the reason of a failure whose outputs or row are larger than their topic takes.
const ReasonTooLarge = "too_large"

// KafkaSender makes an Env.NewSender of a constructor of producers.
func KafkaSender(open func() (*kafka.Producer, error)) func() (Sender, goka.Producer, error) {
	return func() (Sender, goka.Producer, error) {
		p, err := open()
		if err != nil {
			return nil, nil, err
		}
		return kafkaSender{p}, p.Goka(), nil
	}
}

type kafkaSender struct{ p *kafka.Producer }

func (s kafkaSender) Send(ctx context.Context, out stage.Output, ack func(offset int64, err error)) error {
	return s.p.Send(ctx, toKafka(out), func(_ int32, offset int64, err error) { ack(offset, err) })
}

func (s kafkaSender) Check(out stage.Output) error {
	err := s.p.Check(toKafka(out))
	var large *kafka.TooLargeError
	if errors.As(err, &large) {
		return &stage.Error{Class: stage.ClassMessage, Reason: ReasonTooLarge, Err: err}
	}
	return err
}

func toKafka(out stage.Output) kafka.Record {
	r := kafka.Record{Topic: out.Topic, Key: out.Key, Value: out.Value}
	if len(out.Headers) > 0 {
		r.Headers = make([]kafka.Header, len(out.Headers))
		for i, h := range out.Headers {
			r.Headers[i] = kafka.Header(h)
		}
	}
	return r
}
