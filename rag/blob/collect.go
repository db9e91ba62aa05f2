package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/waymarkhq/waymark/rag"
)

// DefaultKeep is how long a blob is kept whoever refers to it: as long as records may still be delivered again, and their
// letters are being written.
const DefaultKeep = 30 * 24 * time.Hour

// abandonedAfter is when something that is being written will never be finished.
const abandonedAfter = 24 * time.Hour

// Collector deletes blobs to which nothing refers any more. Several may run at once, beside everything that writes: blobs of
// a day that is over get no new references but those that a document record, or its letter, has had all along.
type Collector struct {
	Store *Store
	// References tells note every blob that a document record or an open letter refers to. It is asked after the blobs were
	// listed.
	References func(ctx context.Context, note func(rag.Blob)) error
	// Keep is the least age of what is collected, counted from the end of a blob's day; 0 means DefaultKeep.
	Keep time.Duration
	Now  func() time.Time
	// DryRun only counts.
	DryRun bool
}

// Collected is what one run of a Collector has found.
type Collected struct {
	Blobs, Kept, Deleted, Abandoned int   // Abandoned: what was never finished being written, and was deleted
	Bytes, DeletedBytes             int64 // of Blobs and of Deleted
}

// Collect looks through the store once. Nothing is deleted unless all references could be read.
func (c *Collector) Collect(ctx context.Context) (Collected, error) {
	var found Collected
	candidates := map[string]int64{} // size by key
	if err := c.Store.each(ctx, blobs, func(o *blob.ListObject) error {
		b, err := rag.ParseBlobKey(strings.TrimPrefix(o.Key, blobs))
		if err != nil {
			return nil // nothing of ours
		}
		found.Blobs++
		found.Bytes += o.Size
		if c.old(b) {
			candidates[b.Key()] = o.Size
		}
		return nil
	}); err != nil {
		return found, err
	}
	if len(candidates) > 0 {
		if err := c.References(ctx, func(b rag.Blob) { delete(candidates, b.Key()) }); err != nil {
			return found, fmt.Errorf("collect blobs: looking for references: %w", err)
		}
	}
	for key, size := range candidates {
		if err := c.delete(ctx, blobs+key); err != nil {
			return found, err
		}
		found.Deleted++
		found.DeletedBytes += size
	}
	found.Kept = found.Blobs - found.Deleted
	err := c.Store.each(ctx, incoming, func(o *blob.ListObject) error {
		if c.Now().Sub(o.ModTime) < abandonedAfter {
			return nil
		}
		found.Abandoned++
		return c.delete(ctx, o.Key)
	})
	return found, err
}

// old: the day is over for long enough.
func (c *Collector) old(b rag.Blob) bool {
	keep := c.Keep
	if keep == 0 {
		keep = DefaultKeep
	}
	day, err := time.Parse(time.DateOnly, b.Day)
	return err == nil && c.Now().Sub(day.AddDate(0, 0, 1)) > keep
}

func (c *Collector) delete(ctx context.Context, key string) error {
	if c.DryRun {
		return nil
	}
	if err := c.Store.bucket.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("collect blobs: %w", err)
	}
	return nil
}

func (s *Store) each(ctx context.Context, prefix string, do func(*blob.ListObject) error) error {
	for it := s.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list the blob store: %w", err)
		}
		if err := do(o); err != nil {
			return err
		}
	}
}
