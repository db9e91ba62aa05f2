package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

// MaxTimeline is the number of lines that a timeline keeps: the latest.
const MaxTimeline = 64

// ApplyEvent is the row after the event; row may be nil and is never changed. The status never goes back: its order is
// (generation, rank), and only a replay makes a new generation. A later version under the same message id is a new
// submission (the id had been forgotten) and starts a new row; events of the earlier one are then ignored.
func ApplyEvent(row *TrackerRow, e rag.Event) *TrackerRow {
	return MergeTrackerRow(row, &TrackerRow{
		DocumentID: e.DocumentID, MessageID: e.MessageID, Revision: e.Revision,
		Status: e.Status, Chunks: e.Chunks, Attempt: e.Attempt, Failure: e.Failure,
		Events: []TrackerEvent{{Generation: e.Revision.Generation, Attempt: e.Attempt, Stage: e.Stage, Status: e.Status, At: e.At}},
	})
}

// MergeTrackerRow joins two rows of one submission; it is commutative, associative and idempotent.
func MergeTrackerRow(a, b *TrackerRow) *TrackerRow {
	if a == nil || b == nil {
		return either(a, b)
	}
	if compareHeadlines(a, b) < 0 {
		a, b = b, a
	}
	if a.Revision.Version != b.Revision.Version {
		return a
	}
	c := *a
	c.DocumentID, c.MessageID = max(a.DocumentID, b.DocumentID), max(a.MessageID, b.MessageID)
	if a.Revision == b.Revision {
		c.Chunks = max(a.Chunks, b.Chunks)
	}
	c.Events = mergeTimelines(a.Events, b.Events)
	return &c
}

// compareHeadlines orders what two rows say in short. Attempt and failure belong to the status; the number of chunks is
// that of the whole generation and takes no part.
func compareHeadlines(a, b *TrackerRow) int {
	return cmp.Or(compareRevisions(a.Revision, b.Revision), cmp.Compare(a.Status.Rank(), b.Status.Rank()),
		cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Status, b.Status), compareFailures(a.Failure, b.Failure))
}

// line is what makes an event one line of a timeline, however often it is said.
type line struct {
	generation, attempt int
	stage               string
	status              rag.Status
}

// mergeTimelines unites lines, each with the time at which it was said first, and keeps the last MaxTimeline of them.
func mergeTimelines(a, b []TrackerEvent) []TrackerEvent {
	at := map[line]time.Time{}
	for _, e := range slices.Concat(a, b) {
		k := line{e.Generation, e.Attempt, e.Stage, e.Status}
		if t, ok := at[k]; !ok || e.At.Before(t) {
			at[k] = e.At
		}
	}
	lines := slices.SortedFunc(maps.Keys(at), compareLines)
	lines = lines[max(0, len(lines)-MaxTimeline):]
	events := make([]TrackerEvent, len(lines))
	for i, l := range lines {
		events[i] = TrackerEvent{Generation: l.generation, Attempt: l.attempt, Stage: l.stage, Status: l.status, At: at[l]}
	}
	return events
}

// compareLines orders a timeline: what is said of an attempt opens with the word that announced it (retrying).
func compareLines(a, b line) int {
	return cmp.Or(cmp.Compare(a.generation, b.generation), cmp.Compare(a.attempt, b.attempt),
		cmp.Compare(step(a.status), step(b.status)), cmp.Compare(a.status, b.status), cmp.Compare(a.stage, b.stage))
}

func step(s rag.Status) int {
	if s == rag.StatusRetrying {
		return 0
	}
	return s.Rank()
}
