package processors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

// Names of the stages, as failures and events carry them.
const (
	StageChunker     = rag.StageChunker
	StageEmbedder    = "embedder"
	StageIndexer     = "indexer"
	StageTracker     = "tracker"
	StageDeadLetters = "deadletters"
)

// Reader cuts documents into chunks.
type Reader interface {
	Read(ctx context.Context, in read.Input) (*read.Document, error)
}

// Chunker recognises duplicates, redeliveries and unchanged content, parses, splits, and sends one record per chunk and
// one manifest per version.
type Chunker struct {
	Topics Topics
	Place  Place
	Reader Reader
	// Blobs hold the content of large documents; nil where there is no blob store.
	Blobs Blobs
	// Settings names everything but the submission that decides what its chunks and vectors are: splitter, parser, model.
	Settings string
	// Model and ModelSettings go into the key of a chunk, by which equal texts are embedded once.
	Model, ModelSettings string
	Keep                 ledger.Keep
	Now                  func() time.Time
	Metrics              *Metrics
}

// maxRemembered bounds the message ids, and the ends of versions, of one document, whatever their age: its rows must fit
// into a record, and are written again with every change.
const maxRemembered = 10_000

// submission is a document record as the chunker understands it.
type submission struct {
	doc    rag.Document
	reject *rag.Failure // why it dies, whatever its content is
	hash   rag.Hash
	rekey  bool // the key was missing and is known from the content
	noKey  bool // it has no usable key: its ids are foreign forms
}

func (c *Chunker) read(r stage.Record, pos rag.Position) submission {
	doc, reject := wire.DecodeDocument(r, pos)
	s := submission{doc: doc.Document, rekey: doc.Rekey}
	if reject == nil {
		s.hash = doc.SubmissionHash()
		return s
	}
	s.doc = rag.Document{ID: reject.DocumentID, MessageID: reject.MessageID, Delete: r.Value == nil}
	s.noKey = reject.Foreign
	s.reject = &rag.Failure{Stage: StageChunker, Class: rag.ClassMessage, Reason: reject.Reason, Message: reject.Message}
	raw := rag.Document{Content: r.Value, Delete: r.Value == nil, ContentType: "undecodable"}
	s.hash = raw.SubmissionHash()
	return s
}

// incoming reads a record of the documents topic as the ledger identifies it.
func (c *Chunker) incoming(r stage.Record) (submission, ledger.Incoming, rag.Subject, error) {
	pos := c.Place.of(r)
	s := c.read(r, pos)
	v, err := c.Place.version(pos.Offset)
	if mutant.Active == mutant.WallClockVersions {
		v, err = c.Place.version(c.Now().UnixMilli() & rag.MaxOffset)
	}
	in := ledger.Incoming{MessageID: s.doc.MessageID, ForeignID: pos.String(), Hash: s.hash, Delete: s.doc.Delete, Version: v, At: r.Timestamp}
	if from, ok := c.Place.origin(r); ok {
		in.ForeignID, in.Origin = from.String(), &ledger.Origin{Partition: from.Partition, Offset: from.Offset}
	}
	if s.reject == nil && !s.doc.Delete {
		in.Identity = rag.ContentIdentity(s.hash, c.Settings)
	}
	subject := rag.Subject{DocumentID: s.doc.ID, MessageID: s.doc.MessageID, Revision: rag.Revision{Version: v}, Partition: pos.Partition}
	return s, in, subject, err
}

// Handle decides what one record of the documents topic means.
func (c *Chunker) Handle(ctx context.Context, m stage.Message[[]byte], row *ledger.ChunkerRow) (stage.Result[ledger.ChunkerRow], error) {
	s, in, subject, err := c.incoming(m.Record)
	if err != nil {
		return stage.Result[ledger.ChunkerRow]{}, err
	}
	if c.stray(m.Record, s) {
		return c.forward(m.Record, s), nil
	}
	if s.noKey { // no row to look at: its key is not a document's
		return stage.Result[ledger.ChunkerRow]{Outputs: c.dead(subject, m.Record.Timestamp, s.reject)}, nil
	}
	d := decide(row, stage.Joined(m, c.Topics.IndexerTable), in)
	subject.MessageID = d.MessageID
	res := stage.Result[ledger.ChunkerRow]{}
	if d.Row != nil {
		committed := c.Place.committedVersion(m.Committed)
		res.Row = ledger.ForgetMessages(d.Row, committed, c.Now(), c.Keep)
		res.Row = ledger.ForgetMessages(res.Row, committed, c.Now(), ledger.Keep{For: -1, Count: maxRemembered})
	}
	c.Metrics.decided(d)
	out, err := c.outputs(ctx, d, subject, s, m.Record.Timestamp, in)
	res.Outputs, res.More = out.first, out.more
	return res, err
}

// decide says what a record means. The row of a forwarded duplicate is written again even where it notes nothing new: when
// the record was delivered before, its row may not have reached the table.
func decide(row *ledger.ChunkerRow, join *ledger.DocumentRow, in ledger.Incoming) ledger.ChunkerDecision {
	d := ledger.DecideDocument(row, join, in)
	if d.Action == ledger.ActDuplicate && d.Row == nil && in.Origin != nil {
		d.Row = row
	}
	return d
}

// outputs are what is sent for one record; more gives what memory should not hold as a whole, behind the first ones.
type outputs struct {
	first []stage.Output
	more  func(ctx context.Context, yield func(stage.Output) error) error
}

func (c *Chunker) outputs(ctx context.Context, d ledger.ChunkerDecision, subject rag.Subject, s submission, at time.Time, in ledger.Incoming) (outputs, error) {
	switch d.Action {
	case ledger.ActDuplicate, ledger.ActOld:
		return outputs{}, nil
	case ledger.ActReused:
		return outputs{first: c.dead(subject, at, &rag.Failure{Stage: StageChunker, Class: rag.ClassMessage, Reason: rag.ReasonMessageIDReused,
			Message: fmt.Sprintf("the message id %q was used before for other content of this document", in.MessageID)})}, nil
	case ledger.ActSuperseded:
		return outputs{first: c.ended(subject, at, rag.StatusSuperseded, 0, in.Identity)}, nil
	case ledger.ActUnchanged:
		return outputs{first: c.ended(subject, at, rag.StatusUnchanged, d.Base, in.Identity)}, nil
	}
	out, err := c.process(ctx, subject, s)
	if err != nil {
		return outputs{}, err
	}
	out.first = append([]stage.Output{c.Topics.event(StageChunker, subject, rag.StatusAccepted, at, 0, nil)}, out.first...)
	return out, nil
}

// HandleReplay runs a version again, with the generation and attempt that it brings; the row does not change.
func (c *Chunker) HandleReplay(ctx context.Context, m stage.Message[rag.Replay], _ *ledger.ChunkerRow) (stage.Result[ledger.ChunkerRow], error) {
	if m.DecodeError != nil || m.Tombstone {
		return stage.Result[ledger.ChunkerRow]{}, stage.Reject(rag.ReasonUnknownFormat, "a record of %s cannot be read: %v", m.Record.Topic, m.DecodeError)
	}
	r := m.Value
	if ledger.ReplaySuperseded(stage.Joined(m, c.Topics.IndexerTable), r.Revision) {
		return stage.Result[ledger.ChunkerRow]{Outputs: []stage.Output{c.Topics.verdict(r.Subject, c.Now(), rag.StatusSuperseded, nil)}}, nil
	}
	record := stage.Record{Topic: r.Position.Topic, Partition: r.Position.Partition, Offset: r.Position.Offset,
		Timestamp: r.Original.Timestamp, Key: r.Original.Key, Value: r.Original.Value}
	for _, h := range r.Original.Headers {
		record.Headers = append(record.Headers, stage.Header(h))
	}
	s := c.read(record, r.Position)
	switch {
	case isLost(r.Original):
		s = submission{reject: &rag.Failure{Stage: StageChunker, Class: rag.ClassMessage, Reason: rag.ReasonRecordLost,
			Message: "the document record was no longer there when it was to be tried again"}}
	case s.reject == nil && s.doc.ID != r.DocumentID: // it has died under the id of its position
		s.reject = notForwarded
	}
	out, err := c.process(ctx, r.Subject, s)
	return stage.Result[ledger.ChunkerRow]{Outputs: out.first, More: out.more}, err
}

// process sends the delete on, or one record per chunk and the manifest, or the verdict on a document that cannot be read.
func (c *Chunker) process(ctx context.Context, subject rag.Subject, s submission) (outputs, error) {
	verdict := func(f *rag.Failure) outputs {
		return outputs{first: []stage.Output{c.Topics.verdict(subject, c.Now(), rag.StatusDead, f)}}
	}
	switch {
	case s.reject != nil:
		return verdict(s.reject), nil
	case s.doc.Delete:
		return outputs{first: []stage.Output{c.Topics.Progress.Record(subject.DocumentID, rag.Progress{Kind: rag.ProgressDelete, Subject: subject, At: c.Now()})}}, nil
	}
	d, err := c.cut(ctx, s.doc)
	if err == nil {
		err = countable(len(d.Pieces))
	}
	if err != nil {
		f, again := c.failure(ctx, err)
		if again != nil {
			return outputs{}, again
		}
		return verdict(f), nil
	}
	return c.chunks(ctx, subject, s, d)
}

// manyChunks are too many to be held in memory at once as records.
const manyChunks = 512

// chunks are the records of a document's chunks, then the manifest.
func (c *Chunker) chunks(ctx context.Context, subject rag.Subject, s submission, d *read.Document) (outputs, error) {
	title, now := s.doc.Title, c.Now()
	if title == "" {
		title = d.Title
	}
	metadata := s.doc.Metadata.WithDefault("lang", d.Language)
	each := func(ctx context.Context, yield func(stage.Output) error) error {
		if err := d.Texts(ctx, func(i int, text, parent string) error {
			p := d.Pieces[i]
			return yield(c.Topics.Chunks.Record(chunkKey(c.Model, c.ModelSettings, text), rag.Chunk{Subject: subject, Index: i, Count: len(d.Pieces),
				Text: text, Start: p.Start, End: p.End, Title: title, Source: s.doc.Source, Metadata: metadata, Heading: p.Heading, Page: p.Page,
				Parent: rag.Parent{Start: p.Parent.Start, End: p.Parent.End, Text: parent}}))
		}); err != nil {
			return err
		}
		if err := yield(c.Topics.Progress.Record(subject.DocumentID, rag.Progress{Kind: rag.ProgressManifest, Subject: subject, At: now, Count: len(d.Pieces),
			ContentIdentity: rag.ContentIdentity(s.hash, c.Settings), Title: title, Source: s.doc.Source, Metadata: metadata, Warnings: bounded(d.Warnings)})); err != nil {
			return err
		}
		return yield(c.Topics.event(StageChunker, subject, rag.StatusChunked, now, len(d.Pieces), nil))
	}
	if len(d.Pieces) > manyChunks {
		return outputs{more: each}, nil
	}
	all := make([]stage.Output, 0, len(d.Pieces)+2)
	err := each(ctx, func(out stage.Output) error {
		all = append(all, out)
		return nil
	})
	return outputs{first: all}, err
}

func (c *Chunker) cut(ctx context.Context, d rag.Document) (doc *read.Document, err error) {
	defer func() { // a parser that crashes is that document's failure
		if r := recover(); r != nil {
			err = stage.Reject(rag.ReasonPanic, "the parser crashed: %v", r)
		}
	}()
	in := read.Input{Open: read.Bytes(d.Content), Size: int64(len(d.Content)), DeclaredType: d.ContentType, Name: d.ID}
	if d.Blob != nil {
		in.Open, in.Size = c.openBlob(*d.Blob), d.Blob.Size
	}
	return c.Reader.Read(ctx, in)
}

// Bounds of what is kept of a document's warnings: they travel in rows.
const (
	maxWarnings     = 32
	maxWarningBytes = 512
)

// bounded keeps the first warnings, and says how many there were.
func bounded(warnings []string) []string {
	if len(warnings) == 0 {
		return nil
	}
	kept := make([]string, 0, min(len(warnings), maxWarnings))
	for i, w := range warnings {
		if i == maxWarnings-1 && len(warnings) > maxWarnings {
			return append(kept, fmt.Sprintf("There are %d more warnings.", len(warnings)-i))
		}
		kept = append(kept, clip(w, maxWarningBytes))
	}
	return kept
}

// countable: a version without chunks, or with more than its row counts, would never be complete.
func countable(pieces int) error {
	switch {
	case pieces == 0:
		return stage.Reject(rag.ReasonNoText, "there is no text in the document")
	case pieces > ledger.MaxChunks:
		return stage.Reject(rag.ReasonTooManyChunks, "the document has %d chunks, more than the limit of %d", pieces, ledger.MaxChunks)
	}
	return nil
}

// failure says why a document cannot be read. again is not nil where it is not the document's fault.
func (c *Chunker) failure(ctx context.Context, err error) (f *rag.Failure, again error) {
	f = &rag.Failure{Stage: StageChunker, Class: rag.ClassMessage}
	var pe *parse.Error
	var se *split.Error
	switch {
	case ctx.Err() != nil: // the partition was lost
		return nil, fmt.Errorf("reading the document: %w", ctx.Err())
	case errors.As(err, &pe):
		f.Reason, f.Message = pe.Reason, pe.Message
	case errors.As(err, &se):
		f.Reason, f.Message = se.Reason, se.Message
	case stage.ClassOf(err) == stage.ClassMessage:
		f.Reason, f.Message = stage.ReasonOf(err, rag.ReasonPanic), sentence(err)
	default:
		return nil, parserError(err)
	}
	return f, nil
}

// OnFailure ends, or retries, the version of a record that the stage could not deal with: what it gave was too large, or
// an unknown error stayed. Its row is that of any other record: dead ones count as accepted.
func (c *Chunker) OnFailure(_ context.Context, r stage.Record, class stage.Class, err error, row *ledger.ChunkerRow) (stage.Result[ledger.ChunkerRow], error) {
	f, status := failureOf(StageChunker, class, err, "chunker_error")
	if r.Topic == c.Topics.Replays.Name {
		replay, derr := c.Topics.Replays.Codec.Decode(r.Value)
		if derr != nil { // not a replay of ours: there is no version whose status could be said
			c.Metrics.ignored(StageChunker)
			return stage.Result[ledger.ChunkerRow]{}, nil
		}
		return stage.Result[ledger.ChunkerRow]{Outputs: []stage.Output{c.Topics.verdict(replay.Subject, c.Now(), status, f)}}, nil
	}
	s, in, subject, verr := c.incoming(r)
	if verr != nil {
		return stage.Result[ledger.ChunkerRow]{}, verr
	}
	res := stage.Result[ledger.ChunkerRow]{}
	switch {
	case c.stray(r, s): // its forward could not be sent
		return stage.Result[ledger.ChunkerRow]{Outputs: c.dead(c.foreign(r, subject), r.Timestamp, dead(f))}, nil
	case !s.noKey:
		d := decide(row, nil, in)
		if d.Action == ledger.ActDuplicate || d.Action == ledger.ActOld {
			return stage.Result[ledger.ChunkerRow]{Row: d.Row}, nil
		}
		res.Row, subject.MessageID = d.Row, d.MessageID
	}
	res.Outputs = []stage.Output{c.Topics.event(StageChunker, subject, rag.StatusAccepted, r.Timestamp, 0, nil), c.Topics.verdict(subject, c.Now(), status, f)}
	return res, nil
}

func (c *Chunker) dead(s rag.Subject, at time.Time, f *rag.Failure) []stage.Output {
	outs := []stage.Output{c.Topics.event(StageChunker, s, rag.StatusAccepted, at, 0, nil), c.Topics.verdict(s, c.Now(), rag.StatusDead, f)}
	if mutant.Active == mutant.TwoAuthors {
		outs = append(outs, c.Topics.event(StageChunker, s, rag.StatusDead, c.Now(), 0, f))
	}
	return outs
}

func (c *Chunker) ended(s rag.Subject, at time.Time, status rag.Status, base rag.Version, identity rag.Hash) []stage.Output {
	return []stage.Output{c.Topics.event(StageChunker, s, rag.StatusAccepted, at, 0, nil),
		c.Topics.Progress.Record(s.DocumentID, rag.Progress{Kind: rag.ProgressVerdict, Subject: s, At: c.Now(), Status: status, Base: base, ContentIdentity: identity})}
}
