package processors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
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
	// MaxLetterBytes is the smallest limit of the topics and the table in which a document record travels with what went wrong
	// with it; 0: none. A record beyond it is not kept.
	MaxLetterBytes int
	Settings       ledger.Settings
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
	p, err := x.retriable(ctx, m.Value, row, cause)
	if err != nil {
		return stage.Result[ledger.DocumentRow]{}, err
	}
	next := ledger.ApplyProgress(row, p, cause, x.Now(), x.Settings)
	committed := x.Place.committedVersion(m.Committed)
	next = ledger.ForgetFinals(next, committed, x.Now(), x.Settings.Keep)
	next = ledger.ForgetFinals(next, committed, x.Now(), ledger.Keep{For: -1, Count: maxRemembered})
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

// OnFailure ends or retries the version of a vector that the store refused. A progress record that fails cannot be
// answered with another one: its partition waits.
func (x *Indexer) OnFailure(_ context.Context, record stage.Record, class stage.Class, err error) ([]stage.Output, error) {
	if record.Topic != x.Topics.Vectors.Name {
		return nil, stage.Outage(dependencyProgress, 0, fmt.Errorf("applying %s/%d@%d: %w", record.Topic, record.Partition, record.Offset, err))
	}
	v, derr := x.Topics.Vectors.Codec.Decode(record.Value)
	if derr != nil { // not a vector of ours: there is no version whose status could be said
		x.Metrics.ignored(StageIndexer)
		return nil, nil
	}
	f, status := failureOf(StageIndexer, class, err, rag.ReasonStoreRefused)
	return []stage.Output{x.Topics.verdict(v.Subject, x.Now(), status, f)}, nil
}

// Canary tries the store with a tiny object of its own. What it cannot try, an outage that it has nothing to do with, lasts
// until it is over; any other suspicion, that of a batch whose handler panicked too, is one of the store.
func (x *Indexer) Canary(ctx context.Context, dependency string) error {
	switch dependency {
	case dependencyKafka, dependencyProgress, dependencyEpoch:
		return fmt.Errorf("no canary for %s", dependency)
	}
	return x.Sink.Canary(ctx)
}

// What outages are called in metrics and readiness.
const (
	DependencyStore    = "store"
	dependencyKafka    = "kafka"
	dependencyProgress = "progress"
	dependencyEpoch    = "epoch"
)

// Removals fires the removals that document rows have due. The clock of what was served before starts when the row that
// serves the new version stands in the table (contract rule 10).
func (x *Indexer) Removals() stage.Timer[ledger.DocumentRow] {
	return stage.Timer[ledger.DocumentRow]{
		Next: func(row *ledger.DocumentRow) (time.Time, bool) {
			r, at, ok := ledger.FirstDue(row)
			if mutant.Active == mutant.RemovedAtCompletion && !r.Exact {
				at = time.Time{}
			}
			return at, ok
		},
		Later: func(row *ledger.DocumentRow) []time.Time {
			return slices.Collect(maps.Values(row.Due))
		},
		MinDelay: func(row *ledger.DocumentRow) time.Duration {
			if r, _, ok := ledger.FirstDue(row); ok && !r.Exact && mutant.Active != mutant.RemovedAtCompletion {
				return x.Settings.RemovalDelay
			}
			return 0
		},
		MaxDelay: func(*ledger.DocumentRow) time.Duration { return x.Settings.RemovalDelay },
		Fire:     x.remove,
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
		return nil, stage.Outage(DependencyStore, sinks.RetryAfter(res.Err), res.Err)
	default: // removing again is harmless
		return nil, stage.Transient("store_remove", res.Err)
	}
	return []stage.Output{x.Topics.Progress.Record(documentID, rag.Progress{Kind: rag.ProgressRemoved, Subject: rag.Subject{DocumentID: documentID},
		At: x.Now(), Removal: removal, Due: due})}, nil
}
