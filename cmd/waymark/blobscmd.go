package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/waymarkhq/waymark/rag/blob"
)

// CollectOptions of one collection of blobs.
type CollectOptions struct {
	DryRun bool
	Log    *slog.Logger
}

type blobsCmd struct {
	Collect blobsCollectCmd `cmd:"" help:"Delete what no document refers to any more."`
}

type blobsCollectCmd struct {
	DryRun bool `help:"Only count."`

	Configuration configFlags `embed:""`
}

// Help is the long description.
func (blobsCollectCmd) Help() string {
	return `Documents above 256 KiB are kept in the blob store (blobs.url). A blob is deleted once it is older than 30 days and nothing refers to it: neither the latest record of a document, nor a record that is still to be read, nor a dead letter that may be replayed.

The role deadletters does the same by itself once a day. It may run beside everything else; while it cannot read all of what may refer to a blob, it deletes nothing.

` + moreFlags
}

// collected is the result as JSON.
type collected struct {
	Blobs        int   `json:"blobs"`
	Bytes        int64 `json:"bytes"`
	Kept         int   `json:"kept"`
	Deleted      int   `json:"deleted"`
	DeletedBytes int64 `json:"deleted_bytes"`
	Abandoned    int   `json:"abandoned"`
	DryRun       bool  `json:"dry_run"`
}

// Run is called by the parser.
func (c *blobsCollectCmd) Run(ctx context.Context, env *environment) error {
	cfg, runtime, err := env.loadBeside(c.Configuration)
	if err != nil {
		return err
	}
	found, err := runtime.CollectBlobs(ctx, cfg, CollectOptions{DryRun: c.DryRun, Log: env.log})
	if err != nil {
		return err
	}
	return c.print(env, found)
}

func (c *blobsCollectCmd) print(env *environment, found blob.Collected) error {
	if env.globals.JSON {
		return env.writeJSON(collected{found.Blobs, found.Bytes, found.Kept, found.Deleted, found.DeletedBytes, found.Abandoned, c.DryRun})
	}
	deleted := "deleted"
	if c.DryRun {
		deleted = "would be deleted"
	}
	rows := [][2]string{
		{"kept", fmt.Sprintf("%s, %s", plural(found.Kept, "blob"), plural(int(found.Bytes-found.DeletedBytes), "byte"))},
		{deleted, fmt.Sprintf("%s, %s", plural(found.Deleted, "blob"), plural(int(found.DeletedBytes), "byte"))},
	}
	if found.Abandoned > 0 {
		rows = append(rows, [2]string{deleted, plural(found.Abandoned, "upload") + " that never ended"})
	}
	return env.properties(rows)
}
