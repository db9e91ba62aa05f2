package client

import (
	"time"

	"github.com/waymarkhq/waymark/rag"
)

// The bodies of requests and answers; the OpenAPI document of the API describes every field.

// Document is one submission. Either Text or Content.
type Document struct {
	ID          string         `json:"id,omitempty"`
	Text        string         `json:"text,omitempty"`
	Content     []byte         `json:"content,omitempty"`
	ContentType string         `json:"content_type,omitempty"`
	Title       string         `json:"title,omitempty"`
	Source      string         `json:"source,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
	MessageID   string         `json:"message_id,omitempty"`
}

// Accepted answers a submission: the log has it.
type Accepted struct {
	MessageID  string `json:"message_id"`
	DocumentID string `json:"document_id"`
	StatusURL  string `json:"status_url"`
}

// BatchResult is the answer to one line of a batch: accepted, or the problem.
type BatchResult struct {
	Line   int `json:"line"`
	Status int `json:"status"`
	Accepted
	Problem *Error `json:"problem"`
}

// Failure says why a version died.
type Failure struct {
	Stage   string    `json:"stage"`
	Class   rag.Class `json:"class"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}

// ServedVersion is what readers see of a document.
type ServedVersion struct {
	Version rag.Version `json:"version"`
	Chunks  int         `json:"chunks"`
}

// DocumentStatus is the latest version of a document, and what is served of it.
type DocumentStatus struct {
	DocumentID string         `json:"document_id"`
	Status     rag.Status     `json:"status"`
	Version    rag.Version    `json:"version"`
	Chunks     int            `json:"chunks"`
	MessageID  string         `json:"message_id"`
	UpdatedAt  time.Time      `json:"updated_at"`
	Error      *Failure       `json:"error,omitempty"`
	Warnings   []string       `json:"warnings,omitempty"`
	Served     *ServedVersion `json:"served,omitempty"`
}

// MessageEvent is one line of a submission's timeline.
type MessageEvent struct {
	Stage      string     `json:"stage"`
	Outcome    rag.Status `json:"outcome"`
	At         time.Time  `json:"at"`
	Attempt    int        `json:"attempt"`
	Generation int        `json:"generation"`
}

// MessageStatus is what became of one submission.
type MessageStatus struct {
	MessageID  string         `json:"message_id"`
	DocumentID string         `json:"document_id"`
	Version    rag.Version    `json:"version"`
	Status     rag.Status     `json:"status"`
	Final      bool           `json:"final"`
	Chunks     int            `json:"chunks"`
	Attempts   int            `json:"attempts"`
	Error      *Failure       `json:"error,omitempty"`
	Events     []MessageEvent `json:"events"`
}

// DeadLetter is a version that died, or that waits for an automatic retry.
type DeadLetter struct {
	ID            string          `json:"id"`
	MessageID     string          `json:"message_id"`
	DocumentID    string          `json:"document_id"`
	Stage         string          `json:"stage"`
	Class         rag.Class       `json:"class"`
	Reason        string          `json:"reason"`
	Error         string          `json:"error"`
	Attempts      int             `json:"attempts"`
	Generation    int             `json:"generation"` // how often it was replayed
	Topic         string          `json:"topic"`
	Partition     int32           `json:"partition"`
	Offset        int64           `json:"offset"`
	FirstFailedAt time.Time       `json:"first_failed_at"`
	LastFailedAt  time.Time       `json:"last_failed_at"`
	State         rag.LetterState `json:"state"`
	RetryAt       *time.Time      `json:"retry_at,omitempty"`
	DiscardReason string          `json:"discard_reason,omitempty"`
	Lost          string          `json:"lost,omitempty"`
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
	Score      float64           `json:"score"`
	Metadata   map[string]string `json:"metadata"`
	Start      int               `json:"start"`
	End        int               `json:"end"`
	Heading    string            `json:"heading,omitempty"`
	Page       int               `json:"page,omitempty"`
	Parent     *Parent           `json:"parent,omitempty"` // nil without splitting.parent_tokens
}

// Parent is the larger part of a text around a chunk. Of many large ones only those of the best hits have their text.
type Parent struct {
	Text  string `json:"text"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

// Stats counts what is there. Maps may lack a key where the count is 0.
type Stats struct {
	Documents   map[rag.Status]int64      `json:"documents"`
	DeadLetters map[rag.LetterState]int64 `json:"dead_letters"`
	Lag         map[string]int64          `json:"lag"`
	Store       StoreStats                `json:"store"`
}

// StoreStats is the size of the vector store.
type StoreStats struct {
	Chunks int64 `json:"chunks"`
}
