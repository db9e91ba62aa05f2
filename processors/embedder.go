package processors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/internal/mutant"
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
	of := make([]*text, len(b.Messages)) // the text of each message
	known := map[string]*text{}
	var missing []*text
	for i, m := range b.Messages {
		t := known[m.Value.Text]
		if t == nil {
			t = e.lookUp(m, b.Row)
			known[t.text] = t
			if t.vector == nil {
				missing = append(missing, t)
			}
		} else {
			e.Metrics.embedded("cache", 1)
		}
		of[i] = t
	}
	res := stage.BatchResult[wire.CachedVector]{Rows: map[string]*wire.CachedVector{}, Errors: map[int]error{}}
	switch {
	case len(missing) == 0:
	case !b.Valid(): // a service may have to be paid
		for _, t := range missing {
			t.err = stage.Outage("partition", 0, errLost)
		}
	default:
		e.ask(ctx, missing)
	}
	for _, t := range missing {
		if t.row != "" && t.vector != nil {
			res.Rows[t.row] = &wire.CachedVector{Values: t.vector}
		}
	}
	for i, m := range b.Messages {
		if of[i].vector == nil {
			res.Errors[i] = of[i].err
			continue
		}
		if mutant.Active == mutant.CacheHitSilent && !slices.Contains(missing, of[i]) {
			continue
		}
		res.Outputs = append(res.Outputs, e.Topics.Vectors.Record(m.Value.DocumentID, rag.Vector{Chunk: m.Value, Values: of[i].vector}))
	}
	return res
}

// text is one text of a batch, however many chunks of it have it, with what became of it: a vector or an error.
type text struct {
	text   string
	row    string // the key of its row in the cache; "": it has none
	vector []float32
	err    error
}

// lookUp looks for a text in the cache. A chunk whose key is not that of this pod's model passes the cache by: while another
// model is rolled out, its row is one of that model.
func (e *Embedder) lookUp(m stage.Message[rag.Chunk], row func(key string) *wire.CachedVector) *text {
	t := &text{text: m.Value.Text}
	if !e.Service.Paid() || m.Key != chunkKey(e.Service.Model(), e.Service.Settings(), t.text) {
		return t
	}
	t.row = m.Key
	if r := row(m.Key); r != nil && embed.Check(r.Values, e.Service.Dimensions()) == nil {
		t.vector = r.Values
		e.Metrics.embedded("cache", 1)
	}
	return t
}

// ask asks the service. Texts that it has dealt with before a call failed as a whole stand; every other one gets an error:
// one without an outcome would never be heard of again.
func (e *Embedder) ask(ctx context.Context, missing []*text) {
	texts := make([]string, len(missing))
	for i, t := range missing {
		texts[i] = t.text
	}
	start := e.Now()
	results, err := e.Service.Embed(ctx, texts)
	e.Metrics.embedSeconds(e.Now().Sub(start))
	if err == nil && len(results) != len(texts) {
		err = stage.Transient(embed.ReasonBadReply, fmt.Errorf("%d vectors for %d texts", len(results), len(texts)))
	}
	if err == nil {
		err = stage.Transient(embed.ReasonBadReply, errors.New("no vector for the text"))
	}
	if len(results) != len(texts) {
		results = make([]embed.Result, len(texts))
	}
	done := 0
	for i, r := range results {
		switch {
		case !r.Done():
			missing[i].err = stageError(err)
			continue
		case r.Err != nil:
			missing[i].err = stageError(r.Err)
		default:
			missing[i].vector = r.Vector
		}
		done++
	}
	e.Metrics.embedded("service", done)
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
