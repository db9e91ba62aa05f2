package stagetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

func TestHistory(t *testing.T) {
	type seen struct {
		partition int32
		offset    int64
		committed int64
		second    int
	}
	got := map[int64]seen{}
	handle := func(_ context.Context, m stage.Message[string], _ *tally) (stage.Result[tally], error) {
		got[int64(m.Record.Partition)*100+m.Record.Offset] = seen{m.Record.Partition, m.Record.Offset, m.Committed, m.Record.Timestamp.Second()}
		return stage.Result[tally]{}, nil
	}
	at := time.Date(2030, 1, 1, 0, 0, 30, 0, time.UTC)
	stagetest.New(t, stagetest.Input(words, handle)).Run(
		stagetest.Message(words, "a", "w"),
		stagetest.Message(words, "b", "w").On(3),
		stagetest.Message(words, "c", "w").Offset(7).At(at),
		stagetest.Message(words, "d", "w").Offset(2), // below the next one
		stagetest.Sending(words.Record("e", "w")).On(3),
		stagetest.Raw(stage.Record{Topic: "words", Value: []byte("no JSON")}),
	)
	want := map[int64]seen{0: {0, 0, 0, 5}, 300: {3, 0, 0, 6}, 7: {0, 7, 7, 30}, 8: {0, 8, 8, 8}, 301: {3, 1, 1, 9}, 9: {0, 9, 9, 10}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the stage has seen %v, want %v", got, want)
	}
}

func TestMisuse(t *testing.T) {
	other := topic[int]("other")
	unencodable := stage.Topic[chan int]{Name: "words", Codec: jsonCodec[chan int]{}}
	onInts := func(context.Context, stage.Message[int], *int) (stage.Result[int], error) {
		return stage.Result[int]{}, nil
	}
	table := stagetest.Table(jsonCodec[tally]{}, mergeTally)
	for name, tc := range map[string]struct {
		options []stagetest.Option
		step    stagetest.Step
		want    string
	}{
		"no input":           {[]stagetest.Option{table}, stagetest.Settled(), "no input"},
		"two tables":         {[]stagetest.Option{stagetest.Input(words, count), table, table}, stagetest.Settled(), "two tables"},
		"two inputs":         {[]stagetest.Option{stagetest.Input(words, count), stagetest.Input(words, count), table}, stagetest.Settled(), "two inputs of the topic words"},
		"rows of two types":  {[]stagetest.Option{stagetest.Input(words, count), stagetest.Input(other, onInts), table}, stagetest.Settled(), "a part works on rows of int"},
		"timer without rows": {[]stagetest.Option{stagetest.Input(words, count), stagetest.Timer(stage.Timer[tally]{})}, stagetest.Settled(), "a timer without a table"},
		"another topic":      {[]stagetest.Option{stagetest.Input(words, count), table}, stagetest.Message(other, "k", 1), `a message of "other", which is no input`},
		"not encodable":      {[]stagetest.Option{stagetest.Input(words, count), table}, stagetest.Message(unencodable, "k", nil), "cannot be encoded"},
	} {
		t.Run(name, func(t *testing.T) {
			wantFailure(t, func(t testing.TB) { stagetest.New(t, tc.options...).Run(tc.step) }, tc.want)
		})
	}
}

func TestJoinedRows(t *testing.T) {
	names := topic[total]("names-table")
	handle := func(_ context.Context, m stage.Message[string], _ *tally) (stage.Result[tally], error) {
		joined := stage.Joined(m, names)
		if joined == nil {
			return stage.Result[tally]{}, nil
		}
		return stage.Result[tally]{Outputs: []stage.Output{totals.Record(m.Key, *joined)}}, nil
	}
	join := stagetest.Join(names, func(r stage.Record) *total {
		if string(r.Key) == "b" {
			return nil
		}
		return &total{string(r.Key), int(r.Offset)}
	})
	run := stagetest.New(t, stagetest.Input(words, handle), join).Run(
		stagetest.Message(words, "a", ""), stagetest.Message(words, "b", ""), stagetest.Message(words, "a", ""))
	if got := fmt.Sprint(stagetest.Sent(run, totals)); got != "[{a 0} {a 2}]" {
		t.Errorf("sent %s", got)
	}
	changes := func(_ context.Context, m stage.Message[string], _ *tally) (stage.Result[tally], error) {
		stage.Joined(m, names).Count++
		return stage.Result[tally]{}, nil
	}
	wantFailure(t, func(t testing.TB) {
		stagetest.New(t, stagetest.Input(words, changes), join).Run(stagetest.Message(words, "a", ""))
	}, "changes the row of the joined table names-table")
}

// batchOf counts words in batches; the row of a key is a cache.
func batchOf(calls *[]int, forget bool) stage.BatchHandler[string, total] {
	return func(_ context.Context, b stage.Batch[string, total]) stage.BatchResult[total] {
		res := stage.BatchResult[total]{Rows: map[string]*total{}, Errors: map[int]error{}}
		*calls = append(*calls, len(b.Messages))
		for i, m := range b.Messages {
			if m.Value == "bad" {
				res.Errors[i] = stage.Reject("bad_word", "it is bad")
				continue
			}
			if row := b.Row(m.Key); row != nil && forget {
				continue // the bug: what it stands for may not have been sent
			}
			res.Rows[m.Key] = &total{Word: m.Value}
			res.Outputs = append(res.Outputs, totals.Record(m.Key, total{m.Value, len(m.Value)}))
		}
		return res
	}
}

func firstTotal(a, b *total) *total {
	if a.Word <= b.Word {
		return a
	}
	return b
}

func runBatch(calls *[]int, forget bool) func(t testing.TB) {
	return func(t testing.TB) {
		stagetest.New(t, stagetest.Batch(words, batchOf(calls, forget)), stagetest.Output(totals), stagetest.Table(jsonCodec[total]{}, firstTotal),
			stagetest.OnFailure(func(_ context.Context, r stage.Record, _ stage.Class, err error, row *total) (stage.Result[total], error) {
				if row != nil {
					return stage.Result[total]{}, errors.New("a message of a batch came with a row")
				}
				return stage.Result[total]{Outputs: []stage.Output{totals.Record("failed", total{stage.ReasonOf(err, ""), int(r.Offset)})}}, nil
			})).Run(
			stagetest.Message(words, "a", "one"),
			stagetest.Message(words, "b", "bad"),
			stagetest.Raw(stage.Record{Topic: "words", Key: []byte("c"), Value: []byte("no JSON")}),
			stagetest.Tombstone("words", "d"),
			stagetest.Message(words, "e", "two"),
			stagetest.Settled(),
			stagetest.Message(words, "f", "three"),
			stagetest.Message(words, "g", "four").On(1),
		)
	}
}

func TestBatches(t *testing.T) {
	var calls []int
	if texts := failures(t, runBatch(&calls, false)); len(texts) > 0 {
		t.Fatalf("the good stage fails: %v", texts)
	}
	if got := fmt.Sprint(calls[:6]); got != "[3 3 1 1 1 1]" {
		t.Errorf("the first batches, each called twice, were of %s messages", got)
	}
	wantFailure(t, runBatch(new([]int), true), "records are missing", "{Word:one Count:3}", "the batch of 5 from words/0@0")
}

// A row that only saves work may be lost with a crash, but not become another one.
func TestCache(t *testing.T) {
	handle := func(word func(n int) string) func(t testing.TB) {
		calls := 0
		return func(t testing.TB) {
			remember := func(_ context.Context, b stage.Batch[string, total]) stage.BatchResult[total] {
				if b.Row("a") != nil {
					return stage.BatchResult[total]{}
				}
				calls++
				return stage.BatchResult[total]{Rows: map[string]*total{"a": {Word: word(calls)}}}
			}
			stagetest.New(t, stagetest.Batch(words, remember), stagetest.Cache(jsonCodec[total]{}, firstTotal)).Run(stagetest.Message(words, "a", "one"))
		}
	}
	if texts := failures(t, handle(func(int) string { return "one" })); len(texts) > 0 {
		t.Errorf("a cache whose row was lost with a crash fails: %v", texts)
	}
	wantFailure(t, handle(func(n int) string { return fmt.Sprint("word ", n) }), "the row of key \"a\" is another one")
}

func TestBrokenBatches(t *testing.T) {
	run := func(handle stage.BatchHandler[string, total]) func(t testing.TB) {
		return func(t testing.TB) {
			stagetest.New(t, stagetest.Batch(words, handle), stagetest.Output(totals), stagetest.Table(jsonCodec[total]{}, firstTotal)).
				Run(stagetest.Message(words, "a", "one"), stagetest.Settled(), stagetest.Message(words, "a", "one"))
		}
	}
	changes := func(_ context.Context, b stage.Batch[string, total]) stage.BatchResult[total] {
		if row := b.Row("a"); row != nil {
			row.Count++
		}
		return stage.BatchResult[total]{Rows: map[string]*total{"a": {Word: "one"}}}
	}
	wantFailure(t, run(changes), "the stage changes the row", `of key "a"`)
	panics := func(context.Context, stage.Batch[string, total]) stage.BatchResult[total] { panic("ouch") }
	wantFailure(t, run(panics), "the handler of a batch panics: panic: the stage panicked: ouch")
	tooMany := func(context.Context, stage.Batch[string, total]) stage.BatchResult[total] {
		return stage.BatchResult[total]{Errors: map[int]error{1: errors.New("x")}}
	}
	wantFailure(t, run(tooMany), "an error of message 1, where the batch has 1")
}

// alarm is a row that wants to be acted on until its bell has come back.
type alarm struct{ Due, Done int }

func laterAlarm(a, b *alarm) *alarm { return &alarm{max(a.Due, b.Due), max(a.Done, b.Done)} }

var bells = topic[int]("bells")

func runAlarm(fire func(row *alarm) ([]stage.Output, error), bell func(row *alarm, n int) *alarm) func(t testing.TB) *stagetest.Run {
	return func(t testing.TB) *stagetest.Run {
		set := func(_ context.Context, m stage.Message[int], row *alarm) (stage.Result[alarm], error) {
			next := alarm{Due: m.Value}
			if row != nil {
				next = *laterAlarm(&next, row)
			}
			return stage.Result[alarm]{Row: &next}, nil
		}
		ring := func(_ context.Context, m stage.Message[int], row *alarm) (stage.Result[alarm], error) {
			return stage.Result[alarm]{Row: bell(row, m.Value), Outputs: []stage.Output{totals.Record(m.Key, total{"rang", m.Value})}}, nil
		}
		return stagetest.New(t, stagetest.Input(topic[int]("alarms"), set), stagetest.Input(bells, ring), stagetest.Table(jsonCodec[alarm]{}, laterAlarm),
			stagetest.Timer(stage.Timer[alarm]{
				Next: func(row *alarm) (time.Time, bool) { return time.Unix(int64(row.Due), 0), row.Due > row.Done },
				Fire: func(_ context.Context, _ string, row *alarm, valid func() bool) ([]stage.Output, error) {
					if !valid() {
						return nil, nil
					}
					return fire(row)
				},
			})).Run(
			stagetest.Message(topic[int]("alarms"), "a", 5),
			stagetest.Message(topic[int]("alarms"), "b", 0),
			stagetest.Message(topic[int]("alarms"), "c", 7).On(2),
		)
	}
}

func TestTimers(t *testing.T) {
	fire := func(row *alarm) ([]stage.Output, error) {
		return []stage.Output{bells.Record("a", row.Due), totals.Record("t", total{"fired", row.Due})}, nil
	}
	bell := func(row *alarm, n int) *alarm {
		if row == nil {
			row = &alarm{}
		}
		return &alarm{row.Due, n}
	}
	fireKey := func(row *alarm) ([]stage.Output, error) {
		outs, err := fire(row)
		if row.Due == 7 {
			outs[0].Key = []byte("c")
		}
		return outs, err
	}
	var run *stagetest.Run
	if texts := failures(t, func(t testing.TB) { run = runAlarm(fireKey, bell)(t) }); len(texts) > 0 {
		t.Fatalf("the good stage fails: %v", texts)
	}
	if got, want := fmt.Sprint(stagetest.Sent(run, totals)), "[{fired 5} {rang 5} {fired 7} {rang 7}]"; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	if row := stagetest.Row[alarm](run, "c"); *row != (alarm{7, 7}) {
		t.Errorf("the row is %+v", *row)
	}

	stays := func(row *alarm, _ int) *alarm { return row }
	wantFailure(t, func(t testing.TB) { runAlarm(fireKey, stays)(t) }, "it would fire for ever")
	next := func(row *alarm) ([]stage.Output, error) { // five, or seven, things are due at once
		return []stage.Output{bells.Record(map[int]string{5: "a", 7: "c"}[row.Due], row.Done+1)}, nil
	}
	done := func(row *alarm, n int) *alarm { return laterAlarm(&alarm{Done: n}, row) }
	if texts := failures(t, func(t testing.TB) { run = runAlarm(next, done)(t) }); len(texts) > 0 {
		t.Errorf("a row with several things due at once fails: %v", texts)
	}
	if row := stagetest.Row[alarm](run, "c"); *row != (alarm{7, 7}) {
		t.Errorf("the row is %+v", *row)
	}
	endless := func(row *alarm, n int) *alarm { return &alarm{row.Due, row.Done - n} }
	wantFailure(t, func(t testing.TB) { runAlarm(fireKey, endless)(t) }, "it would fire for ever")
	away := func(*alarm) ([]stage.Output, error) { return nil, stage.Outage("store", 0, errors.New("away")) }
	wantFailure(t, func(t testing.TB) { runAlarm(away, bell)(t) }, "the timer fails: store: away", `the timer of the row "a"`)
	changes := func(row *alarm) ([]stage.Output, error) {
		row.Done = row.Due
		return nil, nil
	}
	wantFailure(t, func(t testing.TB) { runAlarm(changes, bell)(t) }, "the stage changes the row")
	n := 0
	random := func(row *alarm) ([]stage.Output, error) {
		n++
		return []stage.Output{totals.Record("t", total{"fired", n})}, nil
	}
	wantFailure(t, func(t testing.TB) { runAlarm(random, bell)(t) }, "called twice")
}

func TestRunOfUnreadableValues(t *testing.T) {
	run := stagetest.New(t, stagetest.Input(words, count), stagetest.Table(jsonCodec[tally]{}, mergeTally)).
		Run(stagetest.Message(words, "Rhine", "water"))
	asNumber := topic[int](totals.Name)
	wantFailure(t, func(t testing.TB) {
		stagetest.Sent(stagetest.New(t, stagetest.Input(words, sendsRaw), stagetest.Output(totals)).Run(stagetest.Message(words, "k", "no JSON")), asNumber)
	}, "cannot be decoded")
	wantFailure(t, func(t testing.TB) {
		stagetest.Sent(stagetest.New(t, stagetest.Input(words, sendsRaw)).Run(stagetest.Message(words, "k", "")), totals)
	}, "a tombstone")
	if stagetest.Row[tally](run, "Elbe") != nil {
		t.Error("a row where there is none")
	}
}

// sendsRaw sends its message's text as it is, or a tombstone.
func sendsRaw(_ context.Context, m stage.Message[string], _ *total) (stage.Result[total], error) {
	out := stage.Output{Topic: totals.Name, Key: nil}
	if m.Value != "" {
		out.Value = []byte(m.Value)
	}
	return stage.Result[total]{Outputs: []stage.Output{out}}, nil
}
