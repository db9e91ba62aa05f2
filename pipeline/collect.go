package pipeline

import (
	"context"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
)

// collectBlobs looks after the blob store where there is one: the owner of the letters' first partition does.
func (p *Pipeline) collectBlobs() engine.Option {
	if p.options.CollectBlobs == nil {
		return func(*engine.Group) {}
	}
	return engine.Background(func(ctx context.Context, owned stage.Owned[ledger.LetterRow]) error {
		if owned.Partition != 0 {
			return nil
		}
		for {
			select {
			case <-p.options.After(p.options.CollectEvery):
			case <-ctx.Done():
				return nil
			}
			if err := p.options.CollectBlobs(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
	})
}
