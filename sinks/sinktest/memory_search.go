package sinktest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/internal/terms"
)

// Parameters of BM25, and the share of a match in title or heading.
const (
	bm25K1      = 1.2
	bm25B       = 0.75
	titleWeight = 0.4
)

// Search implements sinks.Searcher by looking at every object.
func (m *Memory) Search(ctx context.Context, q sinks.Query) ([]sinks.Hit, error) {
	if err := q.Validate(m.dimensions); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), m.unusable()); err != nil {
		return nil, err
	}
	scores := m.bm25(terms.Query(q.Text))
	var candidates []*entry
	var best float64
	for id, e := range m.objects {
		if lets(q, e) {
			candidates = append(candidates, e)
			best = max(best, scores[id])
		}
	}
	var hits []sinks.Hit
	for _, e := range candidates {
		text, matches := scores[e.ID]
		hit := sinks.Hit{ID: e.ID, Chunk: e.Chunk}
		switch {
		case q.Mode == sinks.ModeText && matches:
			hit.Score = text
		case q.Mode == sinks.ModeVector && e.findable:
			hit.Score = cosine(q.Vector, e.Vector)
		case q.Mode == sinks.ModeHybrid && (e.findable || matches):
			hit.Score = sinks.Fuse(cosine(q.Vector, e.Vector), text, best)
		default:
			continue
		}
		hits = append(hits, hit)
	}
	slices.SortFunc(hits, func(a, b sinks.Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	return hits[:min(len(hits), q.K)], nil
}

// lets tells whether the filters of a query let an object through.
func lets(q sinks.Query, e *entry) bool {
	if q.DocumentID != "" && e.Chunk.DocumentID != q.DocumentID {
		return false
	}
	for _, pair := range q.Metadata {
		if !slices.Contains(e.Chunk.Metadata, pair) {
			return false
		}
	}
	return q.Keeps(e.Chunk.DocumentID, e.Chunk.Revision)
}

// bm25 gives the score of every object that holds one of the terms.
func (m *Memory) bm25(query []string) map[string]float64 {
	scores := make(map[string]float64)
	if len(query) == 0 {
		return scores
	}
	type document struct {
		weight map[string]float64
		length float64
	}
	documents := make(map[string]document, len(m.objects))
	frequency := make(map[string]float64)
	var total float64
	for id, e := range m.objects {
		d := document{weight: make(map[string]float64)}
		for part, weight := range map[string]float64{e.Chunk.Text: 1, e.Chunk.Title + "\n" + e.Chunk.Heading: titleWeight} {
			for term := range strings.FieldsSeq(terms.Index(part)) {
				d.weight[term] += weight
				d.length++
			}
		}
		for term := range d.weight {
			frequency[term]++
		}
		documents[id] = d
		total += d.length
	}
	average := total / float64(len(documents))
	for id, d := range documents {
		for _, term := range query {
			w := d.weight[term]
			if w == 0 {
				continue
			}
			idf := math.Log(1 + (float64(len(documents))-frequency[term]+0.5)/(frequency[term]+0.5))
			scores[id] += idf * w * (bm25K1 + 1) / (w + bm25K1*(1-bm25B+bm25B*d.length/average))
		}
	}
	return scores
}
