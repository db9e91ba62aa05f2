package rag

import "time"

// Status of a submission or of a document's latest version.
type Status string

// Statuses, in the order in which a submission meets them. The last five are final.
const (
	StatusAccepted   Status = "accepted"
	StatusChunked    Status = "chunked"
	StatusEmbedded   Status = "embedded"
	StatusRetrying   Status = "retrying"
	StatusIndexed    Status = "indexed"
	StatusUnchanged  Status = "unchanged"
	StatusSuperseded Status = "superseded"
	StatusDeleted    Status = "deleted"
	StatusDead       Status = "dead"
)

// Rank orders the statuses of one generation: a status never goes back. All finals have the same rank.
func (s Status) Rank() int {
	switch s {
	case StatusAccepted:
		return 1
	case StatusChunked:
		return 2
	case StatusEmbedded:
		return 3
	case StatusRetrying:
		return 4
	case StatusIndexed, StatusUnchanged, StatusSuperseded, StatusDeleted, StatusDead:
		return 9
	}
	return 0
}

// Final reports whether nothing follows in this generation.
func (s Status) Final() bool { return s.Rank() == 9 }

// EndedWell reports whether the document is served as of a version with this final status.
func (s Status) EndedWell() bool {
	return s == StatusIndexed || s == StatusUnchanged || s == StatusDeleted
}

// Class of a failure: who is at fault decides what happens next.
type Class string

// Classes of failures. An outage never appears in a letter: it costs time, nothing else.
const (
	ClassMessage   Class = "message"
	ClassTransient Class = "transient"
	ClassOutage    Class = "outage"
)

// StageChunker is the name of the stage that speaks of a version first.
const StageChunker = "chunker"

// Failure says why a version died or waits for a retry.
type Failure struct {
	Stage   string // chunker (StageChunker), embedder, indexer
	Class   Class
	Reason  string // one of the Reason constants; stable, for machines
	Message string // one sentence for people
}

// ProgressKind says what a progress record tells the indexer.
type ProgressKind int

// Kinds of progress records. Everything that changes a document row is one of them.
const (
	ProgressManifest ProgressKind = iota + 1
	ProgressVerdict
	ProgressDelete
	ProgressReceipt
	ProgressRemoved
)

// Progress is a record of the progress topic, keyed by document id. It is the only thing that changes a document row.
type Progress struct {
	Kind ProgressKind
	Subject
	At time.Time // when it was said; for people, never for order

	// Manifest (and verdicts, for the record): how many chunks the version has, and what it is made of.
	Count           int
	ContentIdentity Hash
	Title           string
	Source          string
	Metadata        Metadata
	Warnings        []string

	// Verdict: StatusDead, StatusRetrying, StatusUnchanged or StatusSuperseded.
	Status  Status
	Base    Version // unchanged: the served version that it was compared with
	Failure *Failure

	// Receipt: the chunks that the store has acknowledged.
	Confirmed []IndexRange

	// Removed: the removal that was done, and the due time that it had (so that one scheduled again since stays).
	Removal Removal
	Due     time.Time
}

// IndexRange is the half-open range [From, To) of chunk indexes.
type IndexRange struct{ From, To int }

// Removal names chunks that have to go: those of exactly one revision, or everything of the document below it.
type Removal struct {
	Exact    bool
	Revision Revision
}

// Removes reports whether the removal concerns the chunks of a revision.
func (r Removal) Removes(x Revision) bool {
	if r.Exact {
		return x == r.Revision
	}
	return x.Less(r.Revision)
}

// Event is a record of the events topic: one line of a submission's timeline.
type Event struct {
	Subject
	Stage   string
	Status  Status
	At      time.Time
	Chunks  int // 0 if not known
	Failure *Failure
}
