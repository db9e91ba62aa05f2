package checkpoint_test

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/checkpoint"
)

// effects is a state that holds the effect of each message by itself: what each id has added.
type effects map[string]int

func mergeEffects(a, b effects) effects {
	c := maps.Clone(a)
	if c == nil {
		c = effects{}
	}
	for id, n := range b {
		c[id] = max(c[id], n)
	}
	return c
}

// anyRow is a row as a process may have written it at any time: consistent in itself, and otherwise arbitrary.
func anyRow[S any](t *rapid.T, name string, state *rapid.Generator[S], topics ...string) *checkpoint.Row[S, int] {
	if rapid.IntRange(0, 9).Draw(t, name+" is missing") == 0 {
		return nil
	}
	row := &checkpoint.Row[S, int]{State: state.Draw(t, name+" state"), Count: int64(rapid.IntRange(0, 3).Draw(t, name+" count")), Logs: map[string]checkpoint.Log[int]{}}
	position := rapid.Custom(func(t *rapid.T) checkpoint.Position {
		return checkpoint.Position{Epoch: rapid.IntRange(0, 1).Draw(t, "epoch"), Offset: int64(rapid.IntRange(0, 4).Draw(t, "offset"))}
	})
	for _, topic := range topics {
		if rapid.Bool().Draw(t, name+" lacks "+topic) {
			continue
		}
		log := checkpoint.Log[int]{Next: position.Draw(t, "next"), Floor: position.Draw(t, "floor")}
		for _, id := range []string{"a", "b", "c"} {
			m := checkpoint.Mark[int]{Position: position.Draw(t, id), At: int64(rapid.IntRange(0, 1).Draw(t, "at")), Outcome: rapid.IntRange(0, 2).Draw(t, "outcome")}
			if m.Compare(log.Floor) >= 0 && rapid.Bool().Draw(t, id+" is there") {
				if log.Seen == nil {
					log.Seen = map[string]checkpoint.Mark[int]{}
				}
				log.Seen[id] = m
			}
		}
		row.Logs[topic] = log
	}
	return row
}

func laws[S any](t *testing.T, r checkpoint.Rules[S, int], draw func(t *rapid.T, name string) *checkpoint.Row[S, int]) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw(t, "a"), draw(t, "b"), draw(t, "c")
		before := show(a) + show(b) + show(c)
		same := func(law string, left, right *checkpoint.Row[S, int]) {
			t.Helper()
			if !reflect.DeepEqual(left, right) {
				t.Fatalf("not %s\na:     %s\nb:     %s\nc:     %s\nleft:  %s\nright: %s", law, show(a), show(b), show(c), show(left), show(right))
			}
		}
		same("idempotent", r.Merge(a, a), a)
		same("commutative", r.Merge(a, b), r.Merge(b, a))
		same("associative", r.Merge(r.Merge(a, b), c), r.Merge(a, r.Merge(b, c)))
		same("stable", r.Merge(r.Merge(a, b), b), r.Merge(a, b))
		if after := show(a) + show(b) + show(c); after != before {
			t.Fatalf("the merge has changed\n%s\nto\n%s", before, after)
		}
	})
}

func show(row any) string { return fmt.Sprintf("%+v", row) }

func TestMergeOfRowsThatFollowOneLog(t *testing.T) {
	laws(t, rules{}, func(t *rapid.T, name string) *row {
		state := rapid.Map(rapid.IntRange(0, 2), func(n int) account { return account{Balance: n} })
		return anyRow(t, name, state, "t")
	})
}

func TestMergeOfRowsWhoseStatesMerge(t *testing.T) {
	laws(t, checkpoint.Rules[effects, int]{MergeState: mergeEffects}, func(t *rapid.T, name string) *checkpoint.Row[effects, int] {
		state := rapid.Map(rapid.MapOf(rapid.SampledFrom([]string{"a", "b"}), rapid.IntRange(1, 3)), func(m map[string]int) effects { return m })
		return anyRow(t, name, state, "t", "u")
	})
}

// The row that is further along the log wins whole: with the messages of one and the state of the other, a message would
// count as seen that the state does not hold.
func TestFurtherAlongTheLogWins(t *testing.T) {
	r := rules{Now: func() time.Time { return noon }}
	behind := apply(t, r, nil, at(5, "a"), 1).Row
	ahead := apply(t, r, nil, at(6, "b"), 2).Row
	if got := r.Merge(behind, ahead); !reflect.DeepEqual(got, ahead) {
		t.Errorf("merged: %+v", got)
	}
	// What could not be applied in its turn is applied later: that row is no further, but holds more.
	more := apply(t, r, ahead, at(5, "a"), 1).Row
	if got := r.Merge(more, ahead); got.State.Balance != 3 {
		t.Errorf("merged: %+v", got)
	}
	// An epoch begins again at low offsets, and is further nevertheless.
	r.Epoch = 1
	next := apply(t, r, ahead, at(0, "c"), 4).Row
	if got := r.Merge(ahead, next); got.State.Balance != 6 {
		t.Errorf("merged: %+v", got)
	}
}

// A new row wins against the one that it replaces: that one may come late from a stopped process.
func TestANewRowReplacesTheOld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rules{Keep: checkpoint.Keep{For: time.Hour, Least: 1, Most: rapid.IntRange(1, 4).Draw(t, "most")}, Now: func() time.Time { return noon.Add(2 * time.Hour) }}
		var last *row
		for i := range int64(8) {
			m := at(i, fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "id")))
			m.Committed = int64(rapid.IntRange(0, int(i)).Draw(t, "committed"))
			next := apply(t, r, last, m, 1).Row
			if next == nil {
				continue
			}
			if got := r.Merge(last, next); !reflect.DeepEqual(got, next) {
				t.Fatalf("%+v merged with %+v is %+v", last, next, got)
			}
			last = next
		}
	})
}
