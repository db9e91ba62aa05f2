package stagetest_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// A stage that counts words per river: what a user's stage and its test look like.

var (
	words  = topic[string]("words")
	totals = topic[total]("totals")
)

type total struct {
	Word  string
	Count int
}

// tally is the row of a river: the words with the offsets at which they came, so that a redelivery is recognised, and two
// rows can be merged.
type tally struct {
	Seen map[string][]int64
}

func (t *tally) clone() *tally {
	c := &tally{Seen: map[string][]int64{}}
	if t != nil {
		for w, offsets := range t.Seen {
			c.Seen[w] = slices.Clone(offsets)
		}
	}
	return c
}

func (t *tally) add(word string, offset int64) {
	if i, known := slices.BinarySearch(t.Seen[word], offset); !known {
		t.Seen[word] = slices.Insert(t.Seen[word], i, offset)
	}
}

// countUpTo is the count as of an offset, whatever has come since.
func (t *tally) countUpTo(word string, offset int64) int {
	i, _ := slices.BinarySearch(t.Seen[word], offset+1)
	return i
}

func (t *tally) size() int {
	n := 0
	for _, offsets := range t.Seen {
		n += len(offsets)
	}
	return n
}

func mergeTally(a, b *tally) *tally {
	c := a.clone()
	for w, offsets := range b.Seen {
		for _, o := range offsets {
			c.add(w, o)
		}
	}
	return c
}

func count(_ context.Context, m stage.Message[string], row *tally) (stage.Result[tally], error) {
	if m.DecodeError != nil || m.Tombstone {
		return stage.Result[tally]{}, stage.Reject("no_word", "it is no word")
	}
	next := row.clone()
	next.add(m.Value, m.Record.Offset)
	n := total{m.Value, next.countUpTo(m.Value, m.Record.Offset)}
	return stage.Result[tally]{Outputs: []stage.Output{totals.Record(m.Key, n)}, Row: next,
		Said: []stage.Output{totals.Record("all/"+m.Key, total{strings.ToUpper(m.Value), n.Count})}}, nil
}

func TestCountWords(t *testing.T) {
	run := stagetest.New(t,
		stagetest.Input(words, count),
		stagetest.Output(totals),
		stagetest.Table(jsonCodec[tally]{}, mergeTally),
	).Run(
		stagetest.Message(words, "Rhine", "water"),
		stagetest.Message(words, "Rhine", "bridge"),
		stagetest.Message(words, "Elbe", "water"),
		stagetest.Message(words, "Rhine", "water"),
	)
	want := []total{{"water", 1}, {"WATER", 1}, {"bridge", 1}, {"BRIDGE", 1}, {"water", 1}, {"WATER", 1}, {"water", 2}, {"WATER", 2}}
	if got := stagetest.Sent(run, totals); !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
	row := stagetest.Row[tally](run, "Rhine")
	if got := slices.Sorted(maps.Keys(row.Seen)); !slices.Equal(got, []string{"bridge", "water"}) {
		t.Errorf("the row holds %v", got)
	}
	if len(run.Outputs()) != len(want) {
		t.Errorf("%d outputs, want %d", len(run.Outputs()), len(want))
	}
}
