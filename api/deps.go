package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
)

// ErrTooLarge is what a Publisher returns for a record that is above what the documents topic takes. Nothing was sent.
var ErrTooLarge = errors.New("the record is above what the documents topic takes")

// Unavailable says that a dependency cannot answer for the time being: it costs time, nothing else. The API answers 503.
// Any error with the method Unavailable is treated the same, so that packages below need not import this one.
type Unavailable struct {
	Reason     string        // stable, lower case, e.g. "views_recovering", "kafka_away"
	RetryAfter time.Duration // when to ask again; 0 if nobody knows
	Err        error
}

func (e *Unavailable) Error() string {
	if e.Err == nil {
		return e.Reason
	}
	return fmt.Sprintf("%s: %v", e.Reason, e.Err)
}

// Unwrap gives the cause.
func (e *Unavailable) Unwrap() error { return e.Err }

// Unavailable is the reason and when to ask again.
func (e *Unavailable) Unavailable() (reason string, retryAfter time.Duration) {
	return e.Reason, e.RetryAfter
}

// Every reader below may be called by many requests at once. It returns an Unavailable error while it cannot answer
// truthfully (recovering, stale), never an empty answer instead. What it returns must not be changed by anybody.

// Publisher writes submissions to the documents topic.
type Publisher interface {
	// Publish returns nil only once Kafka has acknowledged the record with acks=all; Position is the record's. With raw
	// the record's value is doc.Content with doc.ContentType as its content-type header (title and source as headers
	// too); otherwise the value is the JSON of the document. A doc with Delete set is a null value. Records of one
	// document id must be kept in the order of the calls that do not overlap.
	// ErrTooLarge: nothing was sent. Any other error means that the record may or may not be kept.
	Publish(ctx context.Context, doc rag.Document, raw bool) (rag.Position, error)
}

// ErrBlobMissing is what Blobs return for content that is not there any more.
var ErrBlobMissing = errors.New("the document's content is not in the blob store")

// Blobs keep the content of large documents.
type Blobs interface {
	// Write keeps all that r gives, and returns once it is safe. An error of r is returned as it is.
	Write(ctx context.Context, r io.Reader) (rag.Blob, error)
	// Open reads a blob; what is missing is ErrBlobMissing.
	Open(ctx context.Context, b rag.Blob) (io.ReadCloser, error)
}

// Documents reads rows of documents.
type Documents interface {
	// Get returns nil without an error where the document has no row.
	Get(ctx context.Context, id string) (*ledger.DocumentRow, error)
	// Snapshot fixes what is served now, for one search; it must be closed.
	Snapshot(ctx context.Context) (Snapshot, error)
}

// Snapshot is what documents served at one moment.
type Snapshot interface {
	// Served is the revision of a document; false: none. It may be called often.
	Served(documentID string) (rag.Revision, bool)
	// Err tells that what it said may be wrong.
	Err() error
	Close()
}

// DocumentQuery asks for a page of documents.
type DocumentQuery struct {
	Status rag.Status // "": any
	After  Mark       // the last entry of the page before; the zero Mark begins at the newest
	Limit  int        // 1 to MaxPage
}

// Mark is a place in a list that is ordered from the newest to the oldest, then by id.
type Mark struct {
	At time.Time // to the nanosecond
	ID string
}

// DocumentEntry is one document of a list. At is what the list is ordered by.
type DocumentEntry struct {
	ID  string
	At  time.Time
	Row *ledger.DocumentRow
}

// DocumentLister lists documents by the status of their latest version, the one changed last first.
type DocumentLister interface {
	// List returns at most q.Limit entries after q.After; fewer mean that there are no more.
	List(ctx context.Context, q DocumentQuery) ([]DocumentEntry, error)
}

// Messages reads timelines.
type Messages interface {
	// Get returns the timelines of a message id: of the document, or of every document that used the id where documentID
	// is "". None means not visible (yet).
	Get(ctx context.Context, messageID, documentID string) ([]*ledger.TrackerRow, error)
}

// Submissions says what a message id was used for; only where that is known without asking the pipeline.
type Submissions interface {
	// Submission returns false where the id is unknown for this document.
	Submission(ctx context.Context, documentID, messageID string) (rag.Hash, bool, error)
}

// Letters reads dead letters. Rows may come without the record's bytes.
type Letters interface {
	// Get returns nil without an error where there is no such letter.
	Get(ctx context.Context, id string) (*ledger.LetterRow, error)
}

// LetterQuery asks for a page of dead letters. Empty fields match everything; LetterReplaying matches LetterSent too.
type LetterQuery struct {
	State      rag.LetterState
	Stage      string
	Reason     string
	DocumentID string
	Since      time.Time // the last failure is not before it
	Until      time.Time // the last failure is before it
	After      Mark      // At is the time of the last failure
	Limit      int
}

// LetterLister lists dead letters, the one that failed last first.
type LetterLister interface {
	// List returns at most q.Limit rows after q.After; fewer mean that there are no more.
	List(ctx context.Context, q LetterQuery) ([]*ledger.LetterRow, error)
}

// Payload is the document record of a dead letter.
type Payload struct {
	Original rag.Raw
	Lost     string // why the bytes could not be kept; "" normally
}

// Payloads reads the bytes of dead letters.
type Payloads interface {
	// Payload returns nil without an error where there is no such letter.
	Payload(ctx context.Context, letterID string) (*Payload, error)
}

// Commander writes to the commands topic.
type Commander interface {
	// Command returns nil only once the record is acknowledged.
	Command(ctx context.Context, c rag.Command) error
}

// QueryEmbedder turns the text of a search into a vector of the space in which the chunks are.
type QueryEmbedder interface {
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// NotReady is one reason why the process is not ready.
type NotReady struct {
	Reason  string `json:"reason" doc:"Stable, lower case."`
	Message string `json:"message,omitempty" doc:"One sentence for people."`
}

// Readiness says why the process is not ready; nothing means that it is.
type Readiness interface {
	Ready(ctx context.Context) []NotReady
}

// Freshness says how far the view of the documents lags behind.
type Freshness interface {
	Lag(ctx context.Context) (time.Duration, error)
}

// StatsReader counts what is there.
type StatsReader interface {
	Stats(ctx context.Context) (Stats, error)
}

// Dependencies are what the API works with. All are required but those said to be optional.
type Dependencies struct {
	Publisher      Publisher
	Documents      Documents
	DocumentLister DocumentLister
	Messages       Messages
	Letters        Letters
	LetterLister   LetterLister
	Payloads       Payloads
	Commander      Commander
	Searcher       sinks.Searcher
	Embedder       QueryEmbedder
	Readiness      Readiness
	Freshness      Freshness
	Stats          StatsReader
	Gatherer       prometheus.Gatherer

	Blobs       Blobs                 // optional: without it documents have to fit into a record
	Submissions Submissions           // optional
	Registerer  prometheus.Registerer // optional: nil means no metrics of the API's own
	Logger      *slog.Logger          // optional: nil discards
	Now         func() time.Time      // optional: time.Now
	NewID       func() string         // optional: UUIDv7
}

// withDefaults fills in the optional fields and refuses the others where they are nil.
func (d Dependencies) withDefaults() (Dependencies, error) {
	var faults []error
	for _, f := range []struct {
		name   string
		absent bool
	}{
		{"Publisher", d.Publisher == nil}, {"Documents", d.Documents == nil},
		{"DocumentLister", d.DocumentLister == nil}, {"Messages", d.Messages == nil}, {"Letters", d.Letters == nil},
		{"LetterLister", d.LetterLister == nil}, {"Payloads", d.Payloads == nil}, {"Commander", d.Commander == nil},
		{"Searcher", d.Searcher == nil}, {"Embedder", d.Embedder == nil}, {"Readiness", d.Readiness == nil},
		{"Freshness", d.Freshness == nil}, {"Stats", d.Stats == nil}, {"Gatherer", d.Gatherer == nil},
	} {
		if f.absent {
			faults = append(faults, fmt.Errorf("api: the dependency %s is missing", f.name))
		}
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.NewID == nil {
		d.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	return d, errors.Join(faults...)
}
