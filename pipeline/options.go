package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/stage"
)

// Roles of a process that belong to the pipeline; each is one group.
const (
	RoleChunker     = "chunker"
	RoleEmbedder    = "embedder"
	RoleIndexer     = "indexer"
	RoleTracker     = "tracker"
	RoleDeadLetters = "deadletters"
)

// Roles lists them in the order in which a document meets them.
func Roles() []string {
	return []string{RoleChunker, RoleEmbedder, RoleIndexer, RoleTracker, RoleDeadLetters}
}

// Options of a pipeline. What a role does not need may be nil where that role is not asked for.
type Options struct {
	Topics     kafka.Topics
	Partitions int32
	Epoch      int

	Documents    processors.Reader
	ReadSettings string // names what reads them, parser and splitter with their versions and options
	// Blobs hold the content of large documents; nil: there is no blob store.
	Blobs processors.Blobs
	// CollectBlobs deletes blobs that nothing refers to; nil: nobody does. One process of the cluster calls it at a time, soon
	// after it became the one and then every CollectEvery. Where it fails it says so in Log and is called again the next time.
	CollectBlobs func(ctx context.Context) error
	CollectEvery time.Duration
	Jitter       func() float64 // in [0, 1)
	Log          *slog.Logger

	Embedder   embed.Embedder
	EmbedBatch engine.BatchOptions

	Sink       sinks.Sink
	Tenant     string
	StoreBatch engine.BatchOptions
	Settle     time.Duration
	Reader     *kafka.Reader
	// Limits are the largest batches of the topics, as the producers have them (kafka.Limits). A topic that is not among
	// them has kafka.DefaultTopicBytes.
	Limits map[string]int

	EventBatch engine.BatchOptions

	Delivery ledger.Settings
	Metrics  *processors.Metrics
	Now      func() time.Time
	After    func(time.Duration) <-chan time.Time
}

// Pipeline is the document pipeline, ready to run any of its groups.
type Pipeline struct {
	options Options
	names   kafka.Topics
	topics  processors.Topics
	stages  stages
}

type stages struct {
	chunker     *processors.Chunker
	embedder    *processors.Embedder
	indexer     *processors.Indexer
	tracker     *processors.Tracker
	deadLetters *processors.DeadLetters
}

// Topics are the pipeline's topics with the codecs of their values; now is the clock that rows carry.
func Topics(names kafka.Topics, now func() time.Time) processors.Topics {
	c := wire.NewCodecs(now)
	return processors.Topics{
		Documents:   stage.Topic[[]byte]{Name: names.Documents, Codec: processors.Bytes{}},
		Replays:     stage.Topic[rag.Replay]{Name: names.Replays, Codec: c.Replay},
		Chunks:      stage.Topic[rag.Chunk]{Name: names.Chunks, Codec: c.Chunk},
		Vectors:     stage.Topic[rag.Vector]{Name: names.Vectors, Codec: c.Vector},
		Progress:    stage.Topic[rag.Progress]{Name: names.Progress, Codec: c.Progress},
		Events:      stage.Topic[rag.Event]{Name: names.Events, Codec: c.Event},
		DeadLetters: stage.Topic[[]byte]{Name: names.DeadLetters, Codec: processors.Bytes{}},
		Commands:    stage.Topic[rag.Command]{Name: names.Commands, Codec: c.Command},

		ChunkerTable:     stage.Topic[ledger.ChunkerRow]{Name: names.Tables.Chunker, Codec: c.ChunkerRow},
		EmbedderTable:    stage.Topic[wire.CachedVector]{Name: names.Tables.Embedder, Codec: c.CachedVector},
		IndexerTable:     stage.Topic[ledger.DocumentRow]{Name: names.Tables.Indexer, Codec: c.DocumentRow},
		TrackerTable:     stage.Topic[ledger.TrackerRow]{Name: names.Tables.Tracker, Codec: c.TrackerRow},
		DeadLettersTable: stage.Topic[ledger.LetterRow]{Name: names.Tables.DeadLetters, Codec: c.LetterRow},
	}
}

// New puts the pipeline together.
func New(o Options) *Pipeline {
	t := Topics(o.Topics, o.Now)
	place := processors.Place{Documents: o.Topics.Documents, Epoch: o.Epoch,
		Home: func(key []byte) int32 { return kafka.PartitionOf(key, o.Partitions) }}
	p := &Pipeline{options: o, names: o.Topics, topics: t}
	p.stages = stages{
		tracker:     &processors.Tracker{Metrics: o.Metrics},
		deadLetters: &processors.DeadLetters{Topics: t, Place: place, Now: o.Now, Metrics: o.Metrics, MaxWait: o.longestWait()},
		embedder:    &processors.Embedder{Topics: t, Service: o.Embedder, Now: o.Now, Metrics: o.Metrics},
		chunker: &processors.Chunker{Topics: t, Place: place, Reader: o.Documents, Blobs: o.Blobs,
			Keep: o.Delivery.Keep, Now: o.Now, Metrics: o.Metrics},
		indexer: &processors.Indexer{Topics: t, Place: place, Sink: o.Sink, Tenant: o.Tenant, Documents: documentReader{o.Reader},
			MaxLetterBytes: o.letterLimit(), Settings: o.Delivery, Settle: o.Settle, Now: o.Now, After: o.After, Metrics: o.Metrics},
	}
	if e := o.Embedder; e != nil {
		p.stages.chunker.Model, p.stages.chunker.ModelSettings = e.Model(), e.Settings()
		p.stages.chunker.Settings = fmt.Sprintf("%s;model=%s;%s", o.ReadSettings, e.Model(), e.Settings())
	}
	return p
}

// longestWait is the longest time before an automatic retry.
func (o Options) longestWait() (longest time.Duration) {
	for attempt := 1; attempt < o.Delivery.Attempts && o.Delivery.Backoff != nil; attempt++ {
		longest = max(longest, o.Delivery.Backoff(attempt))
	}
	return longest
}

// letterLimit is the smallest limit of the topics in which a document record travels with what went wrong with it.
func (o Options) letterLimit() int {
	least := kafka.MaxRecordBytes
	for _, topic := range []string{o.Topics.DeadLetters, o.Topics.Commands, o.Topics.Replays, o.Topics.Tables.DeadLetters} {
		limit, ok := o.Limits[topic]
		if !ok {
			limit = kafka.DefaultTopicBytes
		}
		least = min(least, limit)
	}
	return least
}

// Group builds the group of a role.
func (p *Pipeline) Group(role string) (*engine.Group, error) {
	build := map[string]func() (*engine.Group, error){
		RoleChunker: p.chunker, RoleEmbedder: p.embedder, RoleIndexer: p.indexer, RoleTracker: p.tracker, RoleDeadLetters: p.deadLetters,
	}[role]
	if build == nil {
		return nil, fmt.Errorf("no role %q; there are %v", role, Roles())
	}
	return build()
}

// failures turns a stage's own signature into the engine's, for stages whose failures leave the row as it is.
func failures[R any](h func(ctx context.Context, record stage.Record, class stage.Class, err error) ([]stage.Output, error)) engine.Option {
	return engine.OnFailure(func(ctx context.Context, f engine.Failure, _ *R) (stage.Result[R], error) {
		outs, err := h(ctx, f.Record, f.Class, f.Err)
		return stage.Result[R]{Outputs: outs}, err
	})
}

// documentReader reads document records for letters.
type documentReader struct{ r *kafka.Reader }

func (d documentReader) ReadDocument(ctx context.Context, p rag.Position) (rag.Raw, error) {
	rec, err := d.r.Read(ctx, p.Topic, p.Partition, p.Offset)
	if errors.Is(err, kafka.ErrGone) {
		return rag.Raw{}, processors.ErrRecordGone
	}
	if err != nil {
		return rag.Raw{}, err
	}
	raw := rag.Raw{Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp}
	for _, h := range rec.Headers {
		raw.Headers = append(raw.Headers, rag.Header(h))
	}
	return raw, nil
}
