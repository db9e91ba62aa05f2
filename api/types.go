package api

import (
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

// The bodies of answers. Clients decode into them; their field names are API.

// Failure says why something failed.
type Failure struct {
	Stage   string    `json:"stage" doc:"chunker, embedder or indexer."`
	Class   rag.Class `json:"class" doc:"message: it can never succeed; transient: the attempts are spent."`
	Reason  string    `json:"reason" doc:"Stable, lower case."`
	Message string    `json:"message" doc:"One sentence for people."`
}

func failureOf(f *rag.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{Stage: f.Stage, Class: f.Class, Reason: f.Reason, Message: f.Message}
}

// ServedVersion is what readers see of a document.
type ServedVersion struct {
	Version rag.Version `json:"version"`
	Chunks  int         `json:"chunks"`
}

// DocumentStatus is the latest version of a document and what the store serves of it.
type DocumentStatus struct {
	DocumentID string         `json:"document_id"`
	Status     rag.Status     `json:"status" enum:"accepted,chunked,embedded,retrying,indexed,unchanged,superseded,deleted,dead" doc:"Of the latest version."`
	Version    rag.Version    `json:"version" doc:"The latest version; grows with every submission of the document."`
	Chunks     int            `json:"chunks" doc:"Of the latest version; 0 while not known."`
	MessageID  string         `json:"message_id" doc:"The submission that made the latest version."`
	UpdatedAt  time.Time      `json:"updated_at"`
	Error      *Failure       `json:"error,omitempty"`
	Warnings   []string       `json:"warnings,omitempty"`
	Served     *ServedVersion `json:"served,omitempty" doc:"What a search finds; absent where nothing is served."`
}

// documentStatus is what a row says; false where it knows no version yet.
func documentStatus(id string, row *ledger.DocumentRow) (DocumentStatus, bool) {
	latest, ok := ledger.Latest(row)
	if !ok {
		return DocumentStatus{}, false
	}
	d := DocumentStatus{
		DocumentID: id, Status: latest.Status, Version: latest.Revision.Version, Chunks: latest.Chunks,
		MessageID: latest.MessageID, UpdatedAt: latest.At.UTC(), Error: failureOf(latest.Failure), Warnings: latest.Warnings,
	}
	if row.Served.Count > 0 {
		d.Served = &ServedVersion{Version: row.Served.Revision.Version, Chunks: row.Served.Count}
	}
	return d, true
}

// DocumentPage is a page of documents, the one changed last first.
type DocumentPage struct {
	Documents  []DocumentStatus `json:"documents" nullable:"false"`
	NextCursor string           `json:"next_cursor,omitempty" doc:"Give it as cursor for the next page; absent on the last one."`
}

// MessageEvent is one line of a submission's timeline.
type MessageEvent struct {
	Stage      string     `json:"stage"`
	Outcome    rag.Status `json:"outcome"`
	At         time.Time  `json:"at"`
	Attempt    int        `json:"attempt" doc:"From 1; retries count on."`
	Generation int        `json:"generation" doc:"0 for the first run; each replay is one more."`
}

// MessageStatus is what became of one submission.
type MessageStatus struct {
	MessageID  string         `json:"message_id"`
	DocumentID string         `json:"document_id"`
	Version    rag.Version    `json:"version"`
	Status     rag.Status     `json:"status" enum:"accepted,chunked,embedded,retrying,indexed,unchanged,superseded,deleted,dead"`
	Final      bool           `json:"final" doc:"Whether the status is the last word; only a replay of a dead version changes it."`
	Chunks     int            `json:"chunks" doc:"0 while not known."`
	Attempts   int            `json:"attempts" doc:"Runs so far in the latest generation."`
	Error      *Failure       `json:"error,omitempty"`
	Events     []MessageEvent `json:"events" nullable:"false"`
}

func messageStatus(row *ledger.TrackerRow) MessageStatus {
	m := MessageStatus{
		MessageID: row.MessageID, DocumentID: row.DocumentID, Version: row.Revision.Version, Status: row.Status,
		Final: row.Status.Final(), Chunks: row.Chunks, Attempts: row.Attempt + 1, Error: failureOf(row.Failure),
		Events: make([]MessageEvent, 0, len(row.Events)),
	}
	for _, e := range row.Events {
		m.Events = append(m.Events, MessageEvent{
			Stage: e.Stage, Outcome: e.Status, At: e.At.UTC(), Attempt: e.Attempt + 1, Generation: e.Generation,
		})
	}
	return m
}

// DeadLetter is a version that died, or that waits for an automatic retry.
type DeadLetter struct {
	ID            string          `json:"id" doc:"<topic>@<epoch>-<partition>-<offset> of the document record."`
	MessageID     string          `json:"message_id"`
	DocumentID    string          `json:"document_id"`
	Stage         string          `json:"stage"`
	Class         rag.Class       `json:"class"`
	Reason        string          `json:"reason" doc:"Stable, lower case."`
	Error         string          `json:"error" doc:"One sentence for people."`
	Attempts      int             `json:"attempts" doc:"Runs that failed, over all replays."`
	Generation    int             `json:"generation" doc:"How often it was replayed: 0 for the first run, one more with each replay."`
	Topic         string          `json:"topic"`
	Partition     int32           `json:"partition"`
	Offset        int64           `json:"offset"`
	FirstFailedAt time.Time       `json:"first_failed_at"`
	LastFailedAt  time.Time       `json:"last_failed_at"`
	State         rag.LetterState `json:"state" enum:"waiting,scheduled,replaying,resolved,superseded,discarded"`
	RetryAt       *time.Time      `json:"retry_at,omitempty" doc:"When the automatic retry goes out, while it is scheduled."`
	DiscardReason string          `json:"discard_reason,omitempty"`
	Lost          string          `json:"lost,omitempty" doc:"Why the record's bytes could not be kept; such a letter cannot be replayed."`
}

func deadLetter(row *ledger.LetterRow) DeadLetter {
	l := DeadLetter{
		ID: row.ID, MessageID: row.Subject.MessageID, DocumentID: row.Subject.DocumentID, Stage: row.Failure.Stage,
		Class: row.Failure.Class, Reason: row.Failure.Reason, Error: row.Failure.Message, Attempts: row.Attempts, Generation: row.Subject.Revision.Generation,
		Topic: row.Position.Topic, Partition: row.Position.Partition, Offset: row.Position.Offset,
		FirstFailedAt: row.FirstFailed.UTC(), LastFailedAt: row.LastFailed.UTC(), State: row.Shown(),
		DiscardReason: row.Reason, Lost: row.Lost,
	}
	if row.State == rag.LetterScheduled {
		due := row.Due.UTC()
		l.RetryAt = &due
	}
	return l
}

// DeadLetterPage is a page of dead letters, the one that failed last first.
type DeadLetterPage struct {
	DeadLetters []DeadLetter `json:"dead_letters" nullable:"false"`
	NextCursor  string       `json:"next_cursor,omitempty" doc:"Give it as cursor for the next page; absent on the last one."`
}

// Hit is one chunk that a search found.
type Hit struct {
	DocumentID string            `json:"document_id"`
	ChunkID    string            `json:"chunk_id"`
	ChunkIndex int               `json:"chunk_index"`
	Version    rag.Version       `json:"version"`
	Text       string            `json:"text"`
	Title      string            `json:"title"`
	Source     string            `json:"source"`
	Score      float64           `json:"score" doc:"Higher is better; comparable within one answer only."`
	Metadata   map[string]string `json:"metadata" nullable:"false"`
	Start      int               `json:"start" doc:"Byte offset into the extracted UTF-8 text."`
	End        int               `json:"end" doc:"Byte offset of the first byte after the chunk."`
	Heading    string            `json:"heading,omitempty"`
	Page       int               `json:"page,omitempty" doc:"From 1; absent where the format has no pages."`
	Parent     *Parent           `json:"parent,omitempty" doc:"The larger part around the chunk; absent without splitting.parent_tokens. Chunks of one parent are hits of their own."`
}

// Parent is the larger part of a text around a chunk.
type Parent struct {
	Text  string `json:"text,omitempty" doc:"Absent with parents=borders, and for the hits behind those whose parents have 4 MiB together."`
	Start int    `json:"start" doc:"Byte offset into the extracted UTF-8 text."`
	End   int    `json:"end" doc:"Byte offset of the first byte after the parent."`
}

// SearchResult holds the hits, the best first.
type SearchResult struct {
	Hits []Hit `json:"hits" nullable:"false"`
}

// Stats counts what is there. Maps may lack a key where the count is 0.
type Stats struct {
	Documents   map[rag.Status]int64      `json:"documents" nullable:"false" doc:"Documents by the status of their latest version."`
	DeadLetters map[rag.LetterState]int64 `json:"dead_letters" nullable:"false" doc:"Dead letters by state."`
	Lag         map[string]int64          `json:"lag" nullable:"false" doc:"Records that each stage has not taken up yet."`
	Store       StoreStats                `json:"store"`
}

// StoreStats is the size of the vector store.
type StoreStats struct {
	Chunks int64 `json:"chunks" doc:"Chunk objects, those about to be removed included."`
}

// Health says that the process runs.
type Health struct {
	Status string `json:"status" example:"ok"`
}

// Ready says that the process does its work.
type Ready struct {
	Ready bool `json:"ready"`
}
