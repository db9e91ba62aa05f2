package processors_test

import (
	"context"
	"slices"
	"testing"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// fakeService embeds a text as its length and first byte. answer, where it is set, stands in for that.
type fakeService struct {
	free     bool
	answer   func(texts []string) ([]embed.Result, error)
	calls    [][]string
	canaries int
	canary   error
}

func (s *fakeService) Embed(_ context.Context, texts []string) ([]embed.Result, error) {
	s.calls = append(s.calls, slices.Clone(texts))
	if s.answer != nil {
		return s.answer(texts)
	}
	return vectors(texts), nil
}

func vectors(texts []string) []embed.Result {
	results := make([]embed.Result, len(texts))
	for i, text := range texts {
		results[i].Vector = []float32{float32(len(text)), float32(text[0])}
	}
	return results
}

func (s *fakeService) Model() string                { return "model" }
func (s *fakeService) Dimensions() int              { return 2 }
func (s *fakeService) Settings() string             { return "dims" }
func (s *fakeService) Paid() bool                   { return !s.free }
func (s *fakeService) Canary(context.Context) error { s.canaries++; return s.canary }

// asked are all texts of all calls.
func (s *fakeService) asked() []string { return slices.Concat(s.calls...) }

func newEmbedder(s *fakeService) *processors.Embedder {
	return &processors.Embedder{Topics: topics, Service: s, Now: now}
}

func embedderKit(t testing.TB, s *fakeService) *stagetest.Kit {
	t.Helper()
	e := newEmbedder(s)
	return stagetest.New(t,
		stagetest.Batch(topics.Chunks, e.HandleBatch),
		stagetest.Output(topics.Vectors),
		stagetest.Output(topics.Progress),
		stagetest.Cache(topics.EmbedderTable.Codec, processors.MergeCachedVector),
		stagetest.OnFailure(func(ctx context.Context, r stage.Record, class stage.Class, err error, _ *wire.CachedVector) (stage.Result[wire.CachedVector], error) {
			outs, err := e.OnFailure(ctx, r, class, err)
			return stage.Result[wire.CachedVector]{Outputs: outs}, err
		}),
	)
}

// chunksOf are the chunk records that the chunker makes of a document with a line per text.
func chunksOf(t testing.TB, documentID string, texts ...string) []stage.Output {
	t.Helper()
	text := ""
	for _, line := range texts {
		text += line + "\n"
	}
	res, err := newChunker().Handle(t.Context(), message(document(documentID, "m", text)), nil)
	check(t, err)
	return slices.DeleteFunc(res.Outputs, func(out stage.Output) bool { return out.Topic != "chunks" })
}

func steps(outs ...stage.Output) []stagetest.Step {
	var list []stagetest.Step
	for _, out := range outs {
		list = append(list, stagetest.Sending(out))
	}
	return list
}

// batch calls the embedder itself.
func batch(t testing.TB, e *processors.Embedder, rows map[string]*wire.CachedVector, outs ...stage.Output) stage.BatchResult[wire.CachedVector] {
	t.Helper()
	b := stage.Batch[rag.Chunk, wire.CachedVector]{Valid: func() bool { return true }, Row: func(key string) *wire.CachedVector { return rows[key] }}
	for _, out := range outs {
		b.Messages = append(b.Messages, stage.Message[rag.Chunk]{Key: string(out.Key), Value: decode(t, topics.Chunks, out)})
	}
	return e.HandleBatch(t.Context(), b)
}
