package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/datadir"
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/embedded"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/verify"
	"github.com/waymarkhq/waymark/views"
)

// VerifyOptions of one comparison.
type VerifyOptions struct {
	Config   *config.Config
	Repair   bool
	Progress func(step string)
	Log      *slog.Logger
}

// Verify compares the store of a configuration with the document rows, beside whatever else runs. Where the embedded broker
// of the data folder does not run, it runs as long as the comparison.
func Verify(ctx context.Context, o VerifyOptions) (report verify.Report, err error) {
	n := &Node{o: Options{Config: o.Config, Log: o.Log}, cfg: o.Config, log: o.Log, topics: kafka.NewTopics(o.Config.Kafka.TopicPrefix),
		registry: prometheus.NewRegistry(), failed: make(chan error, 1)}
	defer func() { err = errors.Join(err, n.Close()) }()
	if err := n.mustHaveStore(); err != nil {
		return report, err
	}
	if err := n.reachBroker(ctx); err != nil {
		return report, err
	}
	if err := n.awaitTopics(ctx); err != nil {
		return report, err
	}
	if n.parts.embedder, err = n.newEmbedder(); err != nil {
		return report, err
	}
	if err := n.openStore(ctx); err != nil {
		return report, err
	}
	documents, err := n.ownView(ctx)
	if err != nil {
		return report, err
	}
	lag, err := newLagReader(n.kafka, n.topics)
	if err != nil {
		return report, err
	}
	n.onClose("the lag reader", lag.Close)
	if err := documents.Fresh(ctx); err != nil {
		return report, fmt.Errorf("reading the document rows: %w", err)
	}
	v := &verify.Verifier{
		Rows: documents, Store: n.parts.store, Log: vectorLog{n.parts.reader, pipeline.Topics(n.topics, fault.Now).Vectors},
		Embedder: textEmbedder{n.parts.embedder}, Pipeline: settler{lag}, Tenant: n.cfg.Weaviate.Tenant,
		RemovalDelay: n.cfg.Delivery.RemovalDelay, Settle: storeSettle, After: time.After, Progress: o.Progress,
	}
	return v.Run(ctx, o.Repair)
}

// mustHaveStore keeps a wrong path from being a new store, in which everything would be missing.
func (n *Node) mustHaveStore() error {
	if n.cfg.Store.Kind != "sqlite" {
		return nil
	}
	if _, err := os.Stat(n.cfg.Store.Path); err != nil {
		return fmt.Errorf("there is no store to compare: %w", err)
	}
	return nil
}

// reachBroker finds the cluster: the configured one, the embedded broker of another process, or else its own.
func (n *Node) reachBroker(ctx context.Context) error {
	if len(n.cfg.Kafka.Brokers) > 0 {
		return n.startBroker(ctx)
	}
	at, known := embedded.Address(n.path("broker"), n.cfg.Broker.Listen)
	if !known {
		return fmt.Errorf("no broker has run in the data folder %s; name kafka.brokers, or another data folder", n.cfg.DataDir)
	}
	dir, err := datadir.Open(n.cfg.DataDir)
	var held *datadir.LockedError
	switch {
	case errors.As(err, &held):
		n.cfg.Kafka.Brokers = []string{at}
	case err != nil:
		return err
	default:
		n.onClose("the data folder", func(context.Context) error { return dir.Close() })
		n.o.Embedded = true
	}
	return n.startBroker(ctx)
}

// ownView follows the document rows in a folder of its own, because those of other processes are locked.
func (n *Node) ownView(ctx context.Context) (*views.Documents, error) {
	dir, err := os.MkdirTemp("", "waymark-verify-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the rows: %w", err)
	}
	n.onClose("the folder of the rows", func(context.Context) error { return os.RemoveAll(dir) })
	o := views.Options{Kafka: n.kafka, Dir: filepath.Join(dir, "views"), Log: n.log.With("part", "views")}
	documents := views.NewDocuments(o, pipeline.Topics(n.topics, fault.Now).IndexerTable, ledger.MergeDocumentRow)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- documents.Run(ctx) }()
	n.onClose("the view of the documents", func(context.Context) error {
		cancel()
		return <-done
	})
	return documents, nil
}

// vectorLog reads the vectors that were given to the store.
type vectorLog struct {
	reader *kafka.Reader
	topic  stage.Topic[rag.Vector]
}

// vectorBlock is how many records are held at once.
const vectorBlock = 500

// Vectors reads each partition from its end to its beginning: a document is in one partition.
func (l vectorLog) Vectors(ctx context.Context, do func(rag.Vector) error) error {
	partitions, err := l.reader.Partitions(ctx, l.topic.Name)
	if err != nil {
		return err
	}
	for p := range partitions {
		oldest, next, err := l.reader.Offsets(ctx, l.topic.Name, p)
		if err != nil {
			return err
		}
		for to := next; to > oldest; to -= vectorBlock {
			block, err := l.block(ctx, p, max(oldest, to-vectorBlock), to)
			if errors.Is(err, kafka.ErrGone) {
				break // deleted meanwhile, and so is all that is older
			}
			if err != nil {
				return err
			}
			for _, v := range slices.Backward(block) {
				if err := do(v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (l vectorLog) block(ctx context.Context, partition int32, from, to int64) ([]rag.Vector, error) {
	var block []rag.Vector
	err := l.reader.Range(ctx, l.topic.Name, partition, from, to, func(r kafka.Record) error {
		if r.Value == nil {
			return nil
		}
		v, err := l.topic.Codec.Decode(r.Value)
		if errors.Is(err, stage.ErrNewerFormat) {
			return fmt.Errorf("offset %d of %s, partition %d: %w", r.Offset, l.topic.Name, partition, err)
		}
		if err == nil { // what is not a vector of ours was never written
			block = append(block, v)
		}
		return nil
	})
	return block, err
}

// textEmbedder embeds texts of the store.
type textEmbedder struct{ service embed.Embedder }

// Embed gives nil for texts that the service refuses.
func (e textEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	results, err := e.service.Embed(ctx, texts)
	if err == nil && len(results) != len(texts) {
		err = fmt.Errorf("%d vectors for %d texts", len(results), len(texts))
	}
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(texts))
	for i, r := range results {
		vectors[i] = r.Vector
	}
	return vectors, nil
}

// settler tells from committed offsets how far the indexer is: a chunk's offset is committed once its receipt is
// acknowledged, and a receipt's once the row is.
type settler struct{ lag *lagReader }

const (
	settlePatience = time.Minute
	settlePoll     = 250 * time.Millisecond
)

// Settled waits until the indexer has dealt with every vector, and then with every progress record, that is in the log now.
func (s settler) Settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	t := s.lag.topics
	for _, topic := range []string{t.Vectors, t.Progress} {
		ends, err := s.lag.ends(topic)
		if err != nil {
			return fmt.Errorf("looking how far %s goes: %w", topic, err)
		}
		for {
			passed, err := s.lag.passed(t.Groups.Indexer, topic, ends)
			if err != nil {
				return fmt.Errorf("looking how far %s has come in %s: %w", t.Groups.Indexer, topic, err)
			}
			if passed {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s is behind in %s: %w", t.Groups.Indexer, topic, ctx.Err())
			case <-time.After(settlePoll):
			}
		}
	}
	return nil
}

// ends are the offsets that the next records of a topic get.
func (l *lagReader) ends(topic string) (map[int32]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked, err := l.partitions(topic)
	if err != nil {
		return nil, err
	}
	ends, err := l.offsets(asked, sarama.OffsetNewest)
	return ends[topic], err
}

// passed reports whether a group has committed every record of a topic below the given offsets.
func (l *lagReader) passed(group, topic string, ends map[int32]int64) (bool, error) {
	unread, err := l.unread(group, topic)
	if err != nil {
		return false, err
	}
	for p, first := range unread {
		if first < ends[p] {
			return false, nil
		}
	}
	return true, nil
}
