package ledger

import (
	"time"

	"github.com/waymarkhq/waymark/rag"
)

// ChunkerRow is the chunker's row of a document: which message ids came as which version.
type ChunkerRow struct {
	// Latest accepted version; dead ones count.
	Latest rag.Version
	// Forgotten is the highest version whose message id was forgotten; no message here is at or below it.
	Forgotten rag.Version
	// Forwarded is the highest position of each partition from which a record was forwarded here, packed like a version.
	Forwarded map[int32]rag.Version
	// Messages by id: see DefaultKeep for how long they are remembered.
	Messages map[string]Submission
}

// Submission is what the chunker remembers of a message id.
type Submission struct {
	Version rag.Version
	Hash    rag.Hash
	At      time.Time // timestamp of the record
}

// DocumentRow is the indexer's row of a document. It is a function of a prefix of the progress log of its partition:
// of two rows the one that has applied more is the right one. Where it only counts what is served, read Served.
type DocumentRow struct {
	// Applied is the position of the last progress record applied, packed like a version (epoch, offset).
	Applied rag.Version
	// Fence is the latest version that ended well. What lies below it is superseded.
	Fence rag.Version
	// Floor is the highest version whose final was forgotten: at or below it, with no entry, nothing is said any more.
	Floor rag.Version
	// Heard is the highest version of which the chunker has spoken. It speaks first of each version in their order, so that
	// no version at or below it is still to come.
	Heard rag.Version
	// Served is what readers may see.
	Served Served
	// Work are the revisions in work.
	Work map[rag.Revision]Work
	// Finals are the last words on message ids: once said in a generation, repeated, never changed.
	Finals map[string]Final
	// Due are removals with the time at which they may run.
	Due map[rag.Removal]time.Time
}

// Served is the revision that readers may see. Count 0: nothing (deleted at Revision, or never indexed).
type Served struct {
	Revision        rag.Revision
	Count           int
	ContentIdentity rag.Hash
	At              time.Time
}

// Work is a revision in work.
type Work struct {
	MessageID       string
	Partition       int32 // of the document record
	Count           int   // 0 until the manifest came
	Confirmed       Bitmap
	Attempt         int
	ContentIdentity rag.Hash
	Warnings        []string
	// RetryCause is the position of the progress record that caused the retry now scheduled or running; 0 if none.
	RetryCause  rag.Version
	RetryDue    time.Time
	Failure     *rag.Failure // of the attempt before
	FirstFailed time.Time
	At          time.Time // of the last progress
}

// Final is the last word on a message id in a generation.
type Final struct {
	Revision    rag.Revision
	Partition   int32
	Status      rag.Status
	Attempt     int
	Cause       rag.Version // position of the progress record that caused it: its redelivery says it again
	Count       int         // chunks, where known
	Failure     *rag.Failure
	Warnings    []string
	FirstFailed time.Time
	At          time.Time
}

// TrackerRow is the tracker's row of a (document, message id): its timeline.
type TrackerRow struct {
	DocumentID string
	MessageID  string
	Revision   rag.Revision
	Status     rag.Status
	Chunks     int
	Attempt    int            // of Status; of a retry the one to come
	Failure    *rag.Failure   // that of Status
	Events     []TrackerEvent // in the order in which they happen to a submission, not by clock; bounded
}

// TrackerEvent is one line of a timeline.
type TrackerEvent struct {
	Generation int
	Attempt    int
	Stage      string
	Status     rag.Status
	At         time.Time
}

// LetterRow is the dead-letter group's row of a letter.
type LetterRow struct {
	ID          string
	Subject     rag.Subject // with the generation and attempt that run or died last
	State       rag.LetterState
	Due         time.Time   // scheduled: when the retry goes out
	Cause       rag.Version // position of the last command that changed the row; its redelivery repeats the replay
	CauseTopic  string
	Position    rag.Position // of the document record
	Failure     rag.Failure
	Attempts    int // runs that failed, over all generations
	FirstFailed time.Time
	LastFailed  time.Time
	Original    rag.Raw
	Lost        string
	Reason      string // of a discard
}
