// Package node puts the parts together: broker, topics, store, embedder, the groups of the asked roles, views and the API,
// in one process, and takes them down in the opposite order.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/embedded"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/processors"
)

// Options of a node.
type Options struct {
	Config *config.Config
	Roles  []string // config.Roles
	// Embedded starts the embedded broker in the data folder, for this process.
	Embedded bool
	// Insecure allows the API to serve without tokens where others can reach it.
	Insecure bool
	Log      *slog.Logger
}

// Addresses that a node serves on, as host:port; "" for what it does not serve.
type Addresses struct{ API, Broker, Monitor string }

// closer is something that was started, and how it ends.
type closer struct {
	name string
	stop func(context.Context) error
}

// Node is a running process. Make it with Start.
type Node struct {
	o         Options
	cfg       *config.Config
	log       *slog.Logger
	topics    kafka.Topics
	kafka     kafka.Config
	plan      []kafka.TopicSpec
	registry  *prometheus.Registry
	parts     parts
	runners   []*engine.Runner
	guard     guard
	views     *nodeViews
	lag       *lagReader
	retention *retentionWatch

	suspicions suspicions
	addresses  Addresses

	cancel  context.CancelFunc
	running sync.WaitGroup
	failed  chan error
	closers []closer
}

// drainTimeout bounds the end of each part.
const drainTimeout = 20 * time.Second

// Start starts everything and returns once it serves; a role may still recover its table then. What was started before an
// error is ended again.
func Start(ctx context.Context, o Options) (n *Node, err error) {
	n = &Node{o: o, cfg: o.Config, log: o.Log, topics: kafka.NewTopics(o.Config.Kafka.TopicPrefix), registry: prometheus.NewRegistry(), failed: make(chan error, 16)}
	n.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if err := n.startBroker(ctx); err != nil {
		return n, err
	}
	if len(o.Roles) == 0 {
		return n, nil // the broker alone
	}
	if err := n.awaitTopics(ctx); err != nil {
		return n, err
	}
	if err := n.openParts(ctx); err != nil {
		return n, err
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.cancel = cancel
	if err := n.startRoles(work); err != nil {
		return n, err
	}
	n.running.Go(func() { n.watchCluster(work) })
	if slices.Contains(o.Roles, config.RoleAPI) {
		return n, n.startAPI(work)
	}
	return n, n.startMonitor()
}

// Addresses that it serves on.
func (n *Node) Addresses() Addresses { return n.addresses }

// Failed yields the error of a part that ended on its own and cannot be built anew.
func (n *Node) Failed() <-chan error { return n.failed }

// Close ends everything: first what takes new work, then the roles, then what they need. It may be called once.
func (n *Node) Close() error {
	var all error
	end := func(c closer) {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		if err := c.stop(ctx); err != nil {
			all = errors.Join(all, fmt.Errorf("ending %s: %w", c.name, err))
		}
	}
	for _, c := range slices.Backward(n.closers) {
		end(c)
	}
	return all
}

func (n *Node) onClose(name string, stop func(context.Context) error) {
	n.closers = append(n.closers, closer{name, stop})
}

func (n *Node) path(elem ...string) string {
	return filepath.Join(append([]string{n.cfg.DataDir}, elem...)...)
}

func (n *Node) startBroker(ctx context.Context) error {
	n.kafka = KafkaConfig(n.cfg)
	var err error
	n.plan, err = Plan(n.cfg, n.o.Embedded)
	if err != nil || !n.o.Embedded {
		return err
	}
	b, err := embedded.Start(ctx, embedded.Options{Dir: n.path("broker"), Listen: n.cfg.Broker.Listen, Plan: n.plan, Log: n.log.With("part", "broker")})
	if err != nil {
		return fmt.Errorf("starting the embedded broker: %w", err)
	}
	n.onClose("the embedded broker", b.Close)
	n.kafka = b.Config()
	n.addresses.Broker = b.Addrs()[0]
	return nil
}

// KafkaConfig is how a configuration reaches its cluster.
func KafkaConfig(cfg *config.Config) kafka.Config {
	k := kafka.Config{Brokers: cfg.Kafka.Brokers, ClientID: "waymark"}
	if t := cfg.Kafka.TLS; t.Enabled {
		k.TLS = &kafka.TLS{CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName}
	}
	if s := cfg.Kafka.SASL; s.Mechanism != "" {
		k.SASL = &kafka.SASL{Mechanism: s.Mechanism, User: s.Username, Password: s.Password.Reveal(), Token: tokenSource(s.TokenFile, s.TokenCommand)}
	}
	return k
}

// Plan is the topic plan of a configuration.
func Plan(cfg *config.Config, inEmbedded bool) ([]kafka.TopicSpec, error) {
	return kafka.Plan(kafka.PlanOptions{Prefix: cfg.Kafka.TopicPrefix, Partitions: int32(cfg.Kafka.Partitions),
		Replication: int16(cfg.Kafka.Replication), Embedded: inEmbedded})
}

func (n *Node) startRoles(ctx context.Context) error {
	instance, err := n.instanceID()
	if err != nil {
		return err
	}
	p := pipeline.New(n.pipelineOptions())
	metrics := engine.NewMetrics(n.registry)
	if n.has(config.RoleIndexer) {
		metrics.ExpectDependency(processors.DependencyStore)
	}
	ids, err := kafka.TopicIDs(ctx, n.kafka, n.tables()...)
	if err != nil {
		return fmt.Errorf("looking at the tables: %w", err)
	}
	if err := os.MkdirAll(n.path("state"), 0o700); err != nil {
		return fmt.Errorf("making the folder of local state: %w", err)
	}
	roles := n.pipelineRoles()
	if len(roles) > 0 {
		producer, err := kafka.NewProducer(n.kafka, kafka.ProducerOptions{Limits: n.parts.limits})
		if err != nil {
			return err
		}
		n.onClose("the producer of suspicions", func(context.Context) error { return producer.Close() })
		n.suspicions = suspicions{n.parts.reader, producer, n.topics.Cluster}
	}
	producers := kafka.NewProducers(n.kafka, kafka.ProducerOptions{Limits: n.parts.limits, Gather: true})
	for _, role := range roles {
		g, err := p.Group(role)
		if err != nil {
			return err
		}
		n.runners = append(n.runners, engine.NewRunner(g, n.env(role, instance, ids, metrics, producers)))
	}
	if err := n.checkAccess(ctx); err != nil {
		return err
	}
	for _, r := range n.runners {
		n.running.Go(func() {
			if err := r.Run(ctx); err != nil {
				n.failed <- fmt.Errorf("%s: %w", r.Group().Name(), err)
			}
		})
	}
	n.onClose("the roles", func(context.Context) error {
		n.cancel()
		n.running.Wait()
		return nil
	})
	return nil
}

func (n *Node) pipelineRoles() []string {
	var roles []string
	for _, role := range pipeline.Roles() {
		if slices.Contains(n.o.Roles, role) {
			roles = append(roles, role)
		}
	}
	return roles
}

func (n *Node) tables() []string {
	t := n.topics.Tables
	return []string{t.Chunker, t.Embedder, t.Indexer, t.Tracker, t.DeadLetters}
}

// legalInstanceID is what Kafka takes, with room for what the roles add to it.
var legalInstanceID = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,128}$`)

// instanceID names this data folder for static membership: a process that starts again on it gets its partitions back at
// once, because Kafka knows it.
func (n *Node) instanceID() (string, error) {
	path := n.path("instance-id")
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("reading the instance id: %w", err)
	}
	id := strings.TrimSpace(string(b))
	if legalInstanceID.MatchString(id) {
		return id, nil
	}
	if err == nil {
		n.log.Warn("the instance id cannot be used, and another one is made", "file", path)
	}
	id = uuid.NewString()
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing the instance id: %w", err)
	}
	return id, nil
}

// guard remembers why this process must not work: its topics were made anew or got more partitions.
type guard struct {
	mu  sync.Mutex
	err error
}

func (g *guard) set(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

// Err is the reason; nil normally.
func (g *guard) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// watchEvery is how often the topics' identity is looked at.
const watchEvery = 15 * time.Second

// watchCluster ends the process when the topics under it are no longer those that it started on: what it writes would get
// versions that mean something else.
func (n *Node) watchCluster(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
		err := kafka.CheckCluster(ctx, n.kafka, n.topics, n.cfg.Kafka.Epoch)
		var changed *kafka.EpochError
		if errors.As(err, &changed) {
			n.guard.set(err)
			n.failed <- err
			return
		}
	}
}

// listen opens a listener and sees to it that it is closed.
func listen(address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	return ln, nil
}
