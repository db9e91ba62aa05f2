package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/kafka"
)

// Config is what a process needs to run groups. Kafka and DataDir must be set; everything else has a default.
type Config struct {
	Kafka kafka.Config
	// DataDir holds what this process keeps over restarts: the local copies of tables, the instance id by which Kafka gives
	// it its partitions back, and what it was working on, by which a message that kills the process is found. One process at
	// a time may use it. If it is lost, everything is rebuilt from Kafka.
	DataDir string
	// Topics are those of the application; TopicPlan makes the list. Run refuses to start where one is missing or has another
	// number of partitions, and the producers learn from it how large a record may be. nil: nothing is checked, and a
	// record may have kafka.DefaultTopicBytes.
	Topics []kafka.TopicSpec
	// CreateTopics lets Run create the topics that are missing and alter settings that differ. It never deletes a topic, and
	// never changes a number of partitions.
	CreateTopics bool
	// Epoch is raised when an input topic was made anew while the tables were kept. See TopicChangedError.
	Epoch int
	// Expiry by table topic, for tables whose rows end; others keep theirs.
	Expiry map[string]kafka.Expiry

	Log        *slog.Logger          // nil: nothing is logged
	Registerer prometheus.Registerer // nil: metrics are kept to themselves; one registry takes one supervisor

	Retry            RetryPolicy   // zero: 3 tries, from 100 ms to 10 s apart
	MaxInFlight      int           // messages per topic and partition; 0: 1,024
	MaxInFlightBytes int           // bytes per topic and partition; 0: 16 MiB
	DrainTimeout     time.Duration // how long what has begun may still finish at the end; 0: 10 s

	Clock  Clock          // nil: the machine's
	Jitter func() float64 // in [0, 1); nil: random
}

// Validate reports every field that is wrong.
func (c Config) Validate() error {
	var errs []error
	if err := c.Kafka.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("kafka: %w", err))
	}
	if c.DataDir == "" {
		errs = append(errs, errors.New("data dir: is missing"))
	}
	if c.CreateTopics && len(c.Topics) == 0 {
		errs = append(errs, errors.New("create topics: there are no topics to create"))
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"epoch", c.Epoch}, {"max in flight", c.MaxInFlight}, {"max in flight bytes", c.MaxInFlightBytes}, {"drain timeout", int(c.DrainTimeout)},
		{"retry tries", c.Retry.Tries}, {"retry initial", int(c.Retry.Initial)}, {"retry max", int(c.Retry.Max)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("%s: is below zero", f.name))
		}
	}
	if r := c.Retry; r != (RetryPolicy{}) && (r.Tries == 0 || r.Initial == 0 || r.Max < r.Initial) {
		errs = append(errs, errors.New("retry: tries and initial must be above zero, and max not below initial"))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = SystemClock()
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	if c.Retry == (RetryPolicy{}) {
		c.Retry = Env{}.withDefaults().Retry
	}
	return c
}

// legalGroup is what a group's name must be to make the names of a topic and of a folder.
var legalGroup = regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,199}$`)

// Supervisor runs several groups in one process: it takes the data folder, looks at the topics, gives each group what it
// needs, and ends them all together. A group whose processor ends is built anew (see Runner); the others go on meanwhile.
type Supervisor struct {
	config  Config
	groups  []*Group
	metrics *Metrics

	mu      sync.Mutex
	ran     bool
	runners []*Runner
	waiting error // why there are no runners yet
}

// NewSupervisor connects to nothing yet. It fails for a configuration that cannot work, and reports all of its faults.
func NewSupervisor(c Config, groups ...*Group) (*Supervisor, error) {
	errs := []error{c.Validate()}
	if len(groups) == 0 {
		errs = append(errs, errors.New("there is no group to run"))
	}
	names := map[string]bool{}
	for _, g := range groups {
		switch {
		case !legalGroup.MatchString(g.name):
			errs = append(errs, fmt.Errorf("group %q: a name has 1 to 200 letters, digits, dots, underscores and hyphens, no dot first", g.name))
		case names[g.name]:
			errs = append(errs, fmt.Errorf("group %s: is there twice", g.name))
		}
		names[g.name] = true
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("running groups: %w", err)
	}
	return &Supervisor{config: c.withDefaults(), groups: groups, metrics: NewMetrics(c.Registerer), waiting: errors.New("not started")}, nil
}

// Run is NewSupervisor and Supervisor.Run, for a process that needs neither health nor anything else of the Supervisor.
func Run(ctx context.Context, c Config, groups ...*Group) error {
	s, err := NewSupervisor(c, groups...)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// Run runs the groups until ctx ends, and returns once they have drained and ended; then it returns nil. It waits for a Kafka
// that is away. It returns an error for what waiting cannot mend: another process has the data folder (*DataDirError), a topic
// is missing or wrong, or gets other partitions (*TopicsError), a topic was made anew (*TopicChangedError, *TopicRemadeError),
// settings that the client refuses. It may be called once.
func (s *Supervisor) Run(ctx context.Context) error {
	s.mu.Lock()
	again := s.ran
	s.ran = true
	s.mu.Unlock()
	if again {
		return errors.New("a supervisor runs once")
	}
	if _, err := s.config.Kafka.Sarama(); err != nil { // a file that is missing, say
		return err
	}
	dir, err := openDataDir(s.config.DataDir)
	if err != nil {
		return err
	}
	defer func() {
		s.note(errors.New("ended"))
		if err := dir.close(); err != nil {
			s.config.Log.Error("letting go of the data folder failed", "error", err)
		}
	}()
	instance, err := dir.instanceID()
	if err != nil {
		return err
	}
	ids, err := s.prepare(ctx, dir)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	producers := kafka.NewProducers(s.config.Kafka, s.producerOptions())
	runners := make([]*Runner, len(s.groups))
	for i, g := range s.groups {
		journal, err := dir.journal(g.name)
		if err != nil {
			return err
		}
		runners[i] = NewRunner(g, s.env(g, instance, journal, ids, producers))
	}
	s.mu.Lock()
	s.runners = runners
	s.mu.Unlock()
	return s.runAll(ctx, runners)
}

// prepare looks at the topics until Kafka answers.
func (s *Supervisor) prepare(ctx context.Context, dir *dataDir) (map[string]string, error) {
	for try := 1; ; try++ {
		ids, err := s.checkTopics(ctx, dir)
		if err == nil || isFinal(err) {
			return ids, err
		}
		s.note(fmt.Errorf("looking at the topics: %w", err))
		wait := s.config.Retry.wait(try, s.config.Jitter())
		s.config.Log.Warn("the topics cannot be looked at", "error", err, "wait", wait.String())
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.config.Clock.After(wait):
		}
	}
}

// collectEvery is how old the gauges of lag and of what is in flight may be.
const collectEvery = 5 * time.Second

func (s *Supervisor) runAll(ctx context.Context, runners []*Runner) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(runners))
	for _, r := range runners {
		go func() {
			err := r.Run(ctx)
			if err != nil {
				err = fmt.Errorf("group %s: %w", r.Group().Name(), err)
			}
			ended <- err
		}()
	}
	watch := make(chan error, 1)
	go func() { watch <- s.watchTopics(ctx) }()
	var all error
	for left := len(runners); left > 0; {
		select {
		case err := <-watch:
			watch = nil
			all = joinErrors(all, err)
			cancel()
		case err := <-ended:
			left--
			all = joinErrors(all, err)
			if err != nil {
				cancel() // half an application is worse than none: somebody would wait for the other half
			}
		case <-s.config.Clock.After(collectEvery):
			for _, r := range runners {
				r.Collect()
			}
		}
	}
	cancel()
	if watch != nil {
		all = joinErrors(all, <-watch)
	}
	return all
}

// Ready is nil while every group processes messages; else it says what is missing, for all of them.
func (s *Supervisor) Ready() error {
	s.mu.Lock()
	runners, waiting := s.runners, s.waiting
	s.mu.Unlock()
	if runners == nil {
		return waiting
	}
	var all error
	for _, r := range runners {
		all = joinErrors(all, r.Ready())
	}
	return all
}

// note tells why nothing runs.
func (s *Supervisor) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting, s.runners = err, nil
}

func (s *Supervisor) producerOptions() kafka.ProducerOptions {
	options := kafka.ProducerOptions{Gather: true}
	if topics := s.config.Topics; len(topics) > 0 {
		options.Limits = kafka.Limits(topics)
		for _, spec := range topics {
			if _, ok := options.Limits[spec.Name]; !ok { // the broker's default holds
				options.Limits[spec.Name] = kafka.DefaultTopicBytes
			}
		}
	}
	return options
}

func (s *Supervisor) env(g *Group, instance, journal string, topicIDs map[string]string, producers *kafka.Producers) Env {
	c := s.config
	return Env{
		Brokers:   c.Kafka.Brokers,
		Sarama:    func() (*sarama.Config, error) { return c.Kafka.Sarama() },
		NewSender: KafkaSender(producers.Open),
		Stores: kafka.NewStores(kafka.StoreOptions{Dir: filepath.Join(c.DataDir, "state", g.name), TopicIDs: topicIDs, Expiry: c.Expiry,
			MaxOffline: kafka.TableTombstoneRetention / 2, Log: c.Log.With("stage", g.name), Now: c.Clock.Now}),
		Journal: journal, InstanceID: instance, Clock: c.Clock, Log: c.Log, Metrics: s.metrics, Retry: c.Retry, Jitter: c.Jitter,
		MaxInFlight: c.MaxInFlight, MaxInFlightBytes: c.MaxInFlightBytes, DrainTimeout: c.DrainTimeout,
	}
}
