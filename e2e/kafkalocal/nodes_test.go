package kafkalocal

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// The switch of every test that needs Java; see e2e/native.
const nativeVariable = "E2E_NATIVE"

func release(t *testing.T) Release {
	t.Helper()
	if os.Getenv(nativeVariable) == "" {
		t.Skip("NOT RUN: " + nativeVariable + " is not set: nothing ran on real Kafka nodes; `make e2e-native` does")
	}
	cache, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Fetch(t.Context(), cache, DefaultVersion)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Three nodes: each of what tests do to a node is seen by the others, and none of it loses the cluster.
func TestThreeNodes(t *testing.T) {
	began := time.Now()
	c, err := New(t.Context(), Options{Release: release(t), Dir: t.TempDir() + "/cluster", Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Clean(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Start(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Logf("three nodes ready after %s", time.Since(began).Round(10*time.Millisecond))
	alive := func(want ...int32) {
		t.Helper()
		var got []int32
		err := c.poll(within(t, 30*time.Second), func() (err error) {
			got, err = Brokers(t.Context(), c.Addr(1, Plaintext))
			slices.Sort(got)
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("it sees %v", got)
			}
			return err
		})
		if err != nil {
			t.Fatalf("node 1 sees %v, want %v: %v", got, want, err)
		}
	}
	alive(1, 2, 3)
	if err := c.Kill(3); err != nil {
		t.Fatal(err)
	}
	if c.Pid(3) != 0 {
		t.Error("node 3 was killed and has a process")
	}
	alive(1, 2)
	if err := c.StartNode(within(t, time.Minute), 3); err != nil {
		t.Fatal(err)
	}
	alive(1, 2, 3)
	if err := c.Pause(2); err != nil {
		t.Fatal(err)
	}
	alive(1, 3)
	if err := c.Resume(2); err != nil {
		t.Fatal(err)
	}
	alive(1, 2, 3)

	other, err := Open(c.Dir) // another process drives it
	if err != nil {
		t.Fatal(err)
	}
	if err := other.StopNode(2); err != nil {
		t.Fatal(err)
	}
	alive(1, 3)
	if err := other.Stop(); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 3; i++ {
		if pid := c.Pid(i); pid != 0 {
			t.Errorf("node %d runs with pid %d after the stop", i, pid)
		}
	}
	if err := c.Start(within(t, time.Minute)); err != nil {
		t.Fatalf("with the data that it has: %v", err)
	}
}
