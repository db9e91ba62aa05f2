package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/datadir"
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/kafka"
)

type runCmd struct {
	Roles    []string `arg:"" name:"role" enum:"api,chunker,embedder,indexer,tracker,deadletters" help:"One or more of api, chunker, embedder, indexer, tracker and deadletters."`
	Insecure bool     `help:"Allow addresses that other machines can reach, without API tokens."`

	Configuration configFlags `embed:""`
}

// Help is the long description.
func (runCmd) Help() string {
	return "It needs kafka.brokers, and for the roles api and indexer a store that they share. Each pod has a data folder of its own. It serves until Ctrl-C or SIGTERM.\n\n" + moreFlags
}

// Validate is called by the parser.
func (c *runCmd) Validate() error {
	seen := map[string]bool{}
	for _, r := range c.Roles {
		if seen[r] {
			return usageError("the role %s is there twice", r)
		}
		seen[r] = true
	}
	return nil
}

// Run is called by the parser.
func (c *runCmd) Run(ctx context.Context, env *environment) error {
	cfg, err := env.load(c.Configuration, config.Target{Command: config.CommandRun, Roles: c.Roles, Insecure: c.Insecure})
	if err != nil {
		return err
	}
	start := func(r Runtime, ctx context.Context, cfg *config.Config, o ServeOptions) error {
		return r.Run(ctx, cfg, c.Roles, o)
	}
	return env.serve(ctx, cfg, c.Insecure, start, func(ctx context.Context, at Addresses) error {
		env.announce("Ready: "+strings.Join(c.Roles, ", "), at)
		<-ctx.Done()
		return errServed
	})
}

type brokerCmd struct {
	Insecure bool `help:"Allow addresses that other machines can reach; the broker knows no login."`

	Configuration configFlags `embed:""`
}

// Help is the long description.
func (brokerCmd) Help() string {
	return "Its log is in the data folder. Other processes reach it with --kafka.brokers and need --kafka.replication=1. It serves until Ctrl-C or SIGTERM.\n\n" + moreFlags
}

// Run is called by the parser.
func (c *brokerCmd) Run(ctx context.Context, env *environment) error {
	cfg, err := env.load(c.Configuration, config.Target{Command: config.CommandBroker, Insecure: c.Insecure})
	if err != nil {
		return err
	}
	return env.serve(ctx, cfg, c.Insecure, Runtime.Broker, func(ctx context.Context, at Addresses) error {
		env.announce("The broker is ready", at)
		<-ctx.Done()
		return errServed
	})
}

// serve holds the data folder, runs roles, and works beside them once they are ready. When either ends, so does the
// other. An end that a signal asked for is good, unless work was not done with what it was to do.
func (e *environment) serve(
	ctx context.Context, cfg *config.Config, insecure bool,
	start func(Runtime, context.Context, *config.Config, ServeOptions) error, work func(context.Context, Addresses) error,
) (err error) {
	runtime, err := e.runtime()
	if err != nil {
		return err
	}
	dir, err := datadir.Open(cfg.DataDir)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := dir.Close(); closeErr != nil {
			e.log.Warn("cannot give the data folder back", "error", closeErr)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, ended := make(chan Addresses, 1), make(chan error, 1)
	go func() {
		o := ServeOptions{Log: e.log, Insecure: insecure, Ready: func(at Addresses) { ready <- at }}
		err := start(runtime, ctx, cfg, o)
		cancel() // the work beside it has nothing to work with any more
		ended <- err
	}()
	e.console.SetStatus("Starting…")
	select {
	case at := <-ready:
		e.console.SetStatus("")
		err = work(ctx, at)
	case err = <-ended:
		e.console.SetStatus("")
		switch {
		case err != nil:
			return err
		case errors.Is(context.Cause(ctx), errInterrupted):
			return errInterrupted
		}
		return errors.New("it ended before it was ready")
	}
	cancel()
	e.console.SetStatus("Stopping…")
	endErr := <-ended
	e.console.SetStatus("")
	if endErr != nil {
		return endErr // the cause of whatever went wrong with the work
	}
	if errors.Is(err, errServed) {
		return nil
	}
	return err
}

// announce tells that it serves, and where.
func (e *environment) announce(what string, at Addresses) {
	if e.globals.JSON {
		ready := map[string]string{}
		for name, address := range map[string]string{"api": at.API, "monitor": at.Monitor} {
			if address != "" {
				ready[name] = baseURL(address)
			}
		}
		if at.Broker != "" {
			ready["broker"] = at.Broker
		}
		_ = e.writeJSON(map[string]any{"ready": ready}) // texts can always be written
		return
	}
	line := what
	for _, part := range []struct{ prefix, text string }{
		{": ", urlOf(at.API)}, {"; broker ", at.Broker}, {"; health and metrics ", urlOf(at.Monitor)},
	} {
		if part.text != "" {
			line += part.prefix + part.text
		}
	}
	e.console.Printf("%s\n", line)
}

func urlOf(address string) string {
	if address == "" {
		return ""
	}
	return baseURL(address)
}

type topicsCmd struct {
	Plan  topicsPlanCmd  `cmd:"" group:"sub" help:"Show what differs between the topics that are needed and those of the cluster."`
	Apply topicsApplyCmd `cmd:"" group:"sub" help:"Create what is missing and alter settings that differ; nothing is deleted or shrunk."`

	Configuration configFlags `embed:""`
}

type topicsPlanCmd struct{}

// Help is the long description.
func (topicsPlanCmd) Help() string { return moreFlags }

// Run is called by the parser.
func (topicsPlanCmd) Run(ctx context.Context, env *environment, parent *topicsCmd) error {
	return env.topics(ctx, parent.Configuration, Runtime.PlanTopics, "The topics are as they should be.")
}

type topicsApplyCmd struct{}

// Help is the long description.
func (topicsApplyCmd) Help() string {
	return "Partitions are never added to a topic, and replicas never moved: such differences are shown, and end it with exit code 1.\n\n" + moreFlags
}

// Run is called by the parser.
func (topicsApplyCmd) Run(ctx context.Context, env *environment, parent *topicsCmd) error {
	return env.topics(ctx, parent.Configuration, Runtime.ApplyTopics, "Nothing had to be changed.")
}

// topics shows differences, one a line.
func (e *environment) topics(
	ctx context.Context, flags configFlags,
	do func(Runtime, context.Context, *config.Config) ([]kafka.Difference, error), none string,
) error {
	cfg, err := e.load(flags, config.Target{Command: config.CommandTopics})
	if err != nil {
		return err
	}
	runtime, err := e.runtime()
	if err != nil {
		return err
	}
	differences, err := do(runtime, ctx, cfg)
	var unfixable *kafka.UnfixableError
	if err != nil && !errors.As(err, &unfixable) {
		return err
	}
	for _, d := range differences {
		if e.globals.JSON {
			if err := e.writeJSON(d); err != nil {
				return err
			}
			continue
		}
		e.console.Printf("%s\n", d)
	}
	if unfixable != nil {
		return fmt.Errorf("%w", unfixable)
	}
	if len(differences) == 0 && !e.globals.JSON {
		e.console.Printf("%s\n", none)
	}
	return nil
}
