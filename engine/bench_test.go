package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/internal/benchwork"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

// The benchmarks run the same work on the engine and on the bare libraries in one process, on the embedded broker: read
// a row, write it, send one record on. Compare their messages/s with each other, never with another run's.

const (
	benchMessages = 40_000
	benchKeys     = 10_000
	benchValue    = 1 << 10
)

// fill writes the messages and returns a world to run in.
func fill(b *testing.B) *world {
	b.Helper()
	w := newWorld(b)
	p, err := kafka.NewProducer(w.cfg, kafka.ProducerOptions{})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, benchMessages)
	rng := rand.NewChaCha8([32]byte{})
	for i := range benchMessages {
		value := make([]byte, benchValue)
		_, _ = rng.Read(value)
		r := kafka.Record{Topic: "in", Key: fmt.Appendf(nil, "key-%d", i%benchKeys), Value: value}
		if err := p.Send(b.Context(), r, func(_ int32, _ int64, err error) { done <- err }); err != nil {
			b.Fatal(err)
		}
	}
	for range benchMessages {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		b.Fatal(err)
	}
	return w
}

// measure waits until the group has committed everything, and reports the rate between a tenth and the end.
func measure(b *testing.B, w *world, group string) {
	b.Helper()
	committed := func() (n int64) {
		for p := range int32(partitions) {
			n += max(0, kafkatest.Committed(b, w.cfg, group, "in", p))
		}
		return n
	}
	kafkatest.Wait(b, "the first tenth", func() bool { return committed() >= benchMessages/10 })
	from, began := committed(), time.Now()
	kafkatest.Wait(b, "the end", func() bool { return committed() == benchMessages })
	b.ReportMetric(float64(benchMessages-from)/time.Since(began).Seconds(), "messages/s")
}

func BenchmarkEngineTableAndEmit(b *testing.B) {
	topic, outTopic := stage.Topic[[]byte]{Name: "in", Codec: benchwork.Raw{}}, stage.Topic[[]byte]{Name: "out", Codec: benchwork.Raw{}}
	for b.Loop() {
		w := fill(b)
		g, err := engine.NewGroup("g",
			engine.Input(topic, func(_ context.Context, m stage.Message[[]byte], row *[]byte) (stage.Result[[]byte], error) {
				var old []byte
				if row != nil {
					old = *row
				}
				next := benchwork.NextRow(old, m.Value)
				return stage.Result[[]byte]{Outputs: []stage.Output{outTopic.Record(m.Key, m.Value)}, Row: &next}, nil
			}),
			engine.Table(benchwork.Raw{}, benchwork.Later))
		if err != nil {
			b.Fatal(err)
		}
		stop := w.run("pod", g)
		measure(b, w, "g")
		stop()
	}
}

func BenchmarkGokaTableAndEmit(b *testing.B) {
	for b.Loop() {
		w := fill(b)
		benchGoka(b, w, goka.DefineGroup("g", goka.Input("in", new(codec.Bytes), func(ctx goka.Context, m any) {
			old, _ := ctx.Value().([]byte)
			ctx.Emit("out", ctx.Key(), m)
			ctx.SetValue(benchwork.NextRow(old, m.([]byte)))
		}), goka.Output("out", new(codec.Bytes)), goka.Persist(new(codec.Bytes))))
	}
}

func benchGoka(b *testing.B, w *world, g *goka.GroupGraph) {
	b.Helper()
	cfg := func() *sarama.Config {
		c, err := w.cfg.Sarama()
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	topics := goka.NewTopicManagerConfig()
	topics.MismatchBehavior = goka.TMConfigMismatchBehaviorIgnore
	p, err := goka.NewProcessor(w.cfg.Brokers, g, goka.WithConsumerGroupBuilder(goka.ConsumerGroupBuilderWithConfig(cfg())),
		goka.WithConsumerSaramaBuilder(goka.SaramaConsumerBuilderWithConfig(cfg())), goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithConfig(cfg(), topics)),
		goka.WithProducerBuilder(kafka.GokaProducerBuilder(w.cfg, kafka.ProducerOptions{})), goka.WithHasher(kafka.Hasher()),
		goka.WithStorageBuilder(kafka.NewStores(kafka.StoreOptions{Dir: w.dir + "/goka"}).Builder()), goka.WithLogger(quiet{}))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	measure(b, w, "g")
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

type quiet struct{}

func (quiet) Print(...any)          {}
func (quiet) Println(...any)        {}
func (quiet) Printf(string, ...any) {}

func BenchmarkEngineStateless(b *testing.B) {
	topic, outTopic := stage.Topic[[]byte]{Name: "in", Codec: benchwork.Raw{}}, stage.Topic[[]byte]{Name: "out", Codec: benchwork.Raw{}}
	for b.Loop() {
		w := fill(b)
		g, err := engine.NewGroup("g", engine.Input(topic, func(_ context.Context, m stage.Message[[]byte], _ *struct{}) (stage.Result[struct{}], error) {
			return stage.Result[struct{}]{Outputs: []stage.Output{outTopic.Record(m.Key, m.Value)}}, nil
		}))
		if err != nil {
			b.Fatal(err)
		}
		stop := w.run("pod", g)
		measure(b, w, "g")
		stop()
	}
}

// BenchmarkSaramaStateless is a consumer group loop without goka: each record is sent on and marked when it is
// acknowledged, without caring for gaps.
func BenchmarkSaramaStateless(b *testing.B) {
	for b.Loop() {
		w := fill(b)
		cfg, err := w.cfg.Sarama()
		if err != nil {
			b.Fatal(err)
		}
		cg, err := sarama.NewConsumerGroup(w.cfg.Brokers, "g", cfg)
		if err != nil {
			b.Fatal(err)
		}
		p, err := kafka.NewProducer(w.cfg, kafka.ProducerOptions{})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- cg.Consume(ctx, []string{"in"}, &loop{p}) }()
		measure(b, w, "g")
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		if err := cg.Close(); err != nil {
			b.Fatal(err)
		}
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

type loop struct{ p *kafka.Producer }

func (*loop) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*loop) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (l *loop) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for {
		select {
		case m, ok := <-c.Messages():
			if !ok {
				return nil
			}
			err := l.p.Send(s.Context(), kafka.Record{Topic: "out", Key: m.Key, Value: m.Value}, func(_ int32, _ int64, err error) {
				if err == nil {
					s.MarkMessage(m, "")
				}
			})
			if err != nil {
				return nil
			}
		case <-s.Context().Done():
			return nil
		}
	}
}
