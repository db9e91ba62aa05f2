// Package pipeline shows all topics, groups and stages of the document pipeline on one screen, and puts them together.
package pipeline

import (
	"context"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

//	            documents, replays                    chunks                       vectors
//	producers ───────────────────────> [chunker] ──────────────> [embedder] ───────────────> [indexer] ──> store
//	                                       │                          │ verdict                 │   ^
//	                                       └── manifest, verdict, ────┴───── progress ──────────┴───┘ receipt, removed
//	                                           delete
//	every stage ── events ──> [tracker]      [indexer] ── dead-letters, commands ──> [deadletters] ── replays ──> [chunker]
//
// Rows: chunker by document id (message ids), embedder by hash of the text (a cache), indexer by document id (the truth
// about a document), tracker by document and message id (timelines), deadletters by letter id.

func (p *Pipeline) chunker() (*engine.Group, error) {
	t, c := p.topics, p.stages.chunker
	return engine.NewGroup(p.names.Groups.Chunker,
		engine.Input(t.Documents, c.Handle),
		engine.Input(t.Replays, c.HandleReplay),
		engine.Join(t.IndexerTable, ledger.MergeDocumentRow),
		engine.Output(t.Documents), // forwarded to the partition of their key
		engine.Output(t.Chunks),
		engine.Output(t.Progress),
		engine.Output(t.Events),
		engine.Table(t.ChunkerTable.Codec, ledger.MergeChunkerRow),
		engine.OnFailure(func(ctx context.Context, f engine.Failure, row *ledger.ChunkerRow) (stage.Result[ledger.ChunkerRow], error) {
			return c.OnFailure(ctx, f.Record, f.Class, f.Err, row)
		}),
		engine.WithCanary(c.Canary),
	)
}

func (p *Pipeline) embedder() (*engine.Group, error) {
	t, e := p.topics, p.stages.embedder
	return engine.NewGroup(p.names.Groups.Embedder,
		engine.Batch(t.Chunks, p.options.EmbedBatch, e.HandleBatch),
		engine.Output(t.Vectors),
		engine.Output(t.Progress),
		engine.Table(t.EmbedderTable.Codec, processors.MergeCachedVector),
		failures[wire.CachedVector](e.OnFailure),
		engine.WithCanary(e.Canary),
	)
}

func (p *Pipeline) indexer() (*engine.Group, error) {
	t, x := p.topics, p.stages.indexer
	return engine.NewGroup(p.names.Groups.Indexer,
		engine.Input(t.Progress, x.Handle),
		engine.Batch(t.Vectors, p.options.StoreBatch, x.HandleBatch),
		engine.Output(t.Progress), // receipts, removed
		engine.Output(t.Events),
		engine.Output(t.DeadLetters),
		engine.Output(t.Commands),
		engine.Table(t.IndexerTable.Codec, ledger.MergeDocumentRow),
		engine.Timer(x.Removals()),
		p.readBack(), // from a store that can lose what it has acknowledged
		failures[ledger.DocumentRow](x.OnFailure),
		engine.WithCanary(x.Canary),
	)
}

func (p *Pipeline) tracker() (*engine.Group, error) {
	t := p.topics
	return engine.NewGroup(p.names.Groups.Tracker,
		engine.Batch(t.Events, p.options.EventBatch, p.stages.tracker.HandleBatch),
		engine.Table(t.TrackerTable.Codec, ledger.MergeTrackerRow),
		failures[ledger.TrackerRow](p.stages.tracker.OnFailure),
	)
}

func (p *Pipeline) deadLetters() (*engine.Group, error) {
	t, d := p.topics, p.stages.deadLetters
	return engine.NewGroup(p.names.Groups.DeadLetters,
		engine.Input(t.DeadLetters, d.HandleLetter),
		engine.Input(t.Commands, d.HandleCommand),
		engine.Output(t.Replays),
		engine.Output(t.Commands), // an automatic retry is due
		engine.Output(t.Progress), // one that cannot be scheduled ends its version
		engine.Table(t.DeadLettersTable.Codec, ledger.MergeLetterRow),
		engine.Timer(d.Retries()),
		p.collectBlobs(),
		failures[ledger.LetterRow](d.OnFailure),
	)
}
