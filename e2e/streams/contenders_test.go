package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/internal/benchwork"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/stage"
)

// What a contender is told, by its parent.
const (
	contenderVariable = "BENCH_CONTENDER" // its name; anything else makes this binary run the benchmarks
	brokersVariable   = "BENCH_BROKERS"
	groupVariable     = "BENCH_GROUP"
	dirVariable       = "BENCH_DIR"     // of its own state
	profileVariable   = "BENCH_PROFILE" // folder for CPU profiles; none: no profile
)

// Topics of the group of a contender.
func inTopic(group string) string  { return group + "-in" }
func outTopic(group string) string { return group + "-out" }

// contend runs a contender until it is told to end.
func contend(name string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := contender{
		cfg:   kafka.Config{Brokers: strings.Split(os.Getenv(brokersVariable), ",")},
		group: os.Getenv(groupVariable), dir: os.Getenv(dirVariable),
	}
	run := map[string]func(context.Context) error{
		"engine": c.engine, "engine-stateless": c.engineStateless, "goka": c.goka, "sarama-stateless": c.sarama, "hold": c.hold,
	}[name]
	if run == nil {
		fmt.Fprintln(os.Stderr, "no contender", name)
		return 2
	}
	if dir := os.Getenv(profileVariable); dir != "" {
		f, err := os.Create(filepath.Join(dir, c.group+".pprof"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer pprof.StopCPUProfile()
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// contender is one way to do the work: read a row, write it, send one record on. The stateless ones send only.
type contender struct {
	cfg        kafka.Config
	group, dir string
}

func (c contender) topics() (in, out stage.Topic[[]byte]) {
	return stage.Topic[[]byte]{Name: inTopic(c.group), Codec: benchwork.Raw{}}, stage.Topic[[]byte]{Name: outTopic(c.group), Codec: benchwork.Raw{}}
}

// engine is the engine with all that a process of the pipeline has: a table, its follower, the journal.
func (c contender) engine(ctx context.Context) error {
	in, out := c.topics()
	g, err := engine.NewGroup(c.group,
		engine.Input(in, func(_ context.Context, m stage.Message[[]byte], row *[]byte) (stage.Result[[]byte], error) {
			var old []byte
			if row != nil {
				old = *row
			}
			next := benchwork.NextRow(old, m.Value)
			return stage.Result[[]byte]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}, Row: &next}, nil
		}),
		engine.Output(out),
		engine.Table(benchwork.Raw{}, benchwork.Later))
	if err != nil {
		return err
	}
	return c.run(ctx, g)
}

func (c contender) engineStateless(ctx context.Context) error {
	in, out := c.topics()
	g, err := engine.NewGroup(c.group,
		engine.Input(in, func(_ context.Context, m stage.Message[[]byte], _ *struct{}) (stage.Result[struct{}], error) {
			return stage.Result[struct{}]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}}, nil
		}), engine.Output(out))
	if err != nil {
		return err
	}
	return c.run(ctx, g)
}

func (c contender) run(ctx context.Context, g *engine.Group) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return engine.NewRunner(g, engine.Env{
		Brokers:    c.cfg.Brokers,
		Sarama:     func() (*sarama.Config, error) { return c.cfg.Sarama() },
		NewSender:  engine.KafkaSender(func() (*kafka.Producer, error) { return kafka.NewProducer(c.cfg, kafka.ProducerOptions{}) }),
		Stores:     kafka.NewStores(kafka.StoreOptions{Dir: filepath.Join(c.dir, "state"), Log: log}),
		Journal:    filepath.Join(c.dir, "running"),
		InstanceID: filepath.Base(c.dir), Log: log, Jitter: rand.Float64,
	}).Run(ctx)
}

// goka is bare goka with the client settings of the engine, its producer and its local stores.
func (c contender) goka(ctx context.Context) error {
	var failed error
	cfg := func() *sarama.Config {
		conf, err := c.cfg.Sarama()
		failed = errors.Join(failed, err)
		return conf
	}
	out := goka.Stream(outTopic(c.group))
	g := goka.DefineGroup(goka.Group(c.group),
		goka.Input(goka.Stream(inTopic(c.group)), new(codec.Bytes), func(ctx goka.Context, m any) {
			old, _ := ctx.Value().([]byte)
			ctx.Emit(out, ctx.Key(), m)
			ctx.SetValue(benchwork.NextRow(old, m.([]byte)))
		}), goka.Output(out, new(codec.Bytes)), goka.Persist(new(codec.Bytes)))
	topics := goka.NewTopicManagerConfig()
	topics.MismatchBehavior = goka.TMConfigMismatchBehaviorIgnore
	p, err := goka.NewProcessor(c.cfg.Brokers, g, goka.WithConsumerGroupBuilder(goka.ConsumerGroupBuilderWithConfig(cfg())),
		goka.WithConsumerSaramaBuilder(goka.SaramaConsumerBuilderWithConfig(cfg())), goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithConfig(cfg(), topics)),
		goka.WithProducerBuilder(kafka.GokaProducerBuilder(c.cfg, kafka.ProducerOptions{})), goka.WithHasher(kafka.Hasher()),
		goka.WithStorageBuilder(kafka.NewStores(kafka.StoreOptions{Dir: filepath.Join(c.dir, "state")}).Builder()), goka.WithLogger(quiet{}))
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	return p.Run(ctx)
}

type quiet struct{}

func (quiet) Print(...any)          {}
func (quiet) Println(...any)        {}
func (quiet) Printf(string, ...any) {}

// sarama is a consumer group loop: each record is sent on and marked when it is acknowledged, without caring for gaps.
func (c contender) sarama(ctx context.Context) error {
	cfg, err := c.cfg.Sarama()
	if err != nil {
		return err
	}
	cg, err := sarama.NewConsumerGroup(c.cfg.Brokers, c.group, cfg)
	if err != nil {
		return err
	}
	p, err := kafka.NewProducer(c.cfg, kafka.ProducerOptions{})
	if err != nil {
		return errors.Join(err, cg.Close())
	}
	go func() {
		for range cg.Errors() { // drained so that the group goes on
		}
	}()
	for ctx.Err() == nil && err == nil {
		err = cg.Consume(ctx, []string{inTopic(c.group)}, &loop{p, outTopic(c.group)})
	}
	return errors.Join(err, cg.Close(), p.Close())
}

type loop struct {
	p   *kafka.Producer
	out string
}

func (*loop) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*loop) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (l *loop) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for {
		select {
		case m, ok := <-c.Messages():
			if !ok {
				return nil
			}
			err := l.p.Send(s.Context(), kafka.Record{Topic: l.out, Key: m.Key, Value: m.Value}, func(_ int32, _ int64, err error) {
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
