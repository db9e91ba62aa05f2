package weaviate

import (
	"context"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// A server whose shard is read-only reports that of a batch's first object alone and calls the others a success, though it
// has written none. None of them is Done, and all are written once it takes writes again.
func TestReadOnlyShard(t *testing.T) {
	server := needServer(t)
	for name, o := range map[string]Options{"REST": {URL: server.url}, "gRPC": {URL: server.url, GRPC: server.grpc}} {
		t.Run(name, func(t *testing.T) {
			o.Collection = "ReadOnly" + name
			s := openStore(t, o)
			dropCollections(t, s)
			all, ctx := objects(20), context.Background()
			if err := s.Canary(ctx); err != nil {
				t.Errorf("the canary of a healthy server: %v", err)
			}
			setShards(t, s, "READONLY")
			if err := s.Canary(ctx); err == nil { // its own collection still takes writes
				t.Error("the canary lives although no chunk can be written")
			}
			for i, r := range s.Upsert(ctx, all, nil) {
				if r.Outcome != sinks.Outage || r.Err == nil {
					t.Errorf("object %d is %s (%v) although the shard is read-only", i, r.Outcome, r.Err)
				}
			}
			setShards(t, s, "READY")
			for i, r := range s.Upsert(ctx, all, nil) {
				if r.Err != nil {
					t.Errorf("object %d is %s afterwards: %v", i, r.Outcome, r.Err)
				}
			}
			if missing, err := s.Missing(ctx, all); err != nil || len(missing) > 0 {
				t.Errorf("Missing = %v, %v", missing, err)
			}
			setShards(t, s, "READONLY")
			removal := rag.Removal{Exact: true, Revision: all[0].Chunk.Revision}
			if r := s.Remove(ctx, "d", removal); r.Outcome != sinks.Outage {
				t.Errorf("a removal is %s (%v) although the shard is read-only", r.Outcome, r.Err)
			}
			setShards(t, s, "READY")
			if r := s.Remove(ctx, "d", removal); r.Err != nil {
				t.Errorf("a removal is %s afterwards: %v", r.Outcome, r.Err)
			}
			if n, err := s.Count(ctx); err != nil || n != 0 {
				t.Errorf("%d objects are left, %v", n, err)
			}
		})
	}
}

func setShards(t *testing.T, s *Store, status string) {
	t.Helper()
	shards, err := s.client.Schema().ShardsGetter().WithClassName(s.options.Collection).Do(t.Context())
	if err != nil || len(shards) == 0 {
		t.Fatalf("shards %v, %v", shards, err)
	}
	for _, shard := range shards {
		if got, err := s.client.Schema().ShardUpdater().WithClassName(s.options.Collection).WithShardName(shard.Name).WithStatus(status).Do(t.Context()); err != nil {
			t.Fatalf("%s: %v, %v", shard.Name, got, err)
		}
	}
}
