package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag/blob"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/embed/builtin"
	"github.com/waymarkhq/waymark/rag/embed/openai"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
	"github.com/waymarkhq/waymark/sinks"
)

// store is what the process needs of a vector store.
type store interface {
	sinks.Sink
	sinks.Searcher
	sinks.Scanner
}

// parts are what the roles work with.
type parts struct {
	embedder embed.Embedder
	store    store
	parser   *parse.Parser
	splitter split.Splitter
	reader   *kafka.Reader
	limits   map[string]int

	documents *read.Reader
	blobs     *blob.Store // nil: there is none
}

// Sizes of batches. A batch of the store is about what it takes best. The linger is part of a document's latency, twice; with much
// less, the chunks of a document come in batches of their own, each with a receipt, and each receipt writes the document's row.
const (
	storeBatch      = 100
	eventBatch      = 100
	batchBytes      = 8 << 20
	batchLinger     = 20 * time.Millisecond
	storeSettle     = 2 * time.Second
	maxTableOffline = kafka.TableTombstoneRetention / 2
)

func (n *Node) has(roles ...string) bool {
	return slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(n.o.Roles, r) })
}

func (n *Node) openParts(ctx context.Context) (err error) {
	n.parts.limits = kafka.Limits(n.plan)
	if n.parts.parser, err = parse.New(parse.Limits{Time: n.cfg.Limits.ParseTime, Input: n.cfg.Limits.DocumentBytes}, parse.CacheDir(n.path("cache", "pdfium")), parse.External(n.cfg.ParserConfigs()...)); err != nil {
		return err
	}
	n.onClose("the parser", func(context.Context) error { return n.parts.parser.Close() })
	if n.parts.splitter, err = split.New(SplitOptions(n.cfg)); err != nil {
		return err
	}
	n.parts.documents = read.New(ReadOptions(n.cfg, n.parts.parser, n.parts.splitter))
	if err := n.openBlobs(ctx); err != nil {
		return err
	}
	if n.parts.embedder, err = n.newEmbedder(); err != nil {
		return err
	}
	if n.has(config.RoleAPI, config.RoleIndexer) {
		return n.openStore(ctx)
	}
	return nil
}

func (n *Node) newEmbedder() (embed.Embedder, error) {
	e := n.cfg.Embedding
	switch e.Kind {
	case "builtin":
		return builtin.New(), nil
	case "openai":
		key := func() (string, error) { return e.APIKey.Reveal(), nil }
		if e.APIKeyFile != "" {
			key = openai.KeyFromFile(e.APIKeyFile)
		}
		return openai.New(openai.Config{URL: e.URL, Model: e.Model, APIKey: key, Batch: e.Batch})
	}
	return nil, fmt.Errorf("embedding.kind %q is not available", e.Kind)
}

// openStore opens the store for the embedder's vectors. A service's length of vectors is learned by asking it once.
func (n *Node) openStore(ctx context.Context) error {
	if n.parts.embedder.Dimensions() == 0 {
		if err := n.awaitEmbedder(ctx); err != nil {
			return fmt.Errorf("asking the embedding service for the length of its vectors: %w", err)
		}
	}
	s, err := n.awaitStore(ctx)
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	n.parts.store = s
	n.onClose("the store", func(context.Context) error { return s.Close() })
	return nil
}

func (n *Node) pipelineOptions() pipeline.Options {
	d := n.cfg.Delivery
	o := pipeline.Options{
		Topics: n.topics, Partitions: int32(n.cfg.Kafka.Partitions), Epoch: n.cfg.Kafka.Epoch,
		Documents:    n.parts.documents,
		ReadSettings: fmt.Sprintf("%s;%s;%s", read.Version, n.parts.parser.Settings(), n.parts.splitter.Settings()),
		Embedder:     n.parts.embedder,
		EmbedBatch:   engine.BatchOptions{MaxMessages: n.cfg.Embedding.Batch, MaxBytes: batchBytes, Linger: batchLinger},
		Sink:         n.parts.store, Tenant: n.cfg.Weaviate.Tenant, StoreBatch: engine.BatchOptions{MaxMessages: storeBatch, MaxBytes: batchBytes, Linger: batchLinger}, Settle: storeSettle,
		EventBatch: engine.BatchOptions{MaxMessages: eventBatch, MaxBytes: batchBytes, Linger: batchLinger},
		Reader:     n.parts.reader, Limits: n.parts.limits, Metrics: processors.NewMetrics(n.registry, n.cfg.Store.Kind), Log: n.log, Now: fault.Now, After: time.After,
		Delivery: ledger.Settings{Attempts: d.Attempts, RemovalDelay: d.RemovalDelay, Keep: ledger.DefaultKeep, Backoff: backoff(d.Backoff)},
	}
	if n.parts.blobs != nil {
		o.Blobs, o.CollectBlobs, o.CollectEvery = n.parts.blobs, n.collectBlobs, collectEvery
		o.Jitter = rand.Float64
	}
	return o
}

// backoff is the wait before the n-th retry of a document: doubled each time, between the configured bounds.
func backoff(b config.Backoff) func(int) time.Duration {
	return func(attempt int) time.Duration {
		d := b.Initial
		for range attempt - 1 {
			if d >= b.Max {
				break
			}
			d *= 2
		}
		return min(d, b.Max)
	}
}

func (n *Node) env(role, instance string, topicIDs map[string]string, metrics *engine.Metrics, producers *kafka.Producers) engine.Env {
	log := n.log.With("role", role)
	return engine.Env{
		Brokers:   n.kafka.Brokers,
		Sarama:    func() (*sarama.Config, error) { return n.kafka.Sarama() },
		NewSender: engine.KafkaSender(producers.Open),
		Stores: kafka.NewStores(kafka.StoreOptions{Dir: n.path("state", role), TopicIDs: topicIDs, MaxOffline: maxTableOffline, Log: log,
			Expiry: map[string]kafka.Expiry{
				n.topics.Tables.Tracker:  {After: kafka.TrackerRetention, WrittenAt: codecs.WrittenAt},
				n.topics.Tables.Embedder: {After: kafka.EmbedderRetention, WrittenAt: codecs.WrittenAt},
			}}),
		Journal: n.path("state", role+".running"), Suspicions: n.suspicions, Standby: n.cfg.Kafka.Standby,
		Stage: role, InstanceID: instance, Log: log, Metrics: metrics, Jitter: rand.Float64,
	}
}
