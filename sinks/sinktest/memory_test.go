package sinktest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/waymarkhq/waymark/sinks"
)

func TestMemory(t *testing.T) {
	Run(t, func(t *testing.T) Harness {
		m := NewMemory(16)
		return Harness{
			Store:      m,
			Dimensions: 16,
			Reopen: func(testing.TB) Store {
				m.Close()
				m.Reopen()
				return m
			},
			Arm: func(_ testing.TB, f Fault) func() { return m.Arm(f) },
		}
	})
}

// The trap of lost answers and lost vectors: only a repair makes an object findable again.
func TestMemoryLosesVectors(t *testing.T) {
	m := NewMemory(16)
	objects := newMaker(Harness{Dimensions: 16}).objects("d", v(1), 3)
	wantMissing := func(what string, want ...int) {
		t.Helper()
		if got, err := m.Missing(context.Background(), objects); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s: Missing = %v, %v, want %v", what, got, err, want)
		}
	}
	m.Arm(Fault{Kind: LostAfter})
	m.Upsert(context.Background(), objects, nil)
	wantMissing("after a lost answer", 0, 1, 2)
	upsert(t, m, objects, nil)
	wantMissing("written again", 0, 1, 2)
	upsert(t, m, objects, map[int]bool{0: true, 1: true})
	wantMissing("two repaired", 2)
	upsert(t, m, objects, all(objects))
	wantMissing("all repaired")
	m.LoseVectors(objects[1].ID)
	wantMissing("one lost by a crash", 1)
	if n, _ := m.Count(context.Background()); n != 3 {
		t.Errorf("Count = %d: it must not notice", n)
	}
}

func TestMemoryAwayAndIntercept(t *testing.T) {
	m := NewMemory(16)
	objects := newMaker(Harness{Dimensions: 16}).objects("d", v(1), 2)
	m.SetAway(true)
	if r := m.Upsert(context.Background(), objects, nil); r[1].Outcome != sinks.Outage {
		t.Errorf("away: %v", r)
	}
	if err := m.Canary(context.Background()); !errors.Is(err, ErrAway) {
		t.Errorf("canary of a store that is away: %v", err)
	}
	m.SetAway(false)
	m.SetIntercept(func(objects []sinks.Object, _ map[int]bool) []sinks.Result {
		return []sinks.Result{{Outcome: sinks.Transient, Err: ErrItem}, {}}
	})
	if r := m.Upsert(context.Background(), objects, nil); r[0].Outcome != sinks.Transient || r[1].Outcome != sinks.Done {
		t.Errorf("intercepted: %v", r)
	}
	m.SetIntercept(nil)
	wantHolds(t, m, objects[1])
	if s := m.Stats(); s.Upserts != 2 || s.Objects != 4 || s.Canaries != 1 {
		t.Errorf("stats: %+v", s)
	}
}
