package eval

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/embed/builtin"
	"github.com/waymarkhq/waymark/rag/split"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/sqlite"
)

// depth is how many hits are looked at.
const depth = 10

// Scores of some questions in one mode of search. A question counts by the first hit that holds its passage.
type Scores struct {
	Questions int
	MRR       float64         // mean of 1/rank, 0 beyond depth
	Recall    map[int]float64 // by k: the share of questions with a rank of at most k
}

// Ks of Scores.Recall.
var Ks = []int{1, 5, depth}

// Result of one run.
type Result struct {
	Chunks int
	Scores map[string]map[sinks.Mode]Scores // by language
}

// Run splits, embeds, stores and asks. dir takes the store's file.
func Run(ctx context.Context, s *Set, o split.Options, dir string) (Result, error) {
	splitter, err := split.New(o)
	if err != nil {
		return Result{}, err
	}
	model := builtin.New()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "eval.db"), sqlite.Options{Model: model.Model(), Dimensions: model.Dimensions()})
	if err != nil {
		return Result{}, err
	}
	defer store.Close()
	r := &run{set: s, splitter: splitter, model: model, store: store, shown: map[string]split.Span{}}
	chunks, err := r.fill(ctx)
	if err != nil {
		return Result{}, err
	}
	ranks, err := r.ask(ctx)
	return Result{Chunks: chunks, Scores: scores(ranks)}, err
}

type run struct {
	set      *Set
	splitter split.Splitter
	model    *builtin.Model
	store    *sqlite.Store
	shown    map[string]split.Span // by chunk id: what a reader is given with it
}

// fill puts the chunks of all documents into the store.
func (r *run) fill(ctx context.Context) (chunks int, err error) {
	for _, id := range slices.Sorted(maps.Keys(r.set.Documents)) {
		text := r.set.Documents[id]
		pieces, err := r.splitter.Split(ctx, text.Body, text.Blocks)
		if err != nil {
			return 0, err
		}
		var texts []string
		for _, p := range pieces {
			texts = append(texts, text.Body[p.Start:p.End])
		}
		vectors, err := r.model.Embed(ctx, texts)
		if err != nil {
			return 0, err
		}
		if err := r.put(ctx, id, text.Title, pieces, texts, vectors); err != nil {
			return 0, fmt.Errorf("%s: %w", id, err)
		}
		chunks += len(pieces)
	}
	return chunks, nil
}

func (r *run) put(ctx context.Context, document, title string, pieces []split.Piece, texts []string, vectors []embed.Result) error {
	rev := rag.Revision{Version: 1}
	objects := make([]sinks.Object, len(pieces))
	for i, p := range pieces {
		if vectors[i].Err != nil {
			return vectors[i].Err
		}
		id := rag.ChunkID("", document, rev, i).String()
		objects[i] = sinks.Object{ID: id, Vector: vectors[i].Vector, Chunk: rag.Chunk{
			Subject: rag.Subject{DocumentID: document, Revision: rev}, Index: i, Count: len(pieces), Text: texts[i],
			Start: p.Start, End: p.End, Title: title, Heading: p.Heading, Page: p.Page}}
		r.shown[id] = split.Span{Start: p.Start, End: p.End}
		if p.Parent != (split.Span{}) {
			r.shown[id] = p.Parent
		}
	}
	for _, result := range r.store.Upsert(ctx, objects, nil) {
		if result.Err != nil {
			return result.Err
		}
	}
	return nil
}

// ask gives the rank of each question's passage, from 1; 0 where it is not among the hits.
func (r *run) ask(ctx context.Context) (map[string]map[sinks.Mode][]int, error) {
	ranks := map[string]map[sinks.Mode][]int{}
	for i := range r.set.Questions {
		q := &r.set.Questions[i]
		vectors, err := r.model.Embed(ctx, []string{q.Question})
		if err != nil {
			return nil, err
		}
		if ranks[q.Lang] == nil {
			ranks[q.Lang] = map[sinks.Mode][]int{}
		}
		for _, mode := range []sinks.Mode{sinks.ModeVector, sinks.ModeText, sinks.ModeHybrid} {
			hits, err := r.store.Search(ctx, sinks.Query{Mode: mode, Text: q.Question, Vector: vectors[0].Vector, K: depth})
			if err != nil {
				return nil, err
			}
			rank := 1 + slices.IndexFunc(hits, func(h sinks.Hit) bool { return h.Chunk.DocumentID == q.Document && q.answers(r.shown[h.ID]) })
			ranks[q.Lang][mode] = append(ranks[q.Lang][mode], rank)
		}
	}
	return ranks, nil
}

func scores(ranks map[string]map[sinks.Mode][]int) map[string]map[sinks.Mode]Scores {
	out := map[string]map[sinks.Mode]Scores{}
	for lang, modes := range ranks {
		out[lang] = map[sinks.Mode]Scores{}
		for mode, rs := range modes {
			s := Scores{Questions: len(rs), Recall: map[int]float64{}}
			for _, rank := range rs {
				if rank == 0 {
					continue
				}
				s.MRR += 1 / float64(rank) / float64(len(rs))
				for _, k := range Ks {
					if rank <= k {
						s.Recall[k] += 1 / float64(len(rs))
					}
				}
			}
			out[lang][mode] = s
		}
	}
	return out
}
