// Package verify compares the document rows with a vector store, while traffic flows, and writes again or removes what
// differs as far as that is safe.
package verify

import (
	"context"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
)

// Rows reads the document rows.
type Rows interface {
	// Each calls do for every document that has a row, with a row as it is at the time of the call or later.
	Each(ctx context.Context, do func(documentID string, row *ledger.DocumentRow) error) error
	// Get returns nil without an error where the document has no row.
	Get(ctx context.Context, documentID string) (*ledger.DocumentRow, error)
	// Fresh returns nil once Get shows everything that was acknowledged before the call.
	Fresh(ctx context.Context) error
}

// Store is what is compared; every sink with a scanner is one.
type Store interface {
	Scan(ctx context.Context, documentID string, each func(sinks.Object) error) error
	Missing(ctx context.Context, objects []sinks.Object) ([]int, error)
	Upsert(ctx context.Context, objects []sinks.Object, repair map[int]bool) []sinks.Result
	Remove(ctx context.Context, documentID string, r rag.Removal) sinks.Result
}

// Log reads what the pipeline has given to the store, as far back as the log goes.
type Log interface {
	// Vectors calls do for every vector that is in the log at the time of the call, of each document the latest first.
	Vectors(ctx context.Context, do func(rag.Vector) error) error
}

// Embedder makes vectors of texts whose vectors the log no longer has.
type Embedder interface {
	// Embed returns one vector per text, in order; nil for a text that can have none.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Pipeline says how far the pipeline is.
type Pipeline interface {
	// Settled returns nil once every chunk that stood in the store before the call is known to the rows: what was written has
	// been confirmed, and the confirmations are applied. An error means that this cannot be told.
	Settled(ctx context.Context) error
}

// Kind of a difference.
type Kind string

// Kinds of differences.
const (
	// Missing: a chunk of the served revision is not in the store.
	Missing Kind = "missing"
	// Unsearchable: the store has the chunk, and a vector search does not find it.
	Unsearchable Kind = "unsearchable"
	// Stale: chunks that no row accounts for: of a revision that is neither served nor in work nor due for removal, of a
	// document without a row, or beyond the number of chunks of the served revision.
	Stale Kind = "stale"
	// Doubled: an object at the place of a chunk, under another id than the chunk's.
	Doubled Kind = "doubled"
)

// Finding is a difference: what is wrong, of one kind, with one revision of a document.
type Finding struct {
	Kind       Kind
	DocumentID string
	Revision   rag.Revision
	Chunks     ledger.Bitmap // indexes of the chunks, as far as they are plausible
	Objects    int           // how many of the store or, where they are missing, how many there should be
	Repaired   int           // of Objects
	Note       string        // why the rest is left, where it was to be repaired
}

// Left is the number of objects that still differ.
func (f *Finding) Left() int { return f.Objects - f.Repaired }

// Report is what was found.
type Report struct {
	Documents int // with a row
	Chunks    int // that the rows say are served
	Objects   int // in the store at the first look
	// Findings by document, revision and kind.
	Findings []Finding
	// Undecided are objects of which cannot be told whether the pipeline is at work on them: it is behind, or does not run.
	Undecided int
}

// Clean reports whether nothing is left to be done, and everything could be judged.
func (r *Report) Clean() bool { return r.Left() == 0 && r.Undecided == 0 }

// Left is the number of objects that still differ.
func (r *Report) Left() int {
	n := 0
	for i := range r.Findings {
		n += r.Findings[i].Left()
	}
	return n
}

// Verifier compares. All fields are required.
type Verifier struct {
	Rows     Rows
	Store    Store
	Log      Log
	Embedder Embedder
	Pipeline Pipeline
	Tenant   string // of the chunk ids
	// RemovalDelay is how long the pipeline leaves chunks in the store that are no longer served.
	RemovalDelay time.Duration
	// Settle is how long a write without an answer may still be applied by the store.
	Settle time.Duration
	After  func(time.Duration) <-chan time.Time
	// Progress is told what is being done; it may be nil.
	Progress func(step string)
}

const (
	searchBatch  = 100  // objects in one call of the store
	confirmBatch = 1000 // objects that are looked at a second time at once
	judgeBatch   = 100  // documents that are judged by rows of one moment
	attempts     = 3    // to write what the store gives no answer about
	// beyondRemoval is how much longer than RemovalDelay the pause is before the second look at what seems stale.
	beyondRemoval = 5 * time.Second
)

// Run compares, and with repair mends what it may. A difference counts only if it still stands at a second look, by rows that
// are newer than that look. It holds a few bytes for each document, and bits for its chunks.
//
// Served chunks that are not found are written again, delete and insert, with the vector of the log or, where the store
// still has the object, a new one of its text; a chunk of which neither is left can only come from its document. Of what is
// stale the exact revision is removed. Nothing is removed above the served revision of a document, nor of one in work.
func (v *Verifier) Run(ctx context.Context, repair bool) (Report, error) {
	r := &run{Verifier: v, repair: repair, documents: map[string]*document{}, findings: map[findingKey]*Finding{}}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"Reading the document rows", r.readRows},
		{"Walking through the store", r.walk},
		{"Searching for the vectors of the log", r.searchLogged},
		{"Searching for older vectors", r.searchOlder},
		{"Waiting until removals are done", r.pause},
		{"Looking again", r.judge},
	} {
		if v.Progress != nil {
			v.Progress(step.name)
		}
		if err := step.do(ctx); err != nil {
			return Report{}, err
		}
	}
	return r.report(), nil
}
