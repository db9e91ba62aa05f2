package weaviate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/internal/terms"
)

const (
	// textDepth is the least number of text matches that hybrid search looks at; worse ones count as not matching.
	textDepth = 100
	// textBoost and titleBoost weigh matches as 1 to 0.4; the server takes whole numbers only.
	textBoost  = 5
	titleBoost = 2
)

// Search implements sinks.Searcher. The server gives at most 10,000 candidates: where more chunks than that are nearer and
// not served, fewer than K come back.
func (s *Store) Search(ctx context.Context, q sinks.Query) ([]sinks.Hit, error) {
	if err := q.Validate(s.options.Dimensions); err != nil {
		return nil, err
	}
	hits, err := s.search(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return hits, nil
}

func (s *Store) search(ctx context.Context, q sinks.Query) ([]sinks.Hit, error) {
	if q.Mode == sinks.ModeText {
		matching, err := s.byText(ctx, q, q.K)
		return toHits(matching, func(f found) float64 { return f.score / textBoost }), err
	}
	near, err := s.byVector(ctx, q)
	if err != nil || q.Mode == sinks.ModeVector {
		return toHits(near, cosine), err
	}
	matching, err := s.byText(ctx, q, max(q.K, textDepth))
	if err != nil {
		return nil, err
	}
	return s.fuse(ctx, q, near, matching)
}

// byVector returns the nearest K that the query lets through.
func (s *Store) byVector(ctx context.Context, q sinks.Query) ([]found, error) {
	return s.widen(ctx, q, q.K, func(limit int) *get {
		g := s.get(chunkFields+" _additional {id distance}", limit)
		g.nearVector(q.Vector)
		return g
	})
}

// byText returns the n best matches that the query lets through; none without terms.
func (s *Store) byText(ctx context.Context, q sinks.Query, n int) ([]found, error) {
	query := terms.Query(q.Text)
	if len(query) == 0 {
		return nil, nil
	}
	return s.widen(ctx, q, n, func(limit int) *get {
		g := s.get(chunkFields+" _additional {id score}", limit)
		g.argument("bm25", fmt.Sprintf("{query: %s, properties: [\"%s^%d\", \"%s^%d\"]}",
			quote(strings.Join(query, " ")), propTerms, textBoost, propTitleTerms, titleBoost))
		return g
	})
}

// widen asks for more until n candidates have passed. The server's filter on metadata trims white space, so that pairs are
// compared again here.
func (s *Store) widen(ctx context.Context, q sinks.Query, n int, build func(limit int) *get) ([]found, error) {
	var conditions []string
	if q.DocumentID != "" {
		conditions = append(conditions, conditionDocument(q.DocumentID))
	}
	for _, pair := range q.Metadata {
		conditions = append(conditions, conditionMetadata(pair))
	}
	fetch := func(ctx context.Context, limit int, each func(found) bool) error {
		g := build(limit)
		g.where(conditions...)
		answer, err := s.ask(ctx, g)
		if err != nil {
			return err
		}
		for _, f := range answer {
			if !each(f) {
				break
			}
		}
		return nil
	}
	return sinks.Widen(ctx, n, sinks.Limits(n, maxResults), fetch, func(f found) bool {
		for _, pair := range q.Metadata {
			if !slices.Contains(f.chunk.Metadata, pair) {
				return false
			}
		}
		return q.Keeps(f.chunk.DocumentID, f.chunk.Revision)
	})
}

func cosine(f found) float64 { return 1 - f.distance }

// fuse merges the nearest K and the best matches; what only its text brought up gets its true cosine.
func (s *Store) fuse(ctx context.Context, q sinks.Query, near, matching []found) ([]sinks.Hit, error) {
	text := make(map[string]float64, len(matching))
	var best float64
	for _, f := range matching {
		text[f.id] = f.score
		best = max(best, f.score)
	}
	all := slices.Clone(near)
	isNear := make(map[string]bool, len(near))
	for _, f := range near {
		isNear[f.id] = true
	}
	var ids []string
	rest := make(map[string]found)
	for _, f := range matching {
		if !isNear[f.id] {
			ids = append(ids, f.id)
			rest[f.id] = f
		}
	}
	distances, err := s.distances(ctx, q.Vector, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		f := rest[id]
		distance, ok := distances[id]
		if !ok {
			distance = 1 // its vector is missing from the index: it counts as neither near nor far
		}
		f.distance = distance
		all = append(all, f)
	}
	hits := toHits(all, func(f found) float64 { return sinks.Fuse(cosine(f), text[f.id], best) })
	return hits[:min(len(hits), q.K)], nil
}

// distances gives the cosine distance of each of the objects to a vector.
func (s *Store) distances(ctx context.Context, vector []float32, ids []string) (map[string]float64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	g := s.get("_additional {id distance}", len(ids))
	g.nearVector(vector)
	g.where(conditionIDs(ids))
	answer, err := s.ask(ctx, g)
	if err != nil {
		return nil, err
	}
	out := make(map[string]float64, len(answer))
	for _, f := range answer {
		out[f.id] = f.distance
	}
	return out, nil
}

// toHits scores what was found, best first.
func toHits(all []found, score func(found) float64) []sinks.Hit {
	hits := make([]sinks.Hit, 0, len(all))
	for _, f := range all {
		hits = append(hits, sinks.Hit{ID: f.id, Chunk: f.chunk, Score: score(f)})
	}
	slices.SortStableFunc(hits, func(a, b sinks.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return hits
}
