package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/ingest"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/watch"
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/rag"
)

type upCmd struct {
	Paths        []string `arg:"" optional:"" name:"path" help:"Files and folders to ingest once it is up."`
	ExitWhenIdle bool     `help:"End once every accepted document has its final status."`
	Watch        bool     `help:"Follow the paths: what is created, changed or deleted there."`
	Hidden       bool     `help:"Within folders, take hidden files and folders too."`
	Insecure     bool     `help:"Allow addresses that other machines can reach, without API tokens."`

	Configuration configFlags `embed:""`
}

// Help is the long description.
func (upCmd) Help() string {
	return `With no Kafka configured it brings an embedded broker, with no store an embedded one, with no embedding service a built-in model. All state is in the data folder (--data-dir), which one process at a time can have. It serves until Ctrl-C or SIGTERM.

Paths are ingested as by 'waymark ingest'. --watch sends changed files again and deletes the documents of files that have gone; documents of a .jsonl file that has gone stay.

Exit codes: as of 'waymark ingest', when it ends by itself (--exit-when-idle); 0 when it is told to end while it serves.

` + moreFlags
}

// Validate is called by the parser.
func (c *upCmd) Validate() error {
	switch {
	case c.Watch && c.ExitWhenIdle:
		return usageError("--watch and --exit-when-idle contradict each other")
	case c.Watch && len(c.Paths) == 0:
		return usageError("--watch needs paths to follow")
	case c.Watch && slices.Contains(c.Paths, ingest.Stdin):
		return usageError("--watch cannot follow standard input")
	}
	return nil
}

// Run is called by the parser.
func (c *upCmd) Run(ctx context.Context, env *environment) error {
	sources, err := ingest.Resolve(c.Paths)
	if err != nil {
		return err
	}
	cfg, err := env.load(c.Configuration, config.Target{Command: config.CommandUp, Insecure: c.Insecure})
	if err != nil {
		return err
	}
	token, err := ownToken(cfg)
	if err != nil {
		return err
	}
	return env.serve(ctx, cfg, c.Insecure, Runtime.Up, func(ctx context.Context, at Addresses) error {
		env.announce("Waymark is ready", at)
		f := newFollower(env, "Ingesting", waitFlags{Wait: true})
		api, err := client.New(baseURL(at.API), client.Options{Token: token, Retry: f.retry()})
		if err != nil {
			return err
		}
		defer api.Close()
		return c.work(ctx, env, f, api, sources)
	})
}

// ownToken lets this process call its own API where that asks for tokens.
func ownToken(cfg *config.Config) (string, error) {
	if len(cfg.API.Tokens) == 0 {
		return "", nil
	}
	secret := rand.Text()
	cfg.API.Tokens = append(cfg.API.Tokens, config.Token{
		Name: "up-" + secret[:4], Scopes: []string{config.ScopeIngest, config.ScopeRead}, Hash: sha256.Sum256([]byte(secret)),
	})
	return secret, nil
}

// work is what the command does while the roles run: it returns when the process is to end.
func (c *upCmd) work(ctx context.Context, env *environment, f *follower, api *client.Client, sources []ingest.Source) error {
	var watcher *watch.Watcher
	if c.Watch {
		// Before the first job, so that what changes meanwhile is not missed.
		var err error
		if watcher, err = watch.New(ctx, sources, c.Hidden); err != nil {
			return err
		}
	}
	var result error
	if len(sources) > 0 {
		cfg := f.job(api)
		cfg.Hidden = c.Hidden
		job := ingest.New(cfg)
		result = f.run(ctx, job, func(ctx context.Context) error { return job.Ingest(ctx, sources) })
	}
	var exit *exitError
	if result != nil && (!errors.As(result, &exit) || exit.message != "") {
		return result
	}
	if c.ExitWhenIdle {
		if err := waitIdle(ctx, api); err != nil {
			return err
		}
		return result
	}
	if env.console.Live() && !env.globals.JSON {
		fmt.Fprintln(env.console.Err(), "Serving; Ctrl-C stops.")
	}
	if watcher != nil {
		return c.follow(ctx, env, f, api, watcher)
	}
	<-ctx.Done()
	return errServed
}

// errServed says that the process was told to end while it served, which is as good as any end.
var errServed = errors.New("served until told to end")

// follow sends what changes, until the end.
func (c *upCmd) follow(ctx context.Context, env *environment, f *follower, api *client.Client, w *watch.Watcher) error {
	err := w.Run(ctx, func(changes watch.Changes) error {
		for _, path := range changes.Orphaned {
			env.log.Warn("a file of lines is gone; its documents stay", "path", path)
		}
		if len(changes.Files)+len(changes.Deleted) == 0 {
			return nil
		}
		job := ingest.New(f.job(api))
		err := f.run(ctx, job, func(ctx context.Context) error { return job.Changes(ctx, changes.Files, changes.Deleted) })
		var exit *exitError
		if errors.As(err, &exit) && exit.message == "" {
			return nil // said already; the next change may mend it
		}
		return err
	})
	if ctx.Err() != nil {
		return errServed
	}
	return err
}

// idleEvery is how often the counts are looked at; idle means twice in a row, because the counts come from views that
// follow the log.
const idleEvery = 250 * time.Millisecond

// waitIdle returns once every accepted document has its final status.
func waitIdle(ctx context.Context, api *client.Client) error {
	ticker := time.NewTicker(idleEvery)
	defer ticker.Stop()
	for quiet := 0; ; {
		s, err := api.Stats(ctx)
		if err != nil {
			return err
		}
		if !idle(s) {
			quiet = 0
		} else if quiet++; quiet == 2 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// idle reports whether nothing is on its way.
func idle(s client.Stats) bool {
	for status, n := range s.Documents {
		if n > 0 && !status.Final() {
			return false
		}
	}
	for _, n := range s.Lag {
		if n > 0 {
			return false
		}
	}
	return s.DeadLetters[rag.LetterScheduled]+s.DeadLetters[rag.LetterReplaying]+s.DeadLetters[rag.LetterSent] == 0
}
