package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/blob"
)

// collectEvery is how often blobs are looked through that nothing refers to any more.
const collectEvery = 24 * time.Hour

// openBlobs opens the blob store, where there is one and a role works with it.
func (n *Node) openBlobs(ctx context.Context) error {
	if n.cfg.Blobs.URL == "" || !n.has(config.RoleAPI, config.RoleChunker, config.RoleDeadLetters) {
		return nil
	}
	s, err := blob.Open(ctx, n.cfg.Blobs.URL, fault.Now)
	if err != nil {
		return err
	}
	n.parts.blobs = s
	n.onClose("the blob store", func(context.Context) error { return s.Close() })
	return nil
}

// blobsAway is what the API says where the blob store does not answer.
func blobsAway(err error) error {
	return &api.Unavailable{Reason: "blobs_away", RetryAfter: time.Second, Err: err}
}

// apiBlobs is the blob store as the API writes and reads it.
type apiBlobs struct{ store *blob.Store }

// Write keeps what r gives.
func (b apiBlobs) Write(ctx context.Context, r io.Reader) (rag.Blob, error) {
	ref, err := b.store.Write(ctx, r)
	var p *api.Problem
	if err != nil && !errors.As(err, &p) {
		err = blobsAway(err)
	}
	return ref, err
}

// Open reads a blob.
func (b apiBlobs) Open(ctx context.Context, ref rag.Blob) (io.ReadCloser, error) {
	r, err := b.store.Open(ctx, ref)
	switch {
	case errors.Is(err, blob.ErrMissing):
		return nil, fmt.Errorf("%w: %w", api.ErrBlobMissing, err)
	case err != nil:
		return nil, blobsAway(err)
	}
	return r, nil
}

// collectBlobs deletes blobs that nothing refers to, once.
func (n *Node) collectBlobs(ctx context.Context) error {
	found, err := n.collect(ctx, false)
	if err == nil && found.Deleted+found.Abandoned > 0 {
		n.log.Info("blobs were collected", "deleted", found.Deleted, "bytes", found.DeletedBytes, "kept", found.Kept)
	}
	return err
}

func (n *Node) collect(ctx context.Context, dryRun bool) (found blob.Collected, err error) {
	lag, err := newLagReader(n.kafka, n.topics)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, lag.Close(context.WithoutCancel(ctx))) }()
	refs := blobReferences{reader: n.parts.reader, lag: lag, topics: n.topics, rows: pipeline.Topics(n.topics, fault.Now).DeadLettersTable.Codec}
	c := &blob.Collector{Store: n.parts.blobs, References: refs.each, Now: fault.Now, DryRun: dryRun}
	return c.Collect(ctx)
}

// CollectOptions of one collection of blobs.
type CollectOptions struct {
	Config *config.Config
	DryRun bool
	Log    *slog.Logger
}

// CollectBlobs deletes blobs that nothing refers to, beside whatever else runs. Where the embedded broker of the data folder
// does not run, it runs as long as the collection.
func CollectBlobs(ctx context.Context, o CollectOptions) (found blob.Collected, err error) {
	n := &Node{o: Options{Config: o.Config, Log: o.Log, Roles: []string{config.RoleDeadLetters}}, cfg: o.Config, log: o.Log,
		topics: kafka.NewTopics(o.Config.Kafka.TopicPrefix), registry: prometheus.NewRegistry(), failed: make(chan error, 1)}
	defer func() { err = errors.Join(err, n.Close()) }()
	if n.cfg.Blobs.URL == "" {
		return found, errors.New("there is no blob store: name blobs.url")
	}
	if err := n.reachBroker(ctx); err != nil {
		return found, err
	}
	if err := n.awaitTopics(ctx); err != nil {
		return found, err
	}
	if err := n.openBlobs(ctx); err != nil {
		return found, err
	}
	return n.collect(ctx, o.DryRun)
}
