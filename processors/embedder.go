package processors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

// Embedder turns chunks into vectors: exactly one vector record for every chunk record (contract rule 19). Its row is a
// cache by model, settings and text; equal keys in one batch share one call, never one output.
type Embedder struct {
	Topics  Topics
	Service embed.Embedder
	Now     func() time.Time
	Metrics *Metrics
}

// HandleBatch embeds the chunks of one batch.
func (e *Embedder) HandleBatch(ctx context.Context, b stage.Batch[rag.Chunk, wire.CachedVector]) stage.BatchResult[wire.CachedVector] {
	res := stage.BatchResult[wire.CachedVector]{Errors: map[int]error{}}
	found := map[string][]float32{}
	texts, keys := e.missing(b, found)
	failed := map[string]error{}
	var whole error
	if len(texts) > 0 {
		whole = e.embed(ctx, texts, keys, found, failed)
		if e.Service.Paid() {
			res.Rows = remember(keys, found)
		}
	}
	for i, m := range b.Messages {
		switch v := found[m.Key]; {
		case v != nil:
			res.Outputs = append(res.Outputs, e.Topics.Vectors.Record(m.Value.DocumentID, rag.Vector{Chunk: m.Value, Values: v}))
		case failed[m.Key] != nil:
			res.Errors[i] = failed[m.Key]
		default:
			res.Errors[i] = whole
		}
	}
	return res
}

// remember makes cache rows of what was embedded.
func remember(keys []string, found map[string][]float32) map[string]*wire.CachedVector {
	rows := map[string]*wire.CachedVector{}
	for _, k := range keys {
		if v := found[k]; v != nil {
			rows[k] = &wire.CachedVector{Values: v}
		}
	}
	return rows
}

// missing fills found from the cache and lists what is left, each key once.
func (e *Embedder) missing(b stage.Batch[rag.Chunk, wire.CachedVector], found map[string][]float32) (texts, keys []string) {
	seen := map[string]bool{}
	for _, m := range b.Messages {
		if seen[m.Key] {
			e.Metrics.embedded("cache", 1)
			continue
		}
		seen[m.Key] = true
		if e.Service.Paid() {
			if row := b.Row(m.Key); row != nil && embed.Check(row.Values, e.Service.Dimensions()) == nil {
				found[m.Key] = row.Values
				e.Metrics.embedded("cache", 1)
				continue
			}
		}
		texts, keys = append(texts, m.Value.Text), append(keys, m.Key)
	}
	return texts, keys
}

// embed asks the service. Texts that it has dealt with before the call failed as a whole stand.
func (e *Embedder) embed(ctx context.Context, texts, keys []string, found map[string][]float32, failed map[string]error) error {
	start := e.Now()
	results, err := e.Service.Embed(ctx, texts)
	e.Metrics.embedSeconds(e.Now().Sub(start))
	if err == nil && len(results) != len(texts) {
		return stage.Transient(embed.ReasonBadReply, fmt.Errorf("%d vectors for %d texts", len(results), len(texts)))
	}
	done := 0
	for i, r := range results {
		switch {
		case !r.Done():
			continue
		case r.Err != nil:
			failed[keys[i]] = stageError(r.Err)
		default:
			found[keys[i]] = r.Vector
		}
		done++
	}
	e.Metrics.embedded("service", done)
	return stageError(err)
}

// OnFailure ends or retries the version whose chunk failed.
func (e *Embedder) OnFailure(_ context.Context, record stage.Record, class stage.Class, err error) ([]stage.Output, error) {
	c, derr := e.Topics.Chunks.Codec.Decode(record.Value)
	if derr != nil { // not a chunk of ours: there is no version whose status could be said
		e.Metrics.ignored(StageEmbedder)
		return nil, nil
	}
	f, status := failureOf(StageEmbedder, class, err, "embedder_error")
	return []stage.Output{e.Topics.verdict(c.Subject, e.Now(), status, f)}, nil
}

// Canary tries the service with texts known to be good.
func (e *Embedder) Canary(ctx context.Context, _ string) error { return e.Service.Canary(ctx) }

// stageError puts an embedder's error into the stage's classes.
func stageError(err error) error {
	if err == nil {
		return nil
	}
	var e *embed.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Class {
	case rag.ClassMessage:
		return &stage.Error{Class: stage.ClassMessage, Reason: e.Reason, Err: e.Err}
	case rag.ClassOutage:
		return &stage.Error{Class: stage.ClassOutage, Reason: e.Reason, After: e.RetryAfter, Err: e.Err}
	}
	return &stage.Error{Class: stage.ClassTransient, Reason: e.Reason, After: e.RetryAfter, Err: e.Err}
}
