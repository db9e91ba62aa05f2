package blob_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/blob"
)

func noReferences(context.Context, func(rag.Blob)) error { return nil }

const day = 24 * time.Hour

func TestCollect(t *testing.T) {
	eachStore(t, func(t *testing.T, s *blob.Store, c *clock) {
		old, letter := write(t, s, "old"), write(t, s, "of a letter")
		c.pass(20 * day)
		young, again := write(t, s, "young"), write(t, s, "old") // the same content on another day is another blob
		c.pass(11*day - 13*time.Hour)                            // 30 days and 11 hours since the first ones, but their day ended later
		collector := &blob.Collector{Store: s, Now: c.now, References: func(_ context.Context, note func(rag.Blob)) error {
			note(letter)
			return nil
		}}
		if found, err := collector.Collect(t.Context()); err != nil || found.Deleted != 0 || found.Blobs != 4 {
			t.Fatalf("too early: %+v, %v", found, err)
		}
		c.pass(2 * time.Hour)
		collector.DryRun = true
		want := blob.Collected{Blobs: 4, Kept: 3, Deleted: 1, Bytes: old.Size + letter.Size + young.Size + again.Size, DeletedBytes: old.Size}
		for range 2 {
			if found, err := collector.Collect(t.Context()); err != nil || found != want {
				t.Errorf("dry run: %+v, %v", found, err)
			}
		}
		collector.DryRun = false
		if found, err := collector.Collect(t.Context()); err != nil || found != want {
			t.Errorf("found %+v, %v", found, err)
		}
		for _, b := range []rag.Blob{letter, young, again} {
			if _, err := read(s, b); err != nil {
				t.Errorf("%s: %v", b.Key(), err)
			}
		}
		if _, err := read(s, old); !errors.Is(err, blob.ErrMissing) {
			t.Errorf("the old one: %v", err)
		}
	})
}

// What refers to blobs must be known as a whole: an error deletes nothing.
func TestCollectWithoutReferences(t *testing.T) {
	eachStore(t, func(t *testing.T, s *blob.Store, c *clock) {
		b := write(t, s, "old")
		c.pass(100 * day)
		away := errors.New("kafka is away")
		collector := &blob.Collector{Store: s, Now: c.now, References: func(context.Context, func(rag.Blob)) error { return away }}
		if _, err := collector.Collect(t.Context()); !errors.Is(err, away) {
			t.Errorf("error %v", err)
		}
		if _, err := read(s, b); err != nil {
			t.Error(err)
		}
	})
}

// Two collectors at once hinder nobody, and a write that goes on meanwhile is safe.
func TestCollectBesideWrites(t *testing.T) {
	eachStore(t, func(t *testing.T, s *blob.Store, c *clock) {
		c.pass(time.Since(c.now()) - 100*day) // the store dates what is being written by the real clock
		write(t, s, "content")
		c.pass(100 * day)
		done := make(chan error, 2)
		for range cap(done) {
			go func() {
				_, err := (&blob.Collector{Store: s, Now: c.now, References: noReferences}).Collect(context.Background())
				done <- err
			}()
		}
		b := write(t, s, "content")
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if _, err := read(s, b); err != nil {
			t.Errorf("written beside the collectors: %v", err)
		}
	})
}
