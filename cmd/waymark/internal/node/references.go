package node

import (
	"context"
	"fmt"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

// blobReferences finds what document records and open letters refer to: the latest record of every document, the records that
// the chunker has not finished with, and the records of letters that may be replayed. The blobs of all other records are
// collected once blob.DefaultKeep is over, after which Kafka compacts the records too.
type blobReferences struct {
	reader *kafka.Reader
	lag    *lagReader
	topics kafka.Topics
	rows   stage.Codec[ledger.LetterRow]
}

func (b blobReferences) each(ctx context.Context, note func(rag.Blob)) error {
	unread, err := b.lag.unread(b.topics.Groups.Chunker, b.topics.Documents)
	if err != nil {
		return fmt.Errorf("how far the chunker has read: %w", err)
	}
	if err := b.partitions(ctx, b.topics.Documents, func(p int32) error { return b.documents(ctx, p, unread, note) }); err != nil {
		return err
	}
	return b.partitions(ctx, b.topics.Tables.DeadLetters, func(p int32) error { return b.letters(ctx, p, note) })
}

func (b blobReferences) partitions(ctx context.Context, topic string, do func(int32) error) error {
	count, err := b.reader.Partitions(ctx, topic)
	if err != nil {
		return err
	}
	for p := range count {
		if err := do(p); err != nil {
			return err
		}
	}
	return nil
}

func (b blobReferences) documents(ctx context.Context, partition int32, unread map[int32]int64, note func(rag.Blob)) error {
	first, behind := unread[partition]
	latest := map[string]rag.Blob{}
	if err := b.reader.Each(ctx, b.topics.Documents, partition, func(r kafka.Record) error {
		ref, _ := wire.BlobOf(headersOf(r)) // one that cannot be read refers to nothing
		if ref == nil || r.Value == nil {
			delete(latest, string(r.Key))
			return nil
		}
		latest[string(r.Key)] = *ref
		if behind && r.Offset >= first {
			note(*ref)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, ref := range latest {
		note(ref)
	}
	return nil
}

// letters notes what open letters refer to. A row that an older process wrote late can only be more open than the one before.
func (b blobReferences) letters(ctx context.Context, partition int32, note func(rag.Blob)) error {
	open := map[string]rag.Blob{}
	if err := b.reader.Each(ctx, b.topics.Tables.DeadLetters, partition, func(r kafka.Record) error {
		delete(open, string(r.Key))
		if r.Value == nil {
			return nil
		}
		row, err := b.rows.Decode(r.Value)
		if err != nil {
			return fmt.Errorf("the letter %s cannot be read, so nothing is collected: %w", r.Key, err)
		}
		if ref := replayable(row); ref != nil {
			open[string(r.Key)] = *ref
		}
		return nil
	}); err != nil {
		return err
	}
	for _, ref := range open {
		note(ref)
	}
	return nil
}

// replayable is the blob of a letter that may still be replayed, or is being.
func replayable(row ledger.LetterRow) *rag.Blob {
	switch row.State {
	case rag.LetterResolved, rag.LetterSuperseded, rag.LetterDiscarded:
		return nil
	}
	ref, _ := wire.ReferenceOf(row.Original)
	return ref
}

func headersOf(r kafka.Record) []stage.Header {
	out := make([]stage.Header, len(r.Headers))
	for i, h := range r.Headers {
		out[i] = stage.Header(h)
	}
	return out
}
