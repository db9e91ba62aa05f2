package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/stage"
)

// oneByOne is a stage whose outputs are given one by one: n of them for a message. failing is asked before each.
func oneByOne(n int, failing func(value string, call, i int) error) stage.Handler[string, counts] {
	return func(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
		call := 0
		return stage.Result[counts]{
			Outputs: []stage.Output{out.Record(m.Key, m.Value+" begins")},
			More: func(_ context.Context, yield func(stage.Output) error) error {
				call++
				for i := range n {
					if err := failing(m.Value, call, i); err != nil {
						return err
					}
					if err := yield(out.Record(m.Key, fmt.Sprintf("%s %d", m.Value, i))); err != nil {
						return err
					}
				}
				return nil
			},
			Row:  seen(row, m),
			Said: []stage.Output{said.Record(m.Key, m.Value)},
		}, nil
	}
}

func TestOutputsOneByOne(t *testing.T) {
	w := newWorld(t)
	w.run("a", group(t, engine.Input(in, oneByOne(3, func(string, int, int) error { return nil })),
		engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad)))
	w.send("k", "a", "b")
	w.waitFor("said", 2)
	if got, want := w.values("out"), []string{"a begins", "a 0", "a 1", "a 2", "b begins", "b 0", "b 1", "b 2"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	w.waitCommitted("k", 2)
}

// What is found out while the outputs are checked is the message's failure, before any of them is sent.
func TestOutputsOneByOneAreCheckedFirst(t *testing.T) {
	w := newWorld(t)
	w.run("a", group(t, engine.Input(in, oneByOne(3, func(value string, _, i int) error {
		switch {
		case value == "rejected" && i == 2:
			return stage.Reject("blob_missing", "it is gone")
		case value == "panics" && i == 2:
			panic("at the disco")
		}
		return nil
	})), engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad)))
	w.send("k", "rejected", "panics", "well")
	w.waitFor("said", 1)
	if got := w.values("bad"); fmt.Sprint(got) != "[message:blob_missing message:panic]" {
		t.Errorf("bad %v", got)
	}
	if got := w.values("out"); len(got) != 4 || got[0] != "well begins" {
		t.Errorf("sent %q", got)
	}
	w.waitCommitted("k", 3)
}

// Outputs that end in the middle of being sent are all sent again; the row does not count before.
func TestOutputsOneByOneThatBreakOffComeAgain(t *testing.T) {
	w := newWorld(t)
	var broken atomic.Bool
	w.run("a", group(t, engine.Input(in, oneByOne(3, func(_ string, call, i int) error {
		if call == 2 && i == 2 && !broken.Swap(true) {
			return errors.New("the source is away")
		}
		return nil
	})), engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad)))
	w.send("k", "a")
	w.waitFor("said", 1)
	if got, want := w.values("out"), []string{"a begins", "a 0", "a 1", "a begins", "a 0", "a 1", "a 2"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	if got := w.values("bad"); len(got) > 0 {
		t.Errorf("bad %v", got)
	}
	w.waitCommitted("k", 1)
}

// A source that goes away while outputs are sent is an outage: the partition waits, nothing is sent twice, and the processor is
// not built anew for it.
func TestOutputsOneByOneWaitForTheirSource(t *testing.T) {
	w := newWorld(t)
	var away, asked, handled atomic.Int32
	w.run("a", group(t, engine.Input(in, oneByOne(3, func(value string, call, i int) error {
		if value == "a" && call == 1 && i == 0 {
			handled.Add(1)
		}
		if value == "a" && call >= 2 && i == 2 && away.Add(1) <= 3 {
			return stage.Outage("source", 0, errors.New("the source is away"))
		}
		return nil
	})), engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad), engine.WithCanary(func(_ context.Context, dependency string) error {
		if dependency != "source" {
			t.Errorf("the canary of %q is asked", dependency)
		}
		asked.Add(1)
		return errors.New("it is")
	})))
	w.send("k", "a", "b")
	w.waitFor("said", 2)
	if got, want := w.values("out"), []string{"a begins", "a 0", "a 1", "a 2", "b begins", "b 0", "b 1", "b 2"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	if got := w.values("bad"); len(got) > 0 {
		t.Errorf("bad %v", got)
	}
	if asked.Load() != 3 {
		t.Errorf("the canary was asked %d times, want 3", asked.Load())
	}
	if handled.Load() != 1 { // a processor that is built anew gets the message again
		t.Errorf("the message was handled %d times", handled.Load())
	}
	w.waitCommitted("k", 2)
}
