package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/token"
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/sqlite"
	"github.com/waymarkhq/waymark/sinks/weaviate"
)

const (
	// startPatience is how long a process waits for a server that starts beside it.
	startPatience = 60 * time.Second
	// learnTimeout bounds one question to the embedding service.
	learnTimeout = 30 * time.Second
)

// awaitStore opens the store; one that is not there yet is waited for. What waiting cannot mend, vectors of another model,
// is refused at once.
func (n *Node) awaitStore(ctx context.Context) (s store, err error) {
	err = await(ctx, n.log, wait{"the store", startPatience, time.Second}, func(ctx context.Context) (retry bool, err error) {
		s, err = n.dialStore(ctx)
		var space *sinks.SpaceError
		return n.cfg.Store.Kind != "sqlite" && !errors.As(err, &space), err
	})
	return s, err
}

// awaitEmbedder asks the embedding service once, which tells the length of its vectors; one that is not there yet is waited
// for. A wrong key or model is refused at once.
func (n *Node) awaitEmbedder(ctx context.Context) error {
	return await(ctx, n.log, wait{"the embedding service", startPatience, time.Second}, func(ctx context.Context) (retry bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, learnTimeout)
		defer cancel()
		err = n.parts.embedder.Canary(ctx)
		var e *embed.Error
		return !errors.As(err, &e) || e.Reason != embed.ReasonMisconfigured, err
	})
}

func (n *Node) dialStore(ctx context.Context) (store, error) {
	model, dimensions := n.parts.embedder.Model(), n.parts.embedder.Dimensions()
	switch n.cfg.Store.Kind {
	case "sqlite":
		return opened(sqlite.Open(ctx, filepath.Clean(n.cfg.Store.Path), sqlite.Options{Model: model, Dimensions: dimensions}))
	case "weaviate":
		o, err := weaviateOptions(n.cfg.Weaviate)
		if err != nil {
			return nil, err
		}
		o.Model, o.Dimensions = model, dimensions
		return opened(weaviate.Open(ctx, o))
	}
	return nil, fmt.Errorf("store.kind %q is not available", n.cfg.Store.Kind)
}

// opened keeps a nil store of a type from becoming a store that is not nil.
func opened[S store](s S, err error) (store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// weaviateOptions is how a configuration reaches its server.
func weaviateOptions(w config.Weaviate) (weaviate.Options, error) {
	o := weaviate.Options{URL: w.URL, GRPC: w.GRPC, APIKey: w.APIKey.Reveal(), Token: tokenSource(w.TokenFile, w.TokenCommand),
		Collection: w.Collection, Tenant: w.Tenant, ConsistencyLevel: w.Consistency, Replication: w.Replication, Writers: w.Writers}
	if w.TLS == (config.WeaviateTLS{}) {
		return o, nil
	}
	var err error
	// The settings and checks are those of the brokers' TLS.
	o.TLS, err = (&kafka.TLS{CAFile: w.TLS.CAFile, CertFile: w.TLS.CertFile, KeyFile: w.TLS.KeyFile, ServerName: w.TLS.ServerName}).Config()
	return o, err
}

// tokenSource gives bearer tokens; nil where none are configured.
func tokenSource(file string, command []string) func(context.Context) (string, error) {
	switch {
	case file != "":
		return token.FromFile(file)
	case len(command) > 0:
		return token.FromCommand(command, time.Now)
	}
	return nil
}
