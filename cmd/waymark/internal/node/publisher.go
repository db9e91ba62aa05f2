package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/blob"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

// publisher writes what the API has accepted. It refuses while the topics are not those that this process started on.
type publisher struct {
	producer *kafka.Producer
	topics   processors.Topics
	epoch    int
	blobs    *blob.Store // nil: every document travels in its record
	// refuse says why nothing may be accepted now, with its reason; nil normally.
	refuse func() *api.Unavailable
}

// Publish returns nil once Kafka has acknowledged the record with acks=all.
func (p publisher) Publish(ctx context.Context, d rag.Document, raw bool) (rag.Position, error) {
	if why := p.refuse(); why != nil {
		return rag.Position{}, why
	}
	if p.blobs != nil && len(d.Content) > rag.InlineBytes {
		b, err := p.blobs.Write(ctx, bytes.NewReader(d.Content))
		if err != nil {
			return rag.Position{}, blobsAway(err)
		}
		d.Content, d.Blob = nil, &b
	}
	key, value, headers := wire.DocumentRecord(d, raw)
	partition, offset, err := p.send(ctx, p.topics.Documents.Name, key, value, headers)
	var large *kafka.TooLargeError
	switch {
	case errors.As(err, &large):
		return rag.Position{}, fmt.Errorf("%w: %w", api.ErrTooLarge, err)
	case err != nil:
		return rag.Position{}, &api.Unavailable{Reason: "kafka_away", RetryAfter: time.Second, Err: err}
	}
	fault.Hit(fault.BeforeReply)
	return rag.Position{Topic: p.topics.Documents.Name, Epoch: p.epoch, Partition: partition, Offset: offset}, nil
}

// Command returns nil once the command is acknowledged.
func (p publisher) Command(ctx context.Context, c rag.Command) error {
	out := p.topics.Commands.Record(c.LetterID, c)
	if out.Err != nil {
		return fmt.Errorf("encoding the command: %w", out.Err)
	}
	if _, _, err := p.send(ctx, out.Topic, out.Key, out.Value, nil); err != nil {
		return &api.Unavailable{Reason: "kafka_away", RetryAfter: time.Second, Err: err}
	}
	return nil
}

func (p publisher) send(ctx context.Context, topic string, key, value []byte, headers []stage.Header) (int32, int64, error) {
	r := kafka.Record{Topic: topic, Key: key, Value: value}
	for _, h := range headers {
		r.Headers = append(r.Headers, kafka.Header(h))
	}
	return p.producer.SendSync(ctx, r)
}
