package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/kafka"
)

// runner runs one group in this process.
type runner struct {
	group          *Group
	env            Env
	log            *slog.Logger
	outages        *outages
	dirty          dirtyKeys
	suspects       *suspects
	sessionTimeout time.Duration
	balance        sarama.BalanceStrategy // remembers this process's partitions

	// Of the processor that runs now.
	sender   Sender
	client   sarama.Client
	consumer sarama.Consumer

	mu         sync.Mutex
	session    *session
	partitions map[int32]*partition
	running    bool
	lastErr    error
}

// Runner is a group as this process runs it. Run may be called once.
type Runner struct{ r *runner }

// NewRunner makes a runner of the group.
func NewRunner(g *Group, env Env) *Runner {
	env = env.withDefaults()
	if env.Stage == "" {
		env.Stage = g.name
	}
	env.Metrics.expect(env.Stage)
	r := &runner{group: g, env: env, log: env.Log.With("stage", env.Stage), partitions: map[int32]*partition{}}
	r.outages = &outages{r: r}
	r.balance = kafka.StickyCopartition(env.InstanceID, r.claims())
	return &Runner{r}
}

// Group that it runs.
func (r *Runner) Group() *Group { return r.r.group }

// Run processes messages until ctx ends. A processor that ends for another reason is built anew, with backoff (contract
// rule 15). It returns once everything that it started has ended; nil unless it could not even be configured.
func (r *Runner) Run(ctx context.Context) (err error) {
	if r.r.suspects, err = openSuspects(r.r); err != nil {
		return err
	}
	defer func() { err = joinErrors(err, r.r.suspects.close()) }()
	for try := 1; ; try++ {
		began := r.r.env.Clock.Mono()
		err := r.r.runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var fatal *configError
		if errors.As(err, &fatal) {
			return err
		}
		r.r.ended(err)
		if r.r.env.Clock.Mono()-began > time.Minute {
			try = 1
		}
		wait := r.r.env.Retry.wait(try, r.r.env.Jitter())
		r.r.log.Error("the processor ended and is built anew", "error", err, "wait", wait.String())
		r.r.env.Metrics.rebuilt.WithLabelValues(r.r.env.Stage).Inc()
		select {
		case <-ctx.Done():
			return nil
		case <-r.r.env.Clock.After(wait):
		}
	}
}

// configError is an error that building anew cannot mend.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

// Ready is nil while the group processes messages: its tables are recovered and nothing that it needs is away.
func (r *Runner) Ready() error {
	r.r.mu.Lock()
	running, last := r.r.running, r.r.lastErr
	r.r.mu.Unlock()
	if !running {
		if last != nil {
			return fmt.Errorf("%s is being built anew: %w", r.r.group.name, last)
		}
		return fmt.Errorf("%s has no partitions yet: joining the group or recovering its table", r.r.group.name)
	}
	return r.r.outages.err()
}

func (r *runner) ended(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = false
	r.lastErr = err
}

// followBytes are what a follower of the group's own table waits for, up to sarama's half a second: what a stranger has written
// is mended soon enough then, and brokers are not asked again for each row that the group itself has just written.
const followBytes = 64 << 10

func (r *runner) runOnce(ctx context.Context) (err error) {
	cfg, err := r.env.Sarama()
	if err != nil {
		return &configError{err}
	}
	r.sessionTimeout = cfg.Consumer.Group.Session.Timeout
	cfg.Consumer.Fetch.Min = followBytes
	client, err := sarama.NewClient(r.env.Brokers, cfg)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	r.client = client
	defer func() { err = joinErrors(err, client.Close()) }()
	if r.consumer, err = sarama.NewConsumerFromClient(client); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer func() { err = joinErrors(err, r.consumer.Close()) }()
	sender, producer, err := r.env.NewSender()
	if err != nil {
		return fmt.Errorf("making the producer: %w", err)
	}
	r.sender = sender
	owned := &ownedProducer{Producer: producer}
	defer func() { err = joinErrors(err, owned.Close()) }()
	p, err := goka.NewProcessor(r.env.Brokers, r.graph(), r.options(owned)...)
	if err != nil {
		return fmt.Errorf("building the processor: %w", err)
	}
	err = p.Run(ctx)
	if err == nil && ctx.Err() == nil {
		return errors.New("the processor stopped without an error")
	}
	return err
}

// ownedProducer is closed once, by whoever comes first: goka, when it ran, or the runner.
type ownedProducer struct {
	goka.Producer
	once sync.Once
	err  error
}

func (p *ownedProducer) Close() error {
	p.once.Do(func() { p.err = p.Producer.Close() })
	return p.err
}

// graph is the topology in goka's terms. Values pass through undecoded: goka ends a processor that cannot decode
// (contract rule 4).
func (r *runner) graph() *goka.GroupGraph {
	var edges []goka.Edge
	for _, in := range r.group.inputs {
		edges = append(edges, goka.Input(goka.Stream(in.topic), rawCodec{}, r.receive(in)))
	}
	for _, j := range r.group.joins {
		edges = append(edges, goka.Join(goka.Table(j.topic), rawCodec{}))
	}
	inputs := map[string]bool{}
	for _, in := range r.group.inputs {
		inputs[in.topic] = true
	}
	for _, out := range r.group.outputs {
		if !inputs[out] { // goka allows a topic once
			edges = append(edges, goka.Output(goka.Stream(out), rawCodec{}))
		}
	}
	if r.group.table != nil {
		edges = append(edges, goka.Persist(rawCodec{}))
	}
	return goka.DefineGroup(goka.Group(r.group.name), edges...)
}

func (r *runner) options(producer goka.Producer) []goka.ProcessorOption {
	fresh := func() *sarama.Config {
		cfg, err := r.env.Sarama()
		if err != nil { // it was made a moment ago from the same settings
			panic(fmt.Sprintf("client configuration: %v", err))
		}
		return cfg
	}
	groupConfig := fresh()
	if r.env.InstanceID != "" {
		groupConfig.Consumer.Group.InstanceId = r.staticID()
	}
	groupConfig.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{r.balance}
	inner := goka.ConsumerGroupBuilderWithConfig(groupConfig)
	topics := goka.NewTopicManagerConfig()
	topics.MismatchBehavior = goka.TMConfigMismatchBehaviorIgnore
	options := []goka.ProcessorOption{
		goka.WithClientID("waymark-" + r.group.name),
		goka.WithConsumerGroupBuilder(func(brokers []string, group, clientID string) (sarama.ConsumerGroup, error) {
			cg, err := inner(brokers, group, clientID)
			if err != nil {
				return nil, fmt.Errorf("joining: %w", err)
			}
			return &consumerGroup{cg, r}, nil
		}),
		goka.WithConsumerSaramaBuilder(goka.SaramaConsumerBuilderWithConfig(fresh())),
		goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithConfig(fresh(), topics)),
		goka.WithProducerBuilder(func([]string, string, func() hash32) (goka.Producer, error) { return producer, nil }),
		goka.WithStorageBuilder(r.guarded(r.env.Stores.Builder())),
		goka.WithUpdateCallback(r.mergeUpdate),
		goka.WithHasher(kafka.Hasher()),
		goka.WithNilHandling(goka.NilProcess),
		goka.WithLogger(gokaLogger{r.log}),
		goka.WithPartitionChannelSize(16),
	}
	if r.env.Standby {
		options = append(options, goka.WithHotStandby(), goka.WithRecoverAhead())
	}
	return options
}

// staticID is the group instance id of this process (KIP-345).
func (r *runner) staticID() string { return r.env.InstanceID + "-" + r.group.name }

func (r *runner) tableOf(topic string) *table {
	if r.group.table != nil && topic == r.group.TableTopic() {
		return r.group.table
	}
	for _, j := range r.group.joins {
		if j.topic == topic {
			return j.table
		}
	}
	return nil
}

func (r *runner) beginSession(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = s
	r.env.Metrics.recovery.WithLabelValues(r.env.Stage).Set(0)
}

// openPartition is called for every claim once the tables are recovered; the claims of one partition share what it opens.
func (r *runner) openPartition(s *session, id int32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.partitions[id] == nil {
		p, err := r.newPartition(s, id)
		if err != nil {
			return err
		}
		r.partitions[id] = p
		p.start()
	}
	r.running = true
	r.lastErr = nil
	r.env.Metrics.recovery.WithLabelValues(r.env.Stage).Set(1)
	return nil
}

func (r *runner) endSession(*session) {
	r.mu.Lock()
	all := r.partitions
	r.partitions = map[int32]*partition{}
	r.running = false
	r.mu.Unlock()
	var closing sync.WaitGroup
	for _, p := range all {
		closing.Go(p.close)
	}
	closing.Wait()
}

func (r *runner) owned(id int32) (*session, *partition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session, r.partitions[id]
}

// Collect refreshes the gauges; call it before the metrics are read.
func (r *Runner) Collect() {
	r.r.mu.Lock()
	s := r.r.session
	r.r.mu.Unlock()
	if s == nil {
		return
	}
	name := r.r.env.Stage
	var flying, gap int
	s.mu.Lock()
	defer s.mu.Unlock()
	r.r.env.Metrics.lag.DeletePartialMatch(prometheus.Labels{"stage": name})
	for k, g := range s.gates {
		f, w, mark, _ := g.stats()
		flying, gap = flying+f, gap+w
		r.r.env.Metrics.lag.WithLabelValues(name, k.topic, fmt.Sprint(k.partition)).Set(float64(max(0, g.end()-max(mark, 0))))
	}
	r.r.env.Metrics.inFlight.WithLabelValues(name).Set(float64(flying))
	r.r.env.Metrics.commitGap.WithLabelValues(name).Set(float64(gap))
}
