// Package sinks says what a vector store must do for the pipeline: upsert with a result per object, remove below a
// version, read back by vector, and search what is served. Its shape is Weaviate's, the most demanding one.
package sinks

import (
	"context"

	"github.com/waymarkhq/waymark/rag"
)

// Object is a chunk as a store holds it. Its id is deterministic (rag.ChunkID), so that an upsert repeats harmlessly.
// Of the chunk's subject, stores keep the document id and the revision.
type Object struct {
	ID     string // UUID
	Chunk  rag.Chunk
	Vector []float32
}

// Outcome of one operation on one object.
type Outcome int

// Outcomes. Only Done may be confirmed.
const (
	// Done: the store has acknowledged this object.
	Done Outcome = iota
	// Ambiguous: no answer came (timeout, reset, EOF, unavailable): it may have been applied, may be still, or never.
	// The sink repairs it (delete, insert) when the same object is given to Upsert again.
	Ambiguous
	// Rejected: this object can never be stored.
	Rejected
	// Transient: this object failed and may succeed later.
	Transient
	// Outage: the store is away, read-only or overloaded: every object would fail.
	Outage
)

func (o Outcome) String() string {
	return [...]string{"done", "ambiguous", "rejected", "transient", "outage"}[o]
}

// Result of one object. Err is nil exactly when Outcome is Done.
type Result struct {
	Outcome Outcome
	Err     error
}

// Sink is a vector store as the indexer uses it. All methods may be called concurrently; the caller sees to it that no
// two calls write the same id at once.
type Sink interface {
	// Upsert writes objects and returns one result per object, in order. It checks ids, dimensions and finiteness itself
	// before it sends (Rejected). It never returns fewer results than objects. Objects whose last outcome was ambiguous
	// are named in repair (by index) and are deleted before they are inserted; of several with one id it is enough that one is
	// named.
	Upsert(ctx context.Context, objects []Object, repair map[int]bool) []Result
	// Remove deletes chunks of a document: those of exactly r.Revision, or of every lower revision. Removing what is not
	// there is Done.
	Remove(ctx context.Context, documentID string, r rag.Removal) Result
	// Missing reads objects back by vector search and returns the indexes of those that a search does not find.
	Missing(ctx context.Context, objects []Object) ([]int, error)
	// Canary writes, finds and removes a tiny object of its own: nil means that the store works. No count, search or scan
	// shows that object, and none is left behind when the process dies in between.
	Canary(ctx context.Context) error
	// Count is the number of chunk objects in the store.
	Count(ctx context.Context) (int64, error)
	Close() error
}

// Mode of a search.
type Mode string

// Modes of search.
const (
	ModeHybrid Mode = "hybrid"
	ModeVector Mode = "vector"
	ModeText   Mode = "text"
)

// Query asks for the K best chunks.
type Query struct {
	Mode   Mode
	Text   string
	Vector []float32 // unused in ModeText
	K      int
	// DocumentID restricts the search to one document; "" means all.
	DocumentID string
	// Metadata are "key=value" pairs that must all be there.
	Metadata []string
	// Served decides whether a chunk's revision is the one that its document serves now. Chunks for which it is false
	// are never returned, and never cost a place among the K. nil lets every chunk through. It may be called often.
	Served func(documentID string, rev rag.Revision) bool
}

// Hit is one chunk found.
type Hit struct {
	ID    string
	Chunk rag.Chunk
	Score float64 // higher is better; comparable within one answer only
}

// Searcher answers queries; best first. Fewer than K hits means that there are no more. An unusable query is a
// *QueryError. Text search finds a chunk by any of the query's terms, in its text or, for less, its title and heading.
type Searcher interface {
	Search(ctx context.Context, q Query) ([]Hit, error)
}

// Scanner walks through the store's objects, of one document or ("") of all, in any order, for verification. Vectors are not
// filled in. What is written meanwhile may or may not be seen. each may call the store.
type Scanner interface {
	Scan(ctx context.Context, documentID string, each func(Object) error) error
}
