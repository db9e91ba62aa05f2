package weaviate

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-openapi/strfmt"
	"github.com/google/uuid"
	"github.com/weaviate/weaviate/entities/models"
)

// Canary implements sinks.Sink: it writes an object into a collection of canaries, finds it by its vector and deletes it. One
// that is left by a crash is harmless there.
func (s *Store) Canary(ctx context.Context) error {
	if err := s.canary(ctx); err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	return nil
}

func (s *Store) canary(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	vector := make([]float32, s.options.Dimensions)
	vector[0] = 1
	id := uuid.NewString() // several processes may send canaries at once
	reply, err := s.sendBatch(ctx, []*models.Object{{
		Class: s.canaryCollection(), ID: strfmt.UUID(id), Vector: vector, Properties: map[string]any{},
	}})
	if err != nil {
		return err
	}
	if len(reply) != 1 {
		return fmt.Errorf("the answer has %d results for one object", len(reply))
	}
	if message, failed := objectError(reply[0]); failed {
		return &objectFailure{message}
	}
	g := &get{collection: s.canaryCollection(), fields: "_additional {id distance}"}
	g.argument("limit", "1")
	g.nearVector(vector)
	g.where(conditionIDs([]string{id}))
	answer, err := s.ask(ctx, g)
	if err != nil {
		return err
	}
	deleteErr := s.client.Data().Deleter().WithClassName(s.canaryCollection()).WithID(id).Do(ctx)
	if e := clientError(deleteErr); e != nil && e.StatusCode == http.StatusNotFound {
		deleteErr = nil
	}
	if !holds(answer, id) {
		return errors.Join(errors.New("not found by its vector"), unwrap(deleteErr, 0))
	}
	return unwrap(deleteErr, 0)
}
