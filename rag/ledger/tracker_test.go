package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

func event(r rag.Revision, attempt int, s rag.Status, at time.Duration) rag.Event {
	e := rag.Event{Subject: rag.Subject{DocumentID: "d", MessageID: "m1", Revision: r, Attempt: attempt}, Stage: "indexer", Status: s, At: noon.Add(at)}
	if s == rag.StatusRetrying || s == rag.StatusDead {
		e.Failure = &rag.Failure{Stage: "embedder", Reason: fmt.Sprintf("failure %d", attempt)}
	}
	return e
}

func tracked(es ...rag.Event) (row *ledger.TrackerRow) {
	for _, e := range es {
		row = ledger.ApplyEvent(row, e)
	}
	return row
}

func TestAStatusNeverGoesBack(t *testing.T) {
	v1 := rev(1, 0)
	for name, c := range map[string]struct {
		events []rag.Event
		want   rag.Status
	}{
		"in order":                           {[]rag.Event{event(v1, 0, rag.StatusAccepted, 0), event(v1, 0, rag.StatusChunked, 1), event(v1, 0, rag.StatusIndexed, 2)}, rag.StatusIndexed},
		"a late event after the final":       {[]rag.Event{event(v1, 0, rag.StatusIndexed, 2), event(v1, 0, rag.StatusChunked, 1)}, rag.StatusIndexed},
		"a retry lasts over its attempt":     {[]rag.Event{event(v1, 1, rag.StatusRetrying, 1), event(v1, 1, rag.StatusChunked, 2)}, rag.StatusRetrying},
		"the clock does not order":           {[]rag.Event{event(v1, 0, rag.StatusIndexed, 0), event(v1, 0, rag.StatusAccepted, time.Hour)}, rag.StatusIndexed},
		"a replay is a new generation":       {[]rag.Event{event(v1, 0, rag.StatusDead, 0), event(rev(1, 1), 0, rag.StatusChunked, 1)}, rag.StatusChunked},
		"an earlier generation says no more": {[]rag.Event{event(rev(1, 1), 0, rag.StatusChunked, 1), event(v1, 0, rag.StatusDead, 0)}, rag.StatusChunked},
		"a forgotten id is a new submission": {[]rag.Event{event(v1, 0, rag.StatusIndexed, 0), event(rev(9, 0), 0, rag.StatusAccepted, 1)}, rag.StatusAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			if row := tracked(c.events...); row.Status != c.want {
				t.Errorf("status %s, want %s", row.Status, c.want)
			}
		})
	}
}

func TestAFailureBelongsToItsStatus(t *testing.T) {
	v1 := rev(1, 0)
	row := tracked(event(v1, 1, rag.StatusRetrying, 0), event(v1, 2, rag.StatusRetrying, 1), event(v1, 1, rag.StatusRetrying, 2))
	if row.Attempt != 2 || row.Failure.Reason != "failure 2" {
		t.Errorf("row %+v", row)
	}
	if row = tracked(event(v1, 1, rag.StatusRetrying, 0), event(v1, 1, rag.StatusIndexed, 1)); row.Failure != nil {
		t.Errorf("an indexed submission has the failure %+v", row.Failure)
	}
}

func TestTheTimeline(t *testing.T) {
	v1 := rev(1, 0)
	t.Run("has each line once, in the order in which it happens", func(t *testing.T) {
		row := tracked(event(v1, 1, rag.StatusIndexed, 6), event(v1, 1, rag.StatusChunked, 5), event(v1, 1, rag.StatusRetrying, 4),
			event(v1, 0, rag.StatusChunked, 9), event(v1, 0, rag.StatusChunked, 3), event(v1, 0, rag.StatusAccepted, 1))
		var got []string
		for _, e := range row.Events {
			got = append(got, fmt.Sprintf("%d %s %d", e.Attempt, e.Status, e.At.Sub(noon)))
		}
		if want := "[0 accepted 1 0 chunked 3 1 retrying 4 1 chunked 5 1 indexed 6]"; fmt.Sprint(got) != want {
			t.Errorf("timeline %v, want %s", got, want)
		}
	})
	t.Run("is bounded, and keeps the latest lines", func(t *testing.T) {
		var row *ledger.TrackerRow
		for g := range 2 * ledger.MaxTimeline {
			row = ledger.ApplyEvent(row, event(rev(1, g), 0, rag.StatusDead, 0))
		}
		if n := len(row.Events); n != ledger.MaxTimeline || row.Events[n-1].Generation != 2*ledger.MaxTimeline-1 {
			t.Errorf("%d lines, the last of generation %d", n, row.Events[n-1].Generation)
		}
	})
	t.Run("starts anew with a new submission", func(t *testing.T) {
		row := tracked(event(v1, 0, rag.StatusIndexed, 0), event(rev(9, 0), 0, rag.StatusAccepted, 1), event(v1, 0, rag.StatusChunked, 2))
		if len(row.Events) != 1 || row.Revision != rev(9, 0) {
			t.Errorf("row %+v", row)
		}
	})
	t.Run("knows the number of chunks once somebody said it", func(t *testing.T) {
		chunked := event(v1, 0, rag.StatusChunked, 0)
		chunked.Chunks = 7
		if row := tracked(chunked, event(v1, 0, rag.StatusIndexed, 1)); row.Chunks != 7 {
			t.Errorf("%d chunks", row.Chunks)
		}
	})
}

func TestApplyEventDoesNotChangeItsRow(t *testing.T) {
	row := tracked(event(rev(1, 0), 0, rag.StatusChunked, 5))
	ledger.ApplyEvent(row, event(rev(1, 0), 0, rag.StatusAccepted, 0))
	if len(row.Events) != 1 || row.Events[0].Status != rag.StatusChunked {
		t.Errorf("the row was changed: %+v", row)
	}
}
