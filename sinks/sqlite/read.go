package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

const (
	chunkColumns = `id, document, version, generation, number, count, start, "end", page, title, source, heading, metadata, text,
		parent_start, parent_end, parent_text`
	// scanPage is how many chunks a scan holds in memory. Between pages no snapshot is held, which would keep the
	// write-ahead log from shrinking.
	scanPage = 500
	// sameVector is the cosine distance up to which a stored vector is the one that was written: float32 rounding.
	sameVector = 1e-4
)

// scanner is a row of chunkColumns.
type scanner interface{ Scan(dest ...any) error }

func scanChunk(row scanner, extra ...any) (id string, c rag.Chunk, err error) {
	var key, metadata []byte
	err = row.Scan(append([]any{&key, &c.DocumentID, &c.Revision.Version, &c.Revision.Generation, &c.Index, &c.Count,
		&c.Start, &c.End, &c.Page, &c.Title, &c.Source, &c.Heading, &metadata, &c.Text, &c.Parent.Start, &c.Parent.End, &c.Parent.Text}, extra...)...)
	if err != nil {
		return "", c, err
	}
	u, err := uuid.FromBytes(key)
	if err != nil {
		return "", c, fmt.Errorf("chunk of document %q: %w", c.DocumentID, err)
	}
	c.Metadata = decodeMetadata(metadata)
	return u.String(), c, nil
}

// read makes hits of candidates.
func (s *search) read(ctx context.Context, found []candidate) ([]sinks.Hit, error) {
	stmt, err := s.tx.PrepareContext(ctx, "SELECT "+chunkColumns+" FROM chunk WHERE key = ?")
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	hits := make([]sinks.Hit, 0, len(found))
	for _, c := range found {
		id, chunk, err := scanChunk(stmt.QueryRowContext(ctx, c.key))
		if err != nil {
			return nil, err
		}
		hits = append(hits, sinks.Hit{ID: id, Chunk: chunk, Score: c.score})
	}
	return hits, nil
}

// Scan implements sinks.Scanner.
func (s *Store) Scan(ctx context.Context, documentID string, each func(sinks.Object) error) error {
	query := "SELECT " + chunkColumns + ", key FROM chunk WHERE (document, version, generation, number, key) > (?, ?, ?, ?, ?)"
	if documentID != "" {
		query += " AND document = ?6"
	}
	query += fmt.Sprintf(" ORDER BY document, version, generation, number, key LIMIT %d", scanPage)
	last := []any{documentID, -1, 0, 0, 0, documentID}
	if documentID == "" {
		last = last[:5]
	}
	for {
		page, key, err := s.scanPage(ctx, query, last)
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		for _, o := range page {
			if err := each(o); err != nil {
				return err
			}
		}
		if len(page) < scanPage {
			return nil
		}
		c := page[len(page)-1].Chunk
		copy(last, []any{c.DocumentID, int64(c.Revision.Version), c.Revision.Generation, c.Index, key})
	}
}

func (s *Store) scanPage(ctx context.Context, query string, args []any) (page []sinks.Object, key int64, err error) {
	rows, err := s.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		id, chunk, err := scanChunk(rows, &key)
		if err != nil {
			return nil, 0, err
		}
		page = append(page, sinks.Object{ID: id, Chunk: chunk})
	}
	return page, key, rows.Err()
}

// Missing implements sinks.Sink: it compares each vector with the one that a search would compare with. A search scans
// the same rows, so that a vector that can be read is one that can be found.
func (s *Store) Missing(ctx context.Context, objects []sinks.Object) ([]int, error) {
	stmt, err := s.readers.PrepareContext(ctx, `SELECT vec_distance_cosine(v.value, ?) FROM chunk c
		JOIN vector v ON v.chunk = c.key WHERE c.id = ? AND length(v.value) = ?`)
	if err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	defer stmt.Close()
	var missing []int
	for i := range objects {
		o := &objects[i]
		if err := sinks.Validate(*o, s.options.Dimensions); err != nil {
			missing = append(missing, i) // it can never have been stored
			continue
		}
		id := uuid.MustParse(o.ID)
		var distance sql.NullFloat64
		err := stmt.QueryRowContext(ctx, encodeVector(o.Vector), id[:], 4*s.options.Dimensions).Scan(&distance)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, fmt.Errorf("read back: %w", err)
		}
		if err != nil || !distance.Valid || distance.Float64 > sameVector {
			missing = append(missing, i)
		}
	}
	return missing, nil
}

// Count implements sinks.Sink. It reads a counter.
func (s *Store) Count(ctx context.Context) (int64, error) {
	var n int64
	if err := s.readers.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'chunks'").Scan(&n); err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	return n, nil
}
