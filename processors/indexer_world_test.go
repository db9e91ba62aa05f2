package processors_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/sinktest"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// fakeLog holds the records of the documents topic by position.
type fakeLog struct {
	records map[rag.Position]rag.Raw
	err     error
}

func (l *fakeLog) ReadDocument(_ context.Context, p rag.Position) (rag.Raw, error) {
	if l.err != nil {
		return rag.Raw{}, l.err
	}
	raw, ok := l.records[p]
	if !ok {
		return rag.Raw{}, processors.ErrRecordGone
	}
	return raw, nil
}

// positionOf the document record of a subject.
func positionOf(s rag.Subject) rag.Position {
	return rag.Position{Topic: "documents", Epoch: epoch, Partition: s.Partition, Offset: s.Revision.Version.Offset()}
}

// indexed is an indexer with all that stands around it.
type indexed struct {
	*processors.Indexer
	store *sinktest.Memory
	log   *fakeLog
	waits []time.Duration // asked of the clock; each is over at once
}

const removalDelay = 30 * time.Second

func newIndexer() *indexed {
	w := &indexed{store: sinktest.NewMemory(2), log: &fakeLog{records: map[rag.Position]rag.Raw{}}}
	w.Indexer = &processors.Indexer{Topics: topics, Place: place, Sink: w.store, Tenant: "tenant", Documents: w.log, Settle: 2 * time.Second, Now: now,
		Settings: ledger.Settings{Attempts: 3, RemovalDelay: removalDelay, Keep: ledger.DefaultKeep,
			Backoff: func(attempt int) time.Duration { return time.Duration(attempt) * time.Minute }},
		After: func(d time.Duration) <-chan time.Time {
			w.waits = append(w.waits, d)
			over := make(chan time.Time, 1)
			over <- noon
			return over
		}}
	return w
}

// keeps puts the record of a subject into the log.
func (w *indexed) keeps(s rag.Subject, raw rag.Raw) { w.log.records[positionOf(s)] = raw }

func (w *indexed) onFailure(ctx context.Context, r stage.Record, class stage.Class, err error, _ *ledger.DocumentRow) (stage.Result[ledger.DocumentRow], error) {
	outs, err := w.OnFailure(ctx, r, class, err)
	return stage.Result[ledger.DocumentRow]{Outputs: outs}, err
}

func (w *indexed) kit(t testing.TB) *stagetest.Kit {
	t.Helper()
	return stagetest.New(t,
		stagetest.Input(topics.Progress, w.Handle),
		stagetest.Batch(topics.Vectors, w.HandleBatch),
		stagetest.Output(topics.Events),
		stagetest.Output(topics.Commands),
		stagetest.Table(topics.IndexerTable.Codec, ledger.MergeDocumentRow),
		stagetest.Timer(w.Removals()),
		stagetest.OnFailure(w.onFailure),
	)
}

// Records of a document's progress.

func manifest(s rag.Subject, count int) stagetest.Step {
	return in(topics.Progress, s.DocumentID, rag.Progress{Kind: rag.ProgressManifest, Subject: s, At: noon, Count: count, Warnings: []string{"a warning"}})
}

func receipt(s rag.Subject, from, to int) stagetest.Step {
	return in(topics.Progress, s.DocumentID, rag.Progress{Kind: rag.ProgressReceipt, Subject: s, At: noon, Confirmed: []rag.IndexRange{{From: from, To: to}}})
}

func deletion(s rag.Subject) stagetest.Step {
	return in(topics.Progress, s.DocumentID, rag.Progress{Kind: rag.ProgressDelete, Subject: s, At: noon})
}

func verdict(s rag.Subject, status rag.Status) stagetest.Step {
	p := rag.Progress{Kind: rag.ProgressVerdict, Subject: s, At: noon, Status: status}
	switch status {
	case rag.StatusDead:
		p.Failure = &rag.Failure{Stage: "chunker", Class: rag.ClassMessage, Reason: rag.ReasonBrokenJSON, Message: "it is broken"}
	case rag.StatusRetrying:
		p.Failure = &rag.Failure{Stage: "embedder", Class: rag.ClassTransient, Reason: "embedder_error", Message: "it was odd"}
	}
	return in(topics.Progress, s.DocumentID, p)
}

// vector is a chunk's vector record.
func vector(s rag.Subject, index, count int) rag.Vector {
	return rag.Vector{Chunk: rag.Chunk{Subject: s, Index: index, Count: count, Text: "text"}, Values: []float32{1, float32(index)}}
}

func vectorStep(s rag.Subject, index, count int) stagetest.Step {
	return in(topics.Vectors, s.DocumentID, vector(s, index, count))
}

// write gives vectors to the indexer itself. row may be nil: no rows.
func (w *indexed) write(t testing.TB, row func(key string) *ledger.DocumentRow, vs ...rag.Vector) stage.BatchResult[ledger.DocumentRow] {
	t.Helper()
	return w.HandleBatch(t.Context(), batchOf(row, vs...))
}

func batchOf(row func(key string) *ledger.DocumentRow, vs ...rag.Vector) stage.Batch[rag.Vector, ledger.DocumentRow] {
	if row == nil {
		row = func(string) *ledger.DocumentRow { return nil }
	}
	b := stage.Batch[rag.Vector, ledger.DocumentRow]{Valid: func() bool { return true }, Row: row}
	for _, v := range vs {
		b.Messages = append(b.Messages, stage.Message[rag.Vector]{Key: v.DocumentID, Value: v})
	}
	return b
}

var errOdd = errors.New("odd")

// attempt and generation of a subject.

func attempt(s rag.Subject, n int) rag.Subject {
	s.Attempt = n
	return s
}

func generation(s rag.Subject, n int) rag.Subject {
	s.Revision.Generation = n
	return s
}

// slowStore asks to be left alone.
type slowStore struct{ *sinktest.Memory }

func (slowStore) Remove(context.Context, string, rag.Removal) sinks.Result {
	return sinks.Result{Outcome: sinks.Outage, Err: &sinks.RetryAfterError{After: 9 * time.Second, Err: errOdd}}
}

func wantAfter(t testing.TB, err error, after time.Duration) {
	t.Helper()
	var e *stage.Error
	if !errors.As(err, &e) || e.Class != stage.ClassOutage || e.After != after {
		t.Errorf("the error is %#v, want an outage of at least %v", err, after)
	}
}
