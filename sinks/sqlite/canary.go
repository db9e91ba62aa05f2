package sqlite

import (
	"context"
	"fmt"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/internal/terms"
)

// canaryDocument cannot be the id of a document: it holds a control character.
const canaryDocument = "\x01canary"

// Canary implements sinks.Sink: it writes a chunk, finds it by vector and by text, removes it and commits, all in one
// transaction, which goes the whole way to the disk and of which nobody ever sees anything.
func (s *Store) Canary(ctx context.Context) error {
	vector := make([]float32, s.options.Dimensions)
	vector[0] = 1
	id := rag.ChunkID(s.options.Tenant, canaryDocument, rag.Revision{}, 0)
	object := sinks.Object{ID: id.String(), Vector: vector, Chunk: rag.Chunk{
		Subject: rag.Subject{DocumentID: canaryDocument}, Count: 1, Text: "canary",
	}}
	err := s.writer.transact(ctx, func(ctx context.Context, t *transaction) error {
		row := newRow(&object)
		if err := t.insert(ctx, &row); err != nil {
			return err
		}
		search := &search{tx: t.tx, query: sinks.Query{Vector: vector, K: 1, DocumentID: canaryDocument}}
		near, err := search.byVector(ctx, 1)
		if err != nil {
			return err
		}
		matching, err := search.byText(ctx, matchExpression(terms.Query(object.Chunk.Text)), 1)
		if err != nil {
			return err
		}
		if len(near) != 1 || len(matching) != 1 {
			return fmt.Errorf("found %d times by vector and %d times by text, not once", len(near), len(matching))
		}
		c, _, err := t.lookUp(ctx, row.id)
		if err != nil {
			return err
		}
		return t.delete(ctx, []stored{c})
	})
	if err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	return nil
}
