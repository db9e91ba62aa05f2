package pipeline

import (
	"context"
	"time"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
)

// firstCollect is when blobs are first looked through after a partition was assigned, and up to half of it later: processes
// that live for less than Options.CollectEvery do it too, and those that come and go do not.
const firstCollect = 10 * time.Minute

// collectBlobs looks after the blob store where there is one: the owner of the letters' first partition does.
func (p *Pipeline) collectBlobs() engine.Option {
	if p.options.CollectBlobs == nil {
		return func(*engine.Group) {}
	}
	return engine.Background(p.collect)
}

func (p *Pipeline) collect(ctx context.Context, owned stage.Owned[ledger.LetterRow]) error {
	if owned.Partition != 0 {
		return nil
	}
	wait := firstCollect + time.Duration(p.options.Jitter()*float64(firstCollect)/2)
	for ctx.Err() == nil {
		select {
		case <-p.options.After(wait):
		case <-ctx.Done():
			return nil
		}
		wait = p.options.CollectEvery
		// An error is not returned: the work would begin anew, and soon again, with all that it reads.
		if err := p.options.CollectBlobs(ctx); err != nil && ctx.Err() == nil {
			p.options.Log.Error("blobs could not be looked through and are the next time", "error", err, "wait", wait.String())
		}
	}
	return nil
}
