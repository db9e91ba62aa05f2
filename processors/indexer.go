package processors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/stage"
)

// ErrRecordGone is what a DocumentReader returns when the log no longer holds the record.
var ErrRecordGone = errors.New("the record is no longer in the log")

// DocumentReader reads a record of the documents topic by its position.
type DocumentReader interface {
	ReadDocument(ctx context.Context, p rag.Position) (rag.Raw, error)
}

// Indexer owns the document rows. It alone says the final status of a version: it writes chunks to the store, object by
// object, confirms them with receipts, serves a version when all are confirmed, and schedules removals.
type Indexer struct {
	Topics    Topics
	Place     Place
	Sink      sinks.Sink
	Tenant    string
	Documents DocumentReader
	Settings  ledger.Settings
	// Settle is how long an ambiguous write may still be applied by the store: only then is it repaired.
	Settle  time.Duration
	Now     func() time.Time
	After   func(time.Duration) <-chan time.Time
	Metrics *Metrics
}

// Handle applies one progress record to the document row. What the row says is said once the row is acknowledged.
func (x *Indexer) Handle(ctx context.Context, m stage.Message[rag.Progress], row *ledger.DocumentRow) (stage.Result[ledger.DocumentRow], error) {
	if m.DecodeError != nil || m.Tombstone || m.Value.DocumentID != m.Key {
		x.Metrics.ignored(StageIndexer) // not ours: there is no version whose status could be said
		return stage.Result[ledger.DocumentRow]{}, nil
	}
	cause, err := x.Place.version(m.Record.Offset)
	if err != nil {
		return stage.Result[ledger.DocumentRow]{}, err
	}
	next := ledger.ApplyProgress(row, m.Value, cause, x.Now(), x.Settings)
	next = ledger.ForgetFinals(next, x.Place.committedVersion(m.Committed), x.Now(), x.Settings.Keep)
	words := ledger.Say(m.Key, next, cause)
	said, err := x.say(ctx, words)
	if err != nil {
		return stage.Result[ledger.DocumentRow]{}, err
	}
	if row == nil || row.Applied < cause {
		x.Metrics.finals(words)
	}
	return stage.Result[ledger.DocumentRow]{Row: next, Said: said}, nil
}

func (x *Indexer) say(ctx context.Context, words []ledger.Word) ([]stage.Output, error) {
	var outs []stage.Output
	for _, w := range words {
		outs = append(outs, x.Topics.event(StageIndexer, w.Subject, w.Status, w.At, w.Chunks, w.Failure))
		letter, err := x.letter(ctx, w)
		if err != nil {
			return nil, err
		}
		outs = append(outs, letter...)
	}
	return outs, nil
}

// letter is what the dead-letter group has to know of a word. The document record is read by its position; it stays in
// the log longer than anything else of the version.
func (x *Indexer) letter(ctx context.Context, w ledger.Word) ([]stage.Output, error) {
	if w.Letter == ledger.LetterNone {
		return nil, nil
	}
	pos := x.Place.position(w.Subject)
	cmd := rag.Command{LetterID: pos.String(), Subject: w.Subject, At: w.At, Position: pos, Status: w.Status, Failure: w.Failure}
	if w.Letter == ledger.LetterClose {
		cmd.Kind = rag.CommandClose
		return []stage.Output{x.Topics.Commands.Record(cmd.LetterID, cmd)}, nil
	}
	original, lost, err := x.original(ctx, pos)
	if err != nil {
		return nil, err
	}
	if w.Letter == ledger.LetterSchedule {
		cmd.Kind, cmd.Due, cmd.Original = rag.CommandSchedule, w.Due, original
		return []stage.Output{x.Topics.Commands.Record(cmd.LetterID, cmd)}, nil
	}
	l := rag.Letter{ID: pos.String(), Subject: w.Subject, Position: pos, Original: original, Lost: lost, FirstFailed: w.FirstFailed, LastFailed: w.At}
	if w.Failure != nil {
		l.Failure = *w.Failure
	}
	return []stage.Output{x.letterOutput(l)}, nil
}

func (x *Indexer) letterOutput(l rag.Letter) stage.Output {
	fault.Hit(fault.BeforeLetter)
	key, value, headers := wire.LetterRecord(l)
	return stage.Output{Topic: x.Topics.DeadLetters.Name, Key: key, Value: value, Headers: headers}
}

func (x *Indexer) original(ctx context.Context, pos rag.Position) (raw rag.Raw, lost string, err error) {
	raw, err = x.Documents.ReadDocument(ctx, pos)
	switch {
	case errors.Is(err, ErrRecordGone):
		return rag.Raw{}, fmt.Sprintf("the record %s was no longer in the log when the letter was written", pos), nil
	case err != nil:
		return rag.Raw{}, "", stage.Outage("kafka", 0, fmt.Errorf("reading the document record %s: %w", pos, err))
	}
	return raw, "", nil
}

// OnFailure ends or retries the version of a vector that the store refused. A progress record that fails cannot be
// answered with another one: its partition waits.
func (x *Indexer) OnFailure(_ context.Context, record stage.Record, class stage.Class, err error) ([]stage.Output, error) {
	if record.Topic != x.Topics.Vectors.Name {
		return nil, stage.Outage("progress", 0, fmt.Errorf("applying %s/%d@%d: %w", record.Topic, record.Partition, record.Offset, err))
	}
	v, derr := x.Topics.Vectors.Codec.Decode(record.Value)
	if derr != nil { // not a vector of ours: there is no version whose status could be said
		x.Metrics.ignored(StageIndexer)
		return nil, nil
	}
	f, status := failureOf(StageIndexer, class, err, rag.ReasonStoreRefused)
	return []stage.Output{x.Topics.verdict(v.Subject, x.Now(), status, f)}, nil
}

// Canary tries the store with a tiny object of its own.
func (x *Indexer) Canary(ctx context.Context, dependency string) error {
	if dependency != dependencyStore {
		return fmt.Errorf("no canary for %s", dependency)
	}
	return x.Sink.Canary(ctx)
}

// dependencyStore is the name of the store in metrics and readiness.
const dependencyStore = "store"

// Removals fires the removals that document rows have due. The clock of what was served before starts when the row that
// serves the new version stands in the table (contract rule 10).
func (x *Indexer) Removals() stage.Timer[ledger.DocumentRow] {
	return stage.Timer[ledger.DocumentRow]{
		Next: func(row *ledger.DocumentRow) (time.Time, bool) {
			_, at, ok := ledger.FirstDue(row)
			return at, ok
		},
		Later: func(row *ledger.DocumentRow) []time.Time {
			return slices.Collect(maps.Values(row.Due))
		},
		MinDelay: func(row *ledger.DocumentRow) time.Duration {
			if r, _, ok := ledger.FirstDue(row); ok && !r.Exact {
				return x.Settings.RemovalDelay
			}
			return 0
		},
		Fire: x.remove,
	}
}

func (x *Indexer) remove(ctx context.Context, documentID string, row *ledger.DocumentRow, valid func() bool) ([]stage.Output, error) {
	removal, due, ok := ledger.FirstDue(row)
	if !ok || !valid() {
		return nil, nil
	}
	fault.Hit(fault.BeforeRemoval)
	res := x.Sink.Remove(ctx, documentID, removal)
	fault.Hit(fault.AfterRemoval)
	x.Metrics.removed(res.Outcome)
	switch res.Outcome {
	case sinks.Done:
	case sinks.Outage:
		return nil, stage.Outage(dependencyStore, 0, res.Err)
	default: // removing again is harmless
		return nil, stage.Transient("store_remove", res.Err)
	}
	return []stage.Output{x.Topics.Progress.Record(documentID, rag.Progress{Kind: rag.ProgressRemoved, Subject: rag.Subject{DocumentID: documentID},
		At: x.Now(), Removal: removal, Due: due})}, nil
}
