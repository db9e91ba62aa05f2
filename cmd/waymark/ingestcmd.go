package main

import (
	"context"
	"slices"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/ingest"
)

type ingestCmd struct {
	Paths       []string `arg:"" name:"path" help:"Files and folders; - is standard input."`
	ID          string   `name:"id" placeholder:"ID" help:"Take standard input as the one document with this id, instead of as lines of JSON."`
	Hidden      bool     `help:"Within folders, take hidden files and folders too."`
	Concurrency int      `default:"8" placeholder:"N" help:"Files that are sent at once, 1 to 64. Default ${default}."`
	waitFlags
	clientFlags
}

// Help is the long description.
func (ingestCmd) Help() string {
	return `A file is sent as it is; the server recognises its type. Its document id is its path from the argument's own name on: 'waymark ingest /srv/docs' makes docs/a.txt of /srv/docs/a.txt. Sent again, it replaces that document; when nothing has changed, it counts as unchanged.

Folders are walked in the order of their names. Hidden names (see --hidden), symbolic links and what is no file are passed over within them, and counted; an argument itself is always taken.

In a .jsonl or .ndjson file, and on standard input, each line is a document as JSON, such as {"id": "news-17", "text": "…"}. A line without an id gets one from its place, docs.jsonl#12; from standard input, a new one.

Exit codes: 0 done; 1 failed, or a document could not be read or was refused; 2 wrong usage; 3 done, but a document is dead; 130 interrupted: what was accepted goes on.`
}

// Validate is called by the parser.
func (c *ingestCmd) Validate() error {
	switch {
	case c.ID != "" && !slices.Equal(c.Paths, []string{ingest.Stdin}):
		return usageError("--id is for standard input alone: waymark ingest --id %s -", c.ID)
	case c.Concurrency < 1 || c.Concurrency > 64:
		return usageError("--concurrency: %d is not between 1 and 64", c.Concurrency)
	}
	return nil
}

// Run is called by the parser.
func (c *ingestCmd) Run(ctx context.Context, env *environment) error {
	sources, err := ingest.Resolve(c.Paths)
	if err != nil {
		return err
	}
	f := newFollower(env, "Ingesting", c.waitFlags)
	api, err := c.client(env, f.retry())
	if err != nil {
		return err
	}
	defer api.Close()
	if err := api.Alive(ctx); err != nil {
		return err
	}
	cfg := f.job(api)
	cfg.StdinID, cfg.Hidden, cfg.Concurrency = c.ID, c.Hidden, c.Concurrency
	job := ingest.New(cfg)
	return f.run(ctx, job, func(ctx context.Context) error { return job.Ingest(ctx, sources) })
}

type deleteCmd struct {
	IDs []string `arg:"" name:"id" help:"Document ids."`
	waitFlags
	clientFlags
}

// Help is the long description.
func (deleteCmd) Help() string {
	return "A deletion is a submission like any other: it has a status, and the order of submissions decides. Deleting what is not there is done at once."
}

// Run is called by the parser.
func (c *deleteCmd) Run(ctx context.Context, env *environment) error {
	f := newFollower(env, "Deleting", c.waitFlags)
	api, err := c.client(env, f.retry())
	if err != nil {
		return err
	}
	defer api.Close()
	if err := api.Alive(ctx); err != nil {
		return err
	}
	job := ingest.New(f.job(api))
	return f.run(ctx, job, func(ctx context.Context) error { return job.Delete(ctx, c.IDs) })
}
