package pipeline

import (
	"context"
	"time"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/stage"
)

// readBack looks after the store where it is one that forgets; otherwise it adds nothing to the group.
func (p *Pipeline) readBack() engine.Option {
	store, forgets := p.options.Sink.(sinks.Forgetful)
	if !forgets {
		return func(*engine.Group) {}
	}
	r := &processors.ReadBack{Topics: p.topics, Store: store, Tenant: p.options.Tenant, Log: recordLog{p.options.Reader},
		Now: p.options.Now, After: p.options.After, Metrics: p.options.Metrics, Logger: p.options.Log}
	return engine.Background(r.Keep)
}

// recordLog reads the log as the indexer looks back at it.
type recordLog struct{ r *kafka.Reader }

func (l recordLog) Offsets(ctx context.Context, topic string, partition int32) (oldest, next int64, err error) {
	return l.r.Offsets(ctx, topic, partition)
}

func (l recordLog) OffsetAt(ctx context.Context, topic string, partition int32, t time.Time) (int64, error) {
	return l.r.OffsetAt(ctx, topic, partition, t)
}

func (l recordLog) Range(ctx context.Context, topic string, partition int32, from, to int64, do func(stage.Record) error) error {
	return l.r.Range(ctx, topic, partition, from, to, func(r kafka.Record) error {
		return do(stage.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value})
	})
}
