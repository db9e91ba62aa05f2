package pipeline

import (
	"context"

	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
)

// Collect is what the owner of a partition of the letters does in the background about blobs.
func (p *Pipeline) Collect(ctx context.Context, partition int32) error {
	return p.collect(ctx, stage.Owned[ledger.LetterRow]{Partition: partition})
}
