package main

import (
	"context"
	"log/slog"
	"net"

	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/rag/blob"
	"github.com/waymarkhq/waymark/verify"
)

// Runtime composes and runs the roles. The commands hold the data folder for as long as it runs.
type Runtime interface {
	// Up runs every role in one process until ctx ends, then drains and returns nil. An earlier end is an error.
	Up(ctx context.Context, cfg *config.Config, o ServeOptions) error
	// Run does the same with some roles, on the configured cluster.
	Run(ctx context.Context, cfg *config.Config, roles []string, o ServeOptions) error
	// Broker does the same with the embedded broker alone.
	Broker(ctx context.Context, cfg *config.Config, o ServeOptions) error
	// PlanTopics compares the topics that the configuration needs with the cluster. It changes nothing.
	PlanTopics(ctx context.Context, cfg *config.Config) ([]kafka.Difference, error)
	// ApplyTopics creates topics and alters settings, and returns what it has changed.
	ApplyTopics(ctx context.Context, cfg *config.Config) ([]kafka.Difference, error)
	// Verify compares the store with the document rows, and with o.Repair mends what is safe.
	Verify(ctx context.Context, cfg *config.Config, o VerifyOptions) (verify.Report, error)
	// CollectBlobs deletes what the blob store has and nothing refers to.
	CollectBlobs(ctx context.Context, cfg *config.Config, o CollectOptions) (blob.Collected, error)
}

// ServeOptions of one run.
type ServeOptions struct {
	Log *slog.Logger
	// Insecure allows the API to serve without tokens on addresses that others can reach.
	Insecure bool
	// Ready is called once, when everything that has an address serves there.
	Ready func(Addresses)
}

// Addresses as host:port, with the ports that were taken; "" for what does not serve.
type Addresses struct {
	API     string
	Broker  string
	Monitor string
}

// baseURL is the URL at which this machine reaches a listener. One that listens on all addresses is reached on loopback.
func baseURL(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
