package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/waymarkhq/waymark/sinks/sinktest"
)

func TestSink(t *testing.T) {
	const dimensions = 16
	sinktest.Run(t, func(t *testing.T) sinktest.Harness {
		path := filepath.Join(t.TempDir(), "store.db")
		faults := &faultDriver{}
		var store *Store
		reopen := func(t testing.TB) sinktest.Store {
			if store != nil {
				if err := store.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			var err error
			store, err = open(context.Background(), path, Options{Model: "test", Dimensions: dimensions, Tenant: "test"}, faults.connect)
			if err != nil {
				t.Fatal(err)
			}
			return store
		}
		reopen(t)
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return sinktest.Harness{Store: store, Dimensions: dimensions, Reopen: reopen, Arm: faults.arm, MaxText: 4 << 20}
	})
}
