package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/internal/terms"
)

// row is an object as the tables take it. It is made before the transaction, which is to be short.
type row struct {
	id     []byte
	chunk  *rag.Chunk
	vector []byte
	text   string // terms of the text
	title  string // terms of title and heading
}

func newRow(o *sinks.Object) row {
	id := uuid.MustParse(o.ID) // validated before
	return row{
		id:     id[:],
		chunk:  &o.Chunk,
		vector: encodeVector(o.Vector),
		text:   terms.Index(o.Chunk.Text),
		title:  terms.Index(o.Chunk.Title + "\n" + o.Chunk.Heading),
	}
}

// transaction writes chunks; it lives within writer.transact.
type transaction struct {
	writer *writer
	tx     *sql.Tx
	added  int64 // chunks inserted less chunks deleted
}

// insert writes a chunk whose id is not there.
func (t *transaction) insert(ctx context.Context, r *row) error {
	w, c := t.writer, r.chunk
	res, err := t.tx.StmtContext(ctx, w.insertChunk).ExecContext(ctx, r.id, c.DocumentID, int64(c.Revision.Version),
		c.Revision.Generation, c.Index, c.Count, c.Start, c.End, c.Page, c.Title, c.Source, c.Heading,
		encodeMetadata(c.Metadata), c.Text, c.Parent.Start, c.Parent.End, c.Parent.Text)
	if err != nil {
		return err
	}
	key, err := res.LastInsertId()
	if err != nil {
		return err
	}
	if _, err := t.tx.StmtContext(ctx, w.insertVector).ExecContext(ctx, key, r.vector); err != nil {
		return err
	}
	if _, err := t.tx.StmtContext(ctx, w.insertText).ExecContext(ctx, key, r.text, r.title); err != nil {
		return err
	}
	for _, pair := range c.Metadata {
		if _, err := t.tx.StmtContext(ctx, w.insertMetadata).ExecContext(ctx, pair, key); err != nil {
			return err
		}
	}
	t.added++
	return nil
}

// stored is a chunk that is there, with what has to be known to remove it.
type stored struct {
	key      int64
	metadata []byte
}

// lookUp finds the chunk with an id.
func (t *transaction) lookUp(ctx context.Context, id []byte) (c stored, ok bool, err error) {
	err = t.tx.StmtContext(ctx, t.writer.selectChunk).QueryRowContext(ctx, id).Scan(&c.key, &c.metadata)
	if errors.Is(err, sql.ErrNoRows) {
		return stored{}, false, nil
	}
	return c, err == nil, err
}

// delete removes chunks in the order of their keys: FTS5 writes what it has gathered to disk whenever a key is lower than
// the one before, which makes a batch of replacements nearly twice as slow.
func (t *transaction) delete(ctx context.Context, chunks []stored) error {
	slices.SortFunc(chunks, func(a, b stored) int { return cmp.Compare(a.key, b.key) })
	w := t.writer
	for _, c := range chunks {
		for _, s := range []*sql.Stmt{w.deleteChunk, w.deleteVector, w.deleteText} {
			if _, err := t.tx.StmtContext(ctx, s).ExecContext(ctx, c.key); err != nil {
				return err
			}
		}
		for _, pair := range decodeMetadata(c.metadata) {
			if _, err := t.tx.StmtContext(ctx, w.deleteMetadata).ExecContext(ctx, pair, c.key); err != nil {
				return err
			}
		}
		t.added--
	}
	return nil
}

func (t *transaction) updateCount(ctx context.Context) error {
	if t.added == 0 {
		return nil
	}
	_, err := t.tx.StmtContext(ctx, t.writer.addCount).ExecContext(ctx, t.added)
	return err
}
