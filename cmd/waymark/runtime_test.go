package main

import (
	"context"
	"errors"
	"strings"

	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/rag/blob"
	"github.com/waymarkhq/waymark/verify"
)

// fakeRuntime serves nothing; its fields say how it behaves.
type fakeRuntime struct {
	at          Addresses
	early       error // it fails before it is ready
	fail        chan error
	beforeReady func(*config.Config)
	differences []kafka.Difference
	topicsErr   error
	report      verify.Report
	blobs       blob.Collected

	cfg      *config.Config
	roles    []string
	insecure bool
	what     string
}

func (f *fakeRuntime) serve(ctx context.Context, what string, cfg *config.Config, o ServeOptions) error {
	f.what, f.cfg, f.insecure = what, cfg, o.Insecure
	if f.early != nil {
		return f.early
	}
	if f.beforeReady != nil {
		f.beforeReady(cfg)
	}
	o.Log.Info("hello from the runtime")
	if f.at == (Addresses{}) {
		f.at.API = "127.0.0.1:1"
	}
	o.Ready(f.at)
	select {
	case <-ctx.Done():
		return nil
	case err := <-f.fail:
		return err
	}
}

func (f *fakeRuntime) Up(ctx context.Context, cfg *config.Config, o ServeOptions) error {
	return f.serve(ctx, "up", cfg, o)
}

func (f *fakeRuntime) Run(ctx context.Context, cfg *config.Config, roles []string, o ServeOptions) error {
	f.roles = roles
	return f.serve(ctx, "run", cfg, o)
}

func (f *fakeRuntime) Broker(ctx context.Context, cfg *config.Config, o ServeOptions) error {
	return f.serve(ctx, "broker", cfg, o)
}

func (f *fakeRuntime) CollectBlobs(_ context.Context, cfg *config.Config, o CollectOptions) (blob.Collected, error) {
	f.what, f.cfg = "collect", cfg
	return f.blobs, nil
}

func (f *fakeRuntime) PlanTopics(_ context.Context, cfg *config.Config) ([]kafka.Difference, error) {
	f.what, f.cfg = "plan", cfg
	return f.differences, f.topicsErr
}

func (f *fakeRuntime) ApplyTopics(_ context.Context, cfg *config.Config) ([]kafka.Difference, error) {
	f.what, f.cfg = "apply", cfg
	return f.differences, f.topicsErr
}

func (f *fakeRuntime) Verify(_ context.Context, cfg *config.Config, o VerifyOptions) (verify.Report, error) {
	f.what, f.cfg = "verify", cfg
	if o.Repair {
		f.what = "repair"
	}
	o.Progress("Looking")
	return f.report, f.early
}

var errBroken = errors.New("the store is broken")

// at is the address of a server's URL.
func at(url string) Addresses { return Addresses{API: strings.TrimPrefix(url, "http://")} }

// startingRuntime never becomes ready.
type startingRuntime struct {
	fakeRuntime
	entered chan struct{}
}

func (s *startingRuntime) Up(ctx context.Context, _ *config.Config, _ ServeOptions) error {
	close(s.entered)
	<-ctx.Done()
	return nil
}
