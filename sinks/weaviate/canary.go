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
	if err := s.writable(ctx); err != nil {
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

// writable asks whether the shards of the chunks take writes: on a server whose disk is nearly full they do not, while that
// of the canaries, on another server, may. Who may not ask learns nothing.
func (s *Store) writable(ctx context.Context) error {
	shards, err := s.client.Schema().ShardsGetter().WithClassName(s.options.Collection).Do(ctx)
	if e := clientError(err); e != nil && (e.StatusCode == http.StatusForbidden || e.StatusCode == http.StatusUnauthorized) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("status of the shards: %w", unwrap(err, 0))
	}
	for _, shard := range shards {
		ours := s.options.Tenant == "" || shard.Name == s.options.Tenant // a tenant's shard has its name
		if ours && shard.Status == shardReadOnly {
			return fmt.Errorf("shard %s is read-only", shard.Name)
		}
	}
	return nil
}

// shardReadOnly is the status of a shard that takes no writes.
const shardReadOnly = "READONLY"
