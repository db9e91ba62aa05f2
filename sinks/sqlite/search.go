package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/internal/terms"
)

// textDepth is the least number of text matches that hybrid search looks at: a chunk that is near in meaning and matches
// worse than these counts as not matching at all, which changes its score by a few hundredths at most.
const textDepth = 500

// candidate is a chunk that a search has found, before it is read.
type candidate struct {
	key      int64
	document string
	revision rag.Revision
	cosine   float64
	bm25     float64
	score    float64
}

// Search implements sinks.Searcher. Vector search compares with every vector of the store, or of those that the filters
// leave: about 0.1 s for 100,000 chunks of 256 dimensions. All parts of an answer come from one snapshot.
func (s *Store) Search(ctx context.Context, q sinks.Query) ([]sinks.Hit, error) {
	if err := q.Validate(s.options.Dimensions); err != nil {
		return nil, err
	}
	tx, err := s.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	search := &search{tx: tx, query: q}
	found, err := search.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	hits, err := search.read(ctx, found)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return hits, nil
}

// search is one query on one snapshot.
type search struct {
	tx    *sql.Tx
	query sinks.Query
}

// run returns the K best chunks, best first.
func (s *search) run(ctx context.Context) ([]candidate, error) {
	var near, matching []candidate
	var err error
	depth := s.query.K
	if s.query.Mode != sinks.ModeText {
		if near, err = s.byVector(ctx, s.query.K); err != nil {
			return nil, err
		}
		depth = max(depth, textDepth)
	}
	if s.query.Mode != sinks.ModeVector {
		match := matchExpression(terms.Query(s.query.Text))
		if matching, err = s.byText(ctx, match, depth); err != nil {
			return nil, err
		}
	}
	if s.query.Mode == sinks.ModeText {
		for i := range matching {
			matching[i].score = matching[i].bm25
		}
		return matching, nil
	}
	return s.fuse(near, matching), nil
}

// byVector returns the n nearest chunks that the query lets through.
func (s *search) byVector(ctx context.Context, n int) ([]candidate, error) {
	from, conditions, args := "vector v", []string(nil), []any{encodeVector(s.query.Vector)}
	pairs := s.query.Metadata
	switch { // the filter leads: the chunks that it leaves are looked up, the others are not read
	case s.query.DocumentID != "":
		from = "chunk d CROSS JOIN vector v ON v.chunk = d.key"
		conditions = append(conditions, "d.document = ?")
		args = append(args, s.query.DocumentID)
	case len(pairs) > 0:
		from = "metadata m CROSS JOIN vector v ON v.chunk = m.chunk"
		conditions = append(conditions, "m.pair = ?")
		args = append(args, pairs[0])
		pairs = pairs[1:]
	}
	for _, pair := range pairs {
		conditions = append(conditions, "EXISTS (SELECT 1 FROM metadata p WHERE p.pair = ? AND p.chunk = v.chunk)")
		args = append(args, pair)
	}
	return s.candidates(ctx, n, `SELECT t.chunk, c.document, c.version, c.generation, 1 - t.distance, 0.0
		FROM (SELECT v.chunk AS chunk, vec_distance_cosine(v.value, ?) AS distance FROM `+from+where(conditions)+`
			ORDER BY distance LIMIT ?) t
		CROSS JOIN chunk c ON c.key = t.chunk`, args)
}

// byText returns the n best matches that the query lets through, with their cosine if there is a vector; none without
// terms.
func (s *search) byText(ctx context.Context, match string, n int) ([]candidate, error) {
	if match == "" {
		return nil, nil
	}
	var vector []byte // NULL in text search: then the cosine is 0
	if s.query.Mode != sinks.ModeText {
		vector = encodeVector(s.query.Vector)
	}
	// The plus keeps SQLite from asking the text index once for every chunk that a filter leaves.
	conditions, args := []string{"text_index MATCH ?"}, []any{vector, match}
	if s.query.DocumentID != "" {
		conditions = append(conditions, "EXISTS (SELECT 1 FROM chunk d WHERE d.key = +text_index.rowid AND d.document = ?)")
		args = append(args, s.query.DocumentID)
	}
	for _, pair := range s.query.Metadata {
		conditions = append(conditions, "EXISTS (SELECT 1 FROM metadata p WHERE p.pair = ? AND p.chunk = +text_index.rowid)")
		args = append(args, pair)
	}
	return s.candidates(ctx, n, `SELECT t.chunk, c.document, c.version, c.generation,
			iif(?1 IS NULL, 0.0, 1 - vec_distance_cosine(v.value, ?1)), -t.rank
		FROM (SELECT rowid AS chunk, bm25(text_index, 1.0, 0.4) AS rank FROM text_index`+where(conditions)+`
			ORDER BY rank LIMIT ?) t
		CROSS JOIN chunk c ON c.key = t.chunk
		CROSS JOIN vector v ON v.chunk = t.chunk`, args)
}

func where(conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conditions, " AND ")
}

// candidates returns the first n rows of a statement that the query lets through. A row is chunk, document, version,
// generation, cosine and BM25, and comes in the order of the inner SELECT, whose LIMIT is the last argument. Where many
// chunks are not served, the second round goes through all of them.
func (s *search) candidates(ctx context.Context, n int, statement string, args []any) ([]candidate, error) {
	fetch := func(ctx context.Context, limit int, each func(candidate) bool) error {
		rows, err := s.tx.QueryContext(ctx, statement, append(args[:len(args):len(args)], limit)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var c candidate
			if err := rows.Scan(&c.key, &c.document, &c.revision.Version, &c.revision.Generation, &c.cosine, &c.bm25); err != nil {
				return err
			}
			if !each(c) {
				break
			}
		}
		return rows.Err()
	}
	return sinks.Widen(ctx, n, []int{2*n + 16, math.MaxInt32}, fetch, func(c candidate) bool {
		return s.query.Keeps(c.document, c.revision)
	})
}

// fuse merges the two lists, the nearest K and the best matches, and scores them together.
func (s *search) fuse(near, matching []candidate) []candidate {
	byKey := make(map[int64]int, len(near))
	for i, c := range near {
		byKey[c.key] = i
	}
	all := near
	for _, c := range matching {
		if i, ok := byKey[c.key]; ok {
			all[i].bm25 = c.bm25
			continue
		}
		all = append(all, c)
	}
	var best float64
	if len(matching) > 0 {
		best = matching[0].bm25
	}
	for i := range all {
		all[i].score = sinks.Fuse(all[i].cosine, all[i].bm25, best)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.key, b.key))
	})
	return all[:min(len(all), s.query.K)]
}

// matchExpression asks FTS5 for any of the terms; none of them is read as an operator.
func matchExpression(terms []string) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = `"` + strings.ReplaceAll(t, `"`, `""`) + `"`
	}
	return strings.Join(quoted, " OR ")
}
