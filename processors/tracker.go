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

// HandleBatch merges events into their timelines, one row for each: what a stage says of a submission at once, as acceptance
// and chunks, is one row to write and to read, and not two.
func (t *Tracker) HandleBatch(_ context.Context, b stage.Batch[rag.Event, ledger.TrackerRow]) stage.BatchResult[ledger.TrackerRow] {
	rows := map[string]*ledger.TrackerRow{}
	var ended []time.Duration
	foreign := 0
	for _, m := range b.Messages {
		e := m.Value
		if rag.EventKey(e.DocumentID, e.MessageID) != m.Key {
			foreign++ // not ours; it belongs to no submission that could be named
			continue
		}
		row, merged := rows[m.Key]
		if !merged {
			row = b.Row(m.Key)
		}
		next := ledger.ApplyEvent(row, e)
		if took, ok := endToEnd(next, e.Revision); ok {
			if _, before := endToEnd(row, e.Revision); !before {
				ended = append(ended, took)
			}
		}
		rows[m.Key] = next
	}
	if !b.Valid() { // it comes again
		return stage.BatchResult[ledger.TrackerRow]{}
	}
	for range foreign {
		t.Metrics.ignored(StageTracker)
	}
	for _, took := range ended {
		t.Metrics.took(took)
	}
	return stage.BatchResult[ledger.TrackerRow]{Rows: rows}
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
