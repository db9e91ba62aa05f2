package processors

import (
	"context"
	"time"

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
	e := m.Value
	if m.DecodeError != nil || m.Tombstone || rag.EventKey(e.DocumentID, e.MessageID) != m.Key {
		t.Metrics.ignored(StageTracker) // not ours; it belongs to no submission that could be named
		return stage.Result[ledger.TrackerRow]{}, nil
	}
	next := ledger.ApplyEvent(row, e)
	if took, ok := endToEnd(next, e.Revision); ok {
		if _, before := endToEnd(row, e.Revision); !before {
			t.Metrics.took(took)
		}
	}
	return stage.Result[ledger.TrackerRow]{Row: next}, nil
}

// OnFailure passes an event by that nothing can be made of (its handler panicked, it kills processes, its row would be too
// large): a timeline misses a line then, and the others go on. Whatever else goes wrong may go well later: the event waits.
func (t *Tracker) OnFailure(_ context.Context, _ stage.Record, class stage.Class, err error) ([]stage.Output, error) {
	if class != stage.ClassMessage {
		return nil, err
	}
	t.Metrics.passedBy(StageTracker, stage.ReasonOf(err, "tracker_error"))
	return nil, nil
}

// endToEnd is the time from the acceptance of a version to its first final status in a generation, once the timeline has
// both, in whichever order they came. A replay is not accepted anew: how long an operator thought about it is not measured.
func endToEnd(row *ledger.TrackerRow, rev rag.Revision) (time.Duration, bool) {
	if row == nil || row.Revision.Version != rev.Version {
		return 0, false
	}
	var accepted, ended time.Time
	for _, e := range row.Events {
		switch {
		case e.Generation != rev.Generation:
		case e.Status == rag.StatusAccepted:
			accepted = e.At
		case e.Status.Final() && (ended.IsZero() || e.At.Before(ended)):
			ended = e.At
		}
	}
	if accepted.IsZero() || ended.IsZero() {
		return 0, false
	}
	return max(0, ended.Sub(accepted)), true
}
