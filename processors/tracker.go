package processors

import (
	"context"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
)

// Tracker merges events into one timeline per submission: the row of (document, message id).
type Tracker struct {
	Metrics *Metrics
}

// Handle merges one event into its timeline.
func (t *Tracker) Handle(_ context.Context, m stage.Message[rag.Event], row *ledger.TrackerRow) (stage.Result[ledger.TrackerRow], error) {
	if m.DecodeError != nil || m.Tombstone {
		t.Metrics.ignored(StageTracker) // not ours; it belongs to no submission that could be named
		return stage.Result[ledger.TrackerRow]{}, nil
	}
	return stage.Result[ledger.TrackerRow]{Row: ledger.ApplyEvent(row, m.Value)}, nil
}
