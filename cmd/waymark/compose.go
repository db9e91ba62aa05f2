package main

import (
	"context"
	"log/slog"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/node"
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/embedded"
	"github.com/waymarkhq/waymark/rag/blob"
	"github.com/waymarkhq/waymark/verify"
)

func newRuntime(*slog.Logger) Runtime { return nodeRuntime{} }

// nodeRuntime runs roles in this process.
type nodeRuntime struct{}

// Up runs every role; without brokers the embedded one too.
func (r nodeRuntime) Up(ctx context.Context, cfg *config.Config, o ServeOptions) error {
	return r.serve(ctx, node.Options{Config: cfg, Roles: config.Roles(), Embedded: len(cfg.Kafka.Brokers) == 0, Insecure: o.Insecure, Log: o.Log}, o)
}

// Run runs some roles on the configured cluster.
func (r nodeRuntime) Run(ctx context.Context, cfg *config.Config, roles []string, o ServeOptions) error {
	return r.serve(ctx, node.Options{Config: cfg, Roles: roles, Insecure: o.Insecure, Log: o.Log}, o)
}

// Broker runs the embedded broker alone.
func (r nodeRuntime) Broker(ctx context.Context, cfg *config.Config, o ServeOptions) error {
	return r.serve(ctx, node.Options{Config: cfg, Embedded: true, Insecure: o.Insecure, Log: o.Log}, o)
}

// serve runs a node until ctx ends or a part of it cannot go on.
func (nodeRuntime) serve(ctx context.Context, no node.Options, o ServeOptions) error {
	n, err := node.Start(ctx, no)
	if err != nil {
		return err
	}
	at := n.Addresses()
	o.Ready(Addresses{API: at.API, Broker: at.Broker, Monitor: at.Monitor})
	select {
	case <-ctx.Done():
		return n.Close()
	case err := <-n.Failed():
		if closeErr := n.Close(); closeErr != nil {
			o.Log.Error("ending after a failure", "error", closeErr)
		}
		return err
	}
}

// Verify compares the store with the document rows.
func (nodeRuntime) Verify(ctx context.Context, cfg *config.Config, o VerifyOptions) (verify.Report, error) {
	return node.Verify(ctx, node.VerifyOptions{Config: cfg, Repair: o.Repair, Progress: o.Progress, Log: o.Log})
}

// CollectBlobs deletes blobs that nothing refers to.
func (nodeRuntime) CollectBlobs(ctx context.Context, cfg *config.Config, o CollectOptions) (blob.Collected, error) {
	return node.CollectBlobs(ctx, node.CollectOptions{Config: cfg, DryRun: o.DryRun, Log: o.Log})
}

// PlanTopics compares the plan with the cluster.
func (nodeRuntime) PlanTopics(ctx context.Context, cfg *config.Config) ([]kafka.Difference, error) {
	plan, err := planFor(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return kafka.Diff(ctx, node.KafkaConfig(cfg), plan)
}

// ApplyTopics makes what is missing.
func (nodeRuntime) ApplyTopics(ctx context.Context, cfg *config.Config) ([]kafka.Difference, error) {
	plan, err := planFor(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return kafka.Apply(ctx, node.KafkaConfig(cfg), plan)
}

// planFor is the plan for the cluster that the configuration names; it may be the broker of `waymark broker`.
func planFor(ctx context.Context, cfg *config.Config) ([]kafka.TopicSpec, error) {
	id, err := kafka.ClusterID(ctx, node.KafkaConfig(cfg))
	if err != nil {
		return nil, err
	}
	return node.Plan(cfg, id == embedded.ClusterID)
}
