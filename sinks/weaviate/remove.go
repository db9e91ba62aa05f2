package weaviate

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/weaviate/weaviate-go-client/v4/weaviate/filters"
	"golang.org/x/sync/errgroup"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// Remove implements sinks.Sink.
func (s *Store) Remove(ctx context.Context, documentID string, r rag.Removal) sinks.Result {
	if err := ctx.Err(); err != nil {
		return sinks.Result{Outcome: sinks.Transient, Err: err}
	}
	began, suspects := time.Now(), s.suspects.removed(documentID, r)
	err := s.deleteIDs(ctx, suspects) // which may be in no index that a filter asks
	if err == nil {
		err = s.delete(ctx, whereRemoval(documentID, r))
	}
	if err != nil {
		return sinks.Result{Outcome: classify(err).outcome, Err: fmt.Errorf("remove: %w", err)}
	}
	s.suspects.forget(suspects, began.Add(-s.settle))
	return sinks.Result{}
}

// deleters is how many objects are deleted by their keys at once.
const deleters = 4

// deleteIDs deletes objects one by one, by their keys. A batch deletion goes by a filter, and a server that was killed in
// the middle of a batch may hold objects that no filter finds.
func (s *Store) deleteIDs(ctx context.Context, ids []string) error {
	var deleting errgroup.Group
	deleting.SetLimit(deleters)
	var mu sync.Mutex
	var worst error // of those that ran at once: one that leaves something open before others
	for _, id := range ids {
		deleting.Go(func() error {
			mu.Lock()
			over := worst != nil
			mu.Unlock()
			if over {
				return nil
			}
			err := s.deleteID(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && (worst == nil || classify(err).suspect && !classify(worst).suspect) {
				worst = err
			}
			return nil
		})
	}
	_ = deleting.Wait() // they return none
	return worst
}

func (s *Store) deleteID(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	ctx, cancel := s.request(ctx)
	defer cancel()
	ctx, after := withRetryAfter(ctx)
	deleter := s.client.Data().Deleter().WithClassName(s.options.Collection).WithID(id).WithConsistencyLevel(s.options.ConsistencyLevel)
	if s.options.Tenant != "" {
		deleter = deleter.WithTenant(s.options.Tenant)
	}
	err := deleter.Do(ctx)
	if client := clientError(err); client != nil && client.StatusCode == http.StatusNotFound {
		return nil
	}
	return unwrap(err, *after)
}

func whereRemoval(documentID string, r rag.Removal) *filters.WhereBuilder {
	version := func(o filters.WhereOperator) *filters.WhereBuilder {
		return filters.Where().WithPath([]string{propVersion}).WithOperator(o).WithValueNumber(float64(r.Revision.Version))
	}
	generation := func(o filters.WhereOperator) *filters.WhereBuilder {
		return filters.Where().WithPath([]string{propGeneration}).WithOperator(o).WithValueInt(int64(r.Revision.Generation))
	}
	document := filters.Where().WithPath([]string{propDocumentKey}).WithOperator(filters.Equal).WithValueText(documentKey(documentID))
	if r.Exact {
		return and(document, version(filters.Equal), generation(filters.Equal))
	}
	below := filters.Where().WithOperator(filters.Or).WithOperands([]*filters.WhereBuilder{
		version(filters.LessThan),
		and(version(filters.Equal), generation(filters.LessThan)),
	})
	return and(document, below)
}

func and(operands ...*filters.WhereBuilder) *filters.WhereBuilder {
	return filters.Where().WithOperator(filters.And).WithOperands(operands)
}

// delete removes everything that matches. The server takes a limited number a call (10,000 unless it is configured
// otherwise), so that it is asked until nothing matches.
func (s *Store) delete(ctx context.Context, where *filters.WhereBuilder) error {
	for {
		more, err := s.deleteOnce(ctx, where)
		if err != nil || !more {
			return err
		}
	}
}

// deleteOnce removes as many as one call does, and tells whether more match.
func (s *Store) deleteOnce(ctx context.Context, where *filters.WhereBuilder) (more bool, err error) {
	ctx, cancel := s.request(ctx)
	defer cancel()
	ctx, after := withRetryAfter(ctx)
	deleter := s.client.Batch().ObjectsBatchDeleter().WithClassName(s.options.Collection).WithWhere(where).
		WithOutput("minimal").WithConsistencyLevel(s.options.ConsistencyLevel)
	if s.options.Tenant != "" {
		deleter = deleter.WithTenant(s.options.Tenant)
	}
	reply, err := deleter.Do(ctx)
	if err != nil {
		return false, unwrap(err, *after)
	}
	r := reply.Results
	if r == nil {
		return false, &objectFailure{"the answer says nothing about what was deleted"}
	}
	for _, o := range r.Objects {
		if o != nil && o.Errors != nil && len(o.Errors.Error) > 0 && o.Errors.Error[0] != nil {
			return false, &objectFailure{fmt.Sprintf("object %s: %s", o.ID, o.Errors.Error[0].Message)}
		}
	}
	if r.Failed > 0 {
		return false, &objectFailure{fmt.Sprintf("%d of %d objects failed", r.Failed, r.Matches)}
	}
	return r.Successful > 0 && (r.Matches > r.Successful || r.Successful >= r.Limit), nil
}
