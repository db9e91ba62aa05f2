package weaviate

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/sinks/sinktest"
)

const (
	testDimensions = 16
	testSettle     = 300 * time.Millisecond
)

// collections numbers those of this run.
var collections atomic.Int64

func newCollection() string {
	return fmt.Sprintf("Test%d_%d", time.Now().UnixNano(), collections.Add(1))
}

// openStore opens a store and drops its collections after the test.
func openStore(t testing.TB, o Options) *Store {
	t.Helper()
	o.Model, o.Dimensions = "test", testDimensions
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.settle = testSettle
	t.Cleanup(func() { s.Close() })
	return s
}

// dropCollections removes what a test has made.
func dropCollections(t testing.TB, s *Store) {
	t.Cleanup(func() {
		for _, name := range []string{s.options.Collection, s.canaryCollection()} {
			if err := s.client.Schema().ClassDeleter().WithClassName(name).Do(context.Background()); err != nil {
				t.Errorf("drop %s: %v", name, err)
			}
		}
	})
}

func TestSink(t *testing.T) {
	for _, mode := range []struct {
		name   string
		grpc   bool
		tenant string
	}{{"REST", false, ""}, {"gRPC and a tenant", true, "tenant-1"}} {
		t.Run(mode.name, func(t *testing.T) {
			server := needServer(t)
			if mode.grpc && server.grpc == "" {
				t.Fatalf("%s is not set", grpcVariable)
			}
			sinktest.Run(t, func(t *testing.T) sinktest.Harness {
				p := newProxy(t, server)
				o := Options{URL: p.url, Collection: newCollection(), Tenant: mode.tenant}
				if mode.grpc {
					o.GRPC = p.grpc
				}
				store := openStore(t, o)
				dropCollections(t, store)
				reopen := func(t testing.TB) sinktest.Store {
					store.Close()
					store = openStore(t, o)
					return store
				}
				return sinktest.Harness{Store: store, Dimensions: testDimensions, Reopen: reopen, Arm: p.arm}
			})
		})
	}
}
