package node

import (
	"context"
	"fmt"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
)

// startAPI opens the views and serves the API.
func (n *Node) startAPI(ctx context.Context) error {
	n.startViews(ctx)
	var err error
	if n.lag, err = newLagReader(n.kafka, n.topics); err != nil {
		return err
	}
	n.onClose("the lag reader", n.lag.Close)
	n.retention = newRetentionWatch(n.lag, n.parts.reader, n.log.With("part", "retention"), n.registry)
	n.running.Go(func() { n.retention.run(ctx) })
	n.registry.MustRegister(newLettersCollector(n.views.letters.Counts))
	producer, err := kafka.NewProducer(n.kafka, kafka.ProducerOptions{Limits: n.parts.limits, DeliveryTimeout: publishTimeout})
	if err != nil {
		return err
	}
	n.onClose("the API's producer", func(context.Context) error { return producer.Close() })
	pub := publisher{producer: producer, topics: pipeline.Topics(n.topics, fault.Now), epoch: n.cfg.Kafka.Epoch, blobs: n.parts.blobs, refuse: n.refusal}
	deps := api.Dependencies{
		Publisher: pub, Documents: documents{n.views.documents}, DocumentLister: documentLister{n.views.documents}, Messages: messages{n.views.messages}, Letters: n.views.letters,
		LetterLister: letters{n.views.letters}, Payloads: letters{n.views.letters}, Commander: pub, Searcher: n.parts.store, Embedder: queryEmbedder{n.parts.embedder},
		Readiness: n, Freshness: n.views.documents, Stats: n, Gatherer: gatherer{n}, Registerer: n.registry, Logger: n.log.With("part", "api"),
	}
	if n.parts.blobs != nil {
		deps.Blobs = apiBlobs{n.parts.blobs}
	}
	server, err := api.New(n.apiConfig(), deps)
	if err != nil {
		return err
	}
	ln, err := listen(n.cfg.API.Listen)
	if err != nil {
		return err
	}
	if err := server.Start(ln); err != nil {
		return err
	}
	n.addresses.API = ln.Addr().String()
	n.onClose("the API", server.Shutdown)
	return nil
}

// publishTimeout is how long an acknowledgement may take before the API answers 503.
const publishTimeout = 20 * time.Second

func (n *Node) apiConfig() api.Config {
	c := api.Config{Insecure: n.o.Insecure, ViewLag: n.cfg.Delivery.ViewLag, SearchTimeout: n.cfg.Delivery.RemovalDelay - n.cfg.Delivery.ViewLag, MaxDocumentBytes: int64(n.cfg.Limits.DocumentBytes)}
	for _, t := range n.cfg.API.Tokens {
		scopes := make([]api.Scope, len(t.Scopes))
		for i, s := range t.Scopes {
			scopes[i] = api.Scope(s)
		}
		c.Tokens = append(c.Tokens, api.Token{Name: t.Name, SHA256: t.Hash, Scopes: scopes})
	}
	return c
}

// queryEmbedder embeds the text of a search.
type queryEmbedder struct{ service embed.Embedder }

// EmbedQuery is the vector of a text.
func (q queryEmbedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	results, err := q.service.Embed(ctx, []string{text})
	switch {
	case err != nil && embed.ClassOf(err) == rag.ClassOutage:
		return nil, &api.Unavailable{Reason: "embedder_away", RetryAfter: time.Second, Err: err}
	case err != nil:
		return nil, fmt.Errorf("embedding the query: %w", err)
	case len(results) != 1:
		return nil, fmt.Errorf("embedding the query: %d vectors for one text", len(results))
	}
	return results[0].Vector, results[0].Err
}

// Stats counts what is there.
func (n *Node) Stats(ctx context.Context) (api.Stats, error) {
	s := api.Stats{Documents: n.views.documents.Counts(), DeadLetters: n.views.letters.Counts()}
	var err error
	if s.Lag, err = n.lag.Lag(ctx); err != nil {
		return s, &api.Unavailable{Reason: "kafka_away", RetryAfter: time.Second, Err: err}
	}
	if s.Store.Chunks, err = n.parts.store.Count(ctx); err != nil {
		return s, fmt.Errorf("counting the store's chunks: %w", err)
	}
	return s, nil
}
