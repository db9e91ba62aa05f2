package stagetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// Broken stages: each has one of the faults that the kit is for.

type countHandler = stage.Handler[string, tally]

// runWords runs a handler over three words of one river; the second and third are in flight together.
func runWords(handle countHandler, merge func(a, b *tally) *tally, more ...stagetest.Option) func(t testing.TB) {
	return func(t testing.TB) {
		options := append([]stagetest.Option{
			stagetest.Input(words, handle), stagetest.Output(totals), stagetest.Table(jsonCodec[tally]{}, merge),
		}, more...)
		stagetest.New(t, options...).Run(
			stagetest.Message(words, "Rhine", "water"),
			stagetest.Settled(),
			stagetest.Message(words, "Rhine", "bridge"),
			stagetest.Message(words, "Rhine", "water"),
		)
	}
}

func TestTheGoodStageHasNoFaults(t *testing.T) {
	if texts := failures(t, runWords(count, mergeTally)); len(texts) > 0 {
		t.Errorf("the good stage fails: %v", texts)
	}
}

func TestStageThatDropsWhatItHasSeen(t *testing.T) {
	drop := func(ctx context.Context, m stage.Message[string], row *tally) (stage.Result[tally], error) {
		if row != nil && row.countUpTo(m.Value, m.Record.Offset) > row.countUpTo(m.Value, m.Record.Offset-1) {
			return stage.Result[tally]{}, nil // the bug: its outputs may never have been sent
		}
		return count(ctx, m, row)
	}
	wantFailure(t, runWords(drop, mergeTally), "records are missing", `topic totals, key "Rhine": {Word:water Count:1}`,
		"crash: in the message words/0@0", "0 of 1 outputs sent, the row written locally", "delivered again from the message words/0@0", "kept")
	wantFailure(t, runWords(drop, mergeTally), "the table's record", "got:  none")
}

func TestStageThatDoesNotWriteItsRowAgain(t *testing.T) {
	handle := func(ctx context.Context, m stage.Message[string], row *tally) (stage.Result[tally], error) {
		res, err := count(ctx, m, row)
		if row != nil && row.countUpTo(m.Value, m.Record.Offset) > row.countUpTo(m.Value, m.Record.Offset-1) {
			res.Row = nil // the bug: the table may never have seen it
		}
		return res, err
	}
	wantFailure(t, runWords(handle, mergeTally), "the table's record of key \"Rhine\" is another one", "got:  none",
		"the row written locally but not to the table")
}

func TestStageThatSaysOnlyWhatIsNew(t *testing.T) {
	handle := func(ctx context.Context, m stage.Message[string], row *tally) (stage.Result[tally], error) {
		res, err := count(ctx, m, row)
		if row != nil && row.countUpTo(m.Value, m.Record.Offset) > row.countUpTo(m.Value, m.Record.Offset-1) {
			res.Said = nil // the bug: it may never have been said
		}
		return res, err
	}
	wantFailure(t, runWords(handle, mergeTally), "records are missing", "WATER", "0 of 1 words said")
}

func TestStageThatSpeaksOfTheRowAsItIsNow(t *testing.T) {
	handle := func(ctx context.Context, m stage.Message[string], row *tally) (stage.Result[tally], error) {
		res, err := count(ctx, m, row)
		n := 0
		for _, offsets := range res.Row.Seen { // the bug: what came later counts on a redelivery
			n += len(offsets)
		}
		res.Said = []stage.Output{totals.Record("sum", total{"sum", n})}
		return res, err
	}
	wantFailure(t, runWords(handle, mergeTally), "records are missing", "{Word:sum Count:2}", "nothing said since the message words/0@1")
}

func TestStageWithRandomOutput(t *testing.T) {
	n := 0
	handle := func(_ context.Context, m stage.Message[string], row *tally) (stage.Result[tally], error) {
		n++
		return stage.Result[tally]{Outputs: []stage.Output{totals.Record(m.Key, total{m.Value, n})}}, nil
	}
	f := runWords(handle, mergeTally)
	wantFailure(t, f, "called twice with the same message and row, the stage gives different results", "{Word:water Count:1}", "{Word:water Count:2}")
	n = 0
	wantFailure(t, f, "records are sent that are not those of a run without one")
}

func TestStageThatSendsInAnotherOrderAgain(t *testing.T) {
	handle := func(_ context.Context, m stage.Message[string], row *tally) (stage.Result[tally], error) {
		outs := []stage.Output{totals.Record(m.Key, total{m.Value, 1}), totals.Record(m.Key, total{m.Value, 2})}
		if row != nil && row.countUpTo(m.Value, m.Record.Offset) > 0 {
			outs[0], outs[1] = outs[1], outs[0]
		}
		next := row.clone()
		next.add(m.Value, m.Record.Offset)
		return stage.Result[tally]{Outputs: outs, Row: next}, nil
	}
	f := func(t testing.TB) {
		stagetest.New(t, stagetest.Input(words, handle), stagetest.Output(totals), stagetest.Table(jsonCodec[tally]{}, mergeTally)).
			Run(stagetest.Message(words, "Rhine", "water"))
	}
	wantFailure(t, f, "the records of a key are in another order")
}

func TestStageThatChangesItsRow(t *testing.T) {
	handle := func(_ context.Context, m stage.Message[string], row *tally) (stage.Result[tally], error) {
		if row == nil {
			row = row.clone()
		}
		row.add(m.Value, m.Record.Offset) // the bug
		return stage.Result[tally]{Row: row}, nil
	}
	wantFailure(t, runWords(handle, mergeTally), "the stage changes the row that it is given, of key \"Rhine\"", "before: {Seen:map[water:[0]]}", "bridge:[1]")
}

func TestStageThatChangesItsMessage(t *testing.T) {
	handle := func(ctx context.Context, m stage.Message[string], row *tally) (stage.Result[tally], error) {
		m.Record.Value[1] = 'W'
		return count(ctx, m, row)
	}
	wantFailure(t, runWords(handle, mergeTally), "the stage changes the record of the message")
}

func TestStageWhoseRowForgets(t *testing.T) {
	handle := func(_ context.Context, m stage.Message[string], _ *tally) (stage.Result[tally], error) {
		var next *tally
		next = next.clone() // the bug: it begins anew with each message
		next.add(m.Value, m.Record.Offset)
		return stage.Result[tally]{Row: next}, nil
	}
	wantFailure(t, runWords(handle, mergeTally), "merged with the row that it replaces, a new row of key \"Rhine\" is not what is left",
		"old:    {Seen:map[water:[0]]}", "new:    {Seen:map[bridge:[1]]}", "merged: {Seen:map[bridge:[1] water:[0]]}")
}

func TestMergesThatBreakALaw(t *testing.T) {
	for name, tc := range map[string]struct {
		merge func(a, b *tally) *tally
		want  string
	}{
		"not commutative": {func(a, _ *tally) *tally { return a }, "commutative"},
		"not idempotent": {func(a, b *tally) *tally {
			c := mergeTally(a, b)
			c.Seen["merged"] = append(c.Seen["merged"], int64(len(c.Seen["merged"])))
			return c
		}, "idempotent"},
		"not associative": {func(a, b *tally) *tally {
			c := mergeTally(a, b)
			if d := a.size() - b.size(); d > 1 || d < -1 {
				c.add("far apart", 1)
			}
			return c
		}, "associative"},
		"changes a row": {func(a, b *tally) *tally {
			for w, offsets := range b.Seen {
				for _, o := range offsets {
					a.add(w, o)
				}
			}
			return a
		}, "the merge changes the row that it is given"},
		"makes nothing": {func(_, _ *tally) *tally { return nil }, "makes nothing of two rows"},
		"panics":        {func(_, _ *tally) *tally { panic("no") }, "the stage panicked: no"},
	} {
		t.Run(name, func(t *testing.T) { wantFailure(t, runWords(count, tc.merge), tc.want) })
	}
}

func TestRowOnTwoPartitions(t *testing.T) {
	f := func(t testing.TB) {
		stagetest.New(t, stagetest.Input(words, count), stagetest.Table(jsonCodec[tally]{}, mergeTally)).Run(
			stagetest.Message(words, "Rhine", "water"),
			stagetest.Message(words, "Rhine", "water").On(1),
		)
	}
	wantFailure(t, f, `rows of the key "Rhine" are written from the partitions 0 and 1`)
}

func TestFailures(t *testing.T) {
	bad := errors.New("bad")
	failing := func(err error) countHandler {
		return func(context.Context, stage.Message[string], *tally) (stage.Result[tally], error) {
			return stage.Result[tally]{}, err
		}
	}
	wantFailure(t, runWords(failing(bad), mergeTally), "the partition is held", "nothing says what follows from that: bad")
	wantFailure(t, runWords(failing(stage.Outage("store", 0, bad)), mergeTally), "the partition is held: an outage: store: bad")
	panics := func(context.Context, stage.Message[string], *tally) (stage.Result[tally], error) { panic("ouch") }
	wantFailure(t, runWords(panics, mergeTally), "the stage panicked: ouch")
	noTable := func(t testing.TB) {
		stagetest.New(t, stagetest.Input(words, count)).Run(stagetest.Message(words, "Rhine", "water"))
	}
	wantFailure(t, noTable, "no table")
	fails := stagetest.OnFailure(func(context.Context, stage.Record, stage.Class, error, *tally) (stage.Result[tally], error) {
		return stage.Result[tally]{}, bad
	})
	wantFailure(t, runWords(failing(errors.New("first")), mergeTally, fails), "OnFailure fails on first: bad")
}

func TestFailureHandlerStandsInTheMessagesPlace(t *testing.T) {
	type call struct {
		class  stage.Class
		reason string
		seen   int
	}
	var calls []call
	options := []stagetest.Option{
		stagetest.Input(words, count), stagetest.Output(totals), stagetest.Table(jsonCodec[tally]{}, mergeTally),
		stagetest.OnFailure(func(_ context.Context, r stage.Record, class stage.Class, err error, row *tally) (stage.Result[tally], error) {
			calls = append(calls, call{class, stage.ReasonOf(err, ""), len(row.clone().Seen)})
			return stage.Result[tally]{Outputs: []stage.Output{totals.Record(string(r.Key), total{"failed", int(r.Offset)})}}, nil
		}),
	}
	run := stagetest.New(t, options...).Run(
		stagetest.Message(words, "Rhine", "water"),
		stagetest.Tombstone("words", "Rhine"),
	)
	got := fmt.Sprint(stagetest.Sent(run, totals))
	if want := "[{water 1} {WATER 1} {failed 1}]"; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	if len(calls) == 0 || calls[0] != (call{stage.ClassMessage, "no_word", 1}) {
		t.Errorf("the failure handler was called with %+v", calls)
	}
}

func TestOutputThatCannotBeEncoded(t *testing.T) {
	broken := stage.Topic[chan int]{Name: "broken", Codec: jsonCodec[chan int]{}}
	handle := func(context.Context, stage.Message[string], *tally) (stage.Result[tally], error) {
		return stage.Result[tally]{Outputs: []stage.Output{broken.Record("k", make(chan int))}}, nil
	}
	wantFailure(t, runWords(handle, mergeTally), "not_encodable: a record for broken")
}
