package processors_test

import (
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

func newDeadLetters() *processors.DeadLetters {
	return &processors.DeadLetters{Topics: topics, Place: place, Now: now}
}

func deadLettersKit(t testing.TB) *stagetest.Kit {
	t.Helper()
	d := newDeadLetters()
	return stagetest.New(t,
		stagetest.Input(topics.DeadLetters, d.HandleLetter),
		stagetest.Input(topics.Commands, d.HandleCommand),
		stagetest.Output(topics.Replays),
		stagetest.Table(topics.DeadLettersTable.Codec, ledger.MergeLetterRow),
		stagetest.Timer(d.Retries()),
	)
}

var (
	letterSubject  = subject("doc", "m1", 5)
	letterID       = positionOf(letterSubject).String()
	letterOriginal = rag.Raw{Key: []byte("doc"), Value: []byte("the bytes\x00\xff"), Headers: []rag.Header{{Key: []byte("h"), Value: nil}}, Timestamp: noon.Add(-time.Hour)}
	letterFailure  = rag.Failure{Stage: "indexer", Class: rag.ClassMessage, Reason: rag.ReasonStoreRefused, Message: "no"}
)

// letter is the record of a version that died.
func letter(s rag.Subject) stagetest.Step {
	key, value, headers := wire.LetterRecord(rag.Letter{ID: letterID, Subject: s, Position: positionOf(letterSubject), Failure: letterFailure,
		Original: letterOriginal, FirstFailed: noon, LastFailed: noon})
	return stagetest.Raw(stage.Record{Topic: "dead-letters", Key: key, Value: value, Headers: headers})
}

func command(kind rag.CommandKind, s rag.Subject) stagetest.Step {
	c := rag.Command{Kind: kind, LetterID: letterID, Subject: s, At: noon, Position: positionOf(letterSubject)}
	switch kind {
	case rag.CommandSchedule:
		f := letterFailure
		c.Due, c.Original, c.Failure, c.Status = noon.Add(time.Minute), letterOriginal, &f, rag.StatusRetrying
	case rag.CommandClose:
		c.Status = rag.StatusIndexed
	case rag.CommandDiscard:
		c.Reason = "a test document"
	}
	return stagetest.Message(topics.Commands, letterID, c)
}

func rowOfLetter(run *stagetest.Run) *ledger.LetterRow {
	return stagetest.Row[ledger.LetterRow](run, letterID)
}

func wantState(t testing.TB, run *stagetest.Run, state rag.LetterState) {
	t.Helper()
	if row := rowOfLetter(run); row == nil || row.State != state {
		t.Errorf("the letter is %+v, want %s", row, state)
	}
}

func TestLetterIsKept(t *testing.T) {
	run := deadLettersKit(t).Run(letter(attempt(letterSubject, 2)), letter(attempt(letterSubject, 2)))
	want(t, run.Outputs())
	wantState(t, run, rag.LetterWaiting)
	row := rowOfLetter(run)
	wantRaw(t, row.Original, letterOriginal)
	if row.Attempts != 3 || row.Failure != letterFailure || row.Position != positionOf(letterSubject) {
		t.Errorf("the row is %+v", row)
	}
}

// A scheduled retry goes out by a record of the group's own: due, then the replay, with the attempt and the bytes.
func TestScheduledRetryGoesOut(t *testing.T) {
	first := attempt(letterSubject, 1)
	run := deadLettersKit(t).Run(command(rag.CommandSchedule, first))
	want(t, run.Outputs(), "due "+letterID+" doc/m1@5.0+1", "replay doc/m1@5.0+1")
	wantState(t, run, rag.LetterSent)
	replay := stagetest.Sent(run, topics.Replays)[0]
	wantRaw(t, replay.Original, letterOriginal)
	if replay.Position != positionOf(letterSubject) || string(run.Outputs()[1].Key) != "doc" {
		t.Errorf("the replay is %+v with the key %q", replay, run.Outputs()[1].Key)
	}
}

func TestTimeOfARetry(t *testing.T) {
	timer := newDeadLetters().Retries()
	row := &ledger.LetterRow{ID: letterID, State: rag.LetterScheduled, Due: noon.Add(time.Minute)}
	if at, ok := timer.Next(row); !ok || !at.Equal(noon.Add(time.Minute)) {
		t.Errorf("due at %v, %v", at, ok)
	}
	for _, state := range []rag.LetterState{rag.LetterWaiting, rag.LetterSent, rag.LetterReplaying, rag.LetterResolved, rag.LetterDiscarded} {
		row.State = state
		if _, ok := timer.Next(row); ok {
			t.Errorf("a letter that is %s is due", state)
		}
	}
	outs, err := timer.Fire(t.Context(), letterID, row, func() bool { return false })
	if len(outs) != 0 || err != nil {
		t.Errorf("a partition that is lost sends %v, %v", told(t, outs), err)
	}
}

func TestRetriesUntilTheEnd(t *testing.T) {
	one, two := attempt(letterSubject, 1), attempt(letterSubject, 2)
	due := func(s rag.Subject) stagetest.Step { return command(rag.CommandDue, s) }
	run := deadLettersKit(t).Run(
		command(rag.CommandSchedule, one), stagetest.Settled(), due(one), stagetest.Settled(),
		command(rag.CommandSchedule, one), // said again
		due(one),                          // and fired again
		stagetest.Settled(),
		command(rag.CommandSchedule, two), stagetest.Settled(), due(two), stagetest.Settled(),
		letter(two),
	)
	want(t, run.Outputs(), "replay doc/m1@5.0+1", "replay doc/m1@5.0+2")
	wantState(t, run, rag.LetterWaiting)
	if row := rowOfLetter(run); row.Attempts != 3 {
		t.Errorf("counts %d attempts, want 3", row.Attempts)
	}
}

func TestCloseBeforeTheRetryIsDue(t *testing.T) {
	run := deadLettersKit(t).Run(command(rag.CommandSchedule, attempt(letterSubject, 1)), command(rag.CommandClose, attempt(letterSubject, 1)), command(rag.CommandDue, attempt(letterSubject, 1)))
	want(t, run.Outputs())
	wantState(t, run, rag.LetterResolved)
	if row := rowOfLetter(run); row.Original.Value != nil {
		t.Errorf("what never was a dead letter keeps the document %q", row.Original.Value)
	}
}

func TestReplayOnCommand(t *testing.T) {
	replayed := generation(letterSubject, 1)
	replay := command(rag.CommandReplay, letterSubject)
	run := deadLettersKit(t).Run(letter(attempt(letterSubject, 2)), stagetest.Settled(), replay)
	want(t, run.Outputs(), "replay doc/m1@5.1")
	wantState(t, run, rag.LetterReplaying)

	// While it runs, and after it has succeeded, it is refused; after another failure it is not.
	run = deadLettersKit(t).Run(letter(letterSubject), stagetest.Settled(), replay, stagetest.Settled(), replay)
	want(t, run.Outputs(), "replay doc/m1@5.1")
	run = deadLettersKit(t).Run(letter(letterSubject), stagetest.Settled(), replay, stagetest.Settled(), command(rag.CommandClose, replayed), replay)
	want(t, run.Outputs(), "replay doc/m1@5.1")
	wantState(t, run, rag.LetterResolved)
	run = deadLettersKit(t).Run(letter(letterSubject), stagetest.Settled(), replay, stagetest.Settled(), letter(replayed), stagetest.Settled(), command(rag.CommandReplay, replayed))
	want(t, run.Outputs(), "replay doc/m1@5.1", "replay doc/m1@5.2")
	if row := rowOfLetter(run); row.Attempts != 2 {
		t.Errorf("counts %d attempts, want 2", row.Attempts)
	}

	// Two asked for the replay of one failure: what the first one came to is not the second one's to replay.
	run = deadLettersKit(t).Run(letter(letterSubject), stagetest.Settled(), replay, stagetest.Settled(), letter(replayed), stagetest.Settled(), replay)
	want(t, run.Outputs(), "replay doc/m1@5.1")
	wantState(t, run, rag.LetterWaiting)
}

// The redelivery of a command repeats its replay: the first one may never have been sent. Another command does not.
func TestRedeliveryOfACommandRepeatsTheReplay(t *testing.T) {
	d := newDeadLetters()
	row := &ledger.LetterRow{ID: letterID, Subject: letterSubject, State: rag.LetterWaiting, Position: positionOf(letterSubject), Original: letterOriginal}
	m := stage.Message[rag.Command]{Record: stage.Record{Topic: "commands", Offset: 7}, Key: letterID, Value: rag.Command{Kind: rag.CommandReplay, LetterID: letterID, Subject: letterSubject}}
	for i := range 3 {
		res, err := d.HandleCommand(t.Context(), m, row)
		check(t, err)
		want(t, res.Outputs, "replay doc/m1@5.1")
		if res.Row == nil {
			t.Fatalf("delivery %d writes no row", i)
		}
		row = res.Row
	}
	m.Record.Offset++
	res, err := d.HandleCommand(t.Context(), m, row)
	check(t, err)
	want(t, res.Outputs)
}

func TestReplayWithoutALetterOrItsBytes(t *testing.T) {
	want(t, deadLettersKit(t).Run(command(rag.CommandReplay, letterSubject)).Outputs())
	lost := rag.Letter{ID: letterID, Subject: letterSubject, Position: positionOf(letterSubject), Failure: letterFailure, Lost: "it is gone", LastFailed: noon}
	key, value, headers := wire.LetterRecord(lost)
	run := deadLettersKit(t).Run(stagetest.Raw(stage.Record{Topic: "dead-letters", Key: key, Value: value, Headers: headers}), command(rag.CommandReplay, letterSubject))
	want(t, run.Outputs())
	wantState(t, run, rag.LetterWaiting)
}

func TestDiscard(t *testing.T) {
	discard := command(rag.CommandDiscard, letterSubject)
	run := deadLettersKit(t).Run(letter(letterSubject), discard, command(rag.CommandReplay, letterSubject))
	want(t, run.Outputs())
	wantState(t, run, rag.LetterDiscarded)
	if row := rowOfLetter(run); row.Reason != "a test document" {
		t.Errorf("the reason is %q", row.Reason)
	}
	run = deadLettersKit(t).Run(letter(letterSubject), stagetest.Settled(), command(rag.CommandReplay, letterSubject), stagetest.Settled(), discard)
	wantState(t, run, rag.LetterReplaying)
}

// The record of a letter has a document near the limit of its topics: what is kept of it must fit into the table, and a
// replay into its topic.
func TestLargestLetterFitsEverywhere(t *testing.T) {
	const limit = 13 << 20
	w := newIndexer()
	w.MaxLetterBytes = limit
	raw := rag.Raw{Key: []byte("doc"), Value: make([]byte, limit-32<<10-60_000*11-3), Timestamp: noon}
	for range 60_000 {
		raw.Headers = append(raw.Headers, rag.Header{Key: []byte("h"), Value: []byte{}})
	}
	s := subject("doc", strings.Repeat("m", rag.MaxMessageIDBytes), 5)
	w.keeps(s, raw)
	m := stage.Message[rag.Progress]{Record: stage.Record{Topic: "progress"}, Key: "doc", Value: rag.Progress{Kind: rag.ProgressVerdict, Subject: s, At: noon,
		Status: rag.StatusDead, Failure: &rag.Failure{Stage: "chunker", Class: rag.ClassMessage, Reason: "r", Message: strings.Repeat("s", 1<<10)}}}
	res, err := w.Handle(t.Context(), m, nil)
	check(t, err)
	out := res.Said[1]
	if l, err := wire.DecodeLetter(out.Key, out.Value, out.Headers, noon); err != nil || l.Lost != "" {
		t.Fatalf("the letter is not at the limit: %q, %v", l.Lost, err)
	}
	fits := func(what string, out stage.Output) {
		t.Helper()
		if n := recordSize(out); out.Err != nil || n > limit-producerMargin {
			t.Errorf("%s has %d bytes, %v", what, n, out.Err)
		}
	}
	fits("the letter", out)
	d := newDeadLetters()
	kept, err := d.HandleLetter(t.Context(), stage.Message[[]byte]{Record: stage.Record{Key: out.Key, Value: out.Value, Headers: out.Headers}}, nil)
	check(t, err)
	fits("the row", topics.DeadLettersTable.Record(string(out.Key), *kept.Row))
	replayed, err := d.HandleCommand(t.Context(), stage.Message[rag.Command]{Record: stage.Record{Topic: "commands"}, Key: string(out.Key),
		Value: rag.Command{Kind: rag.CommandReplay, LetterID: string(out.Key), Subject: s}}, kept.Row)
	check(t, err)
	fits("the replay", replayed.Outputs[0])
	m.Value.Status = rag.StatusRetrying
	res, err = w.Handle(t.Context(), m, nil)
	check(t, err)
	fits("the schedule", res.Said[1])
}

func TestForeignLettersAndCommandsAreIgnored(t *testing.T) {
	run := deadLettersKit(t).Run(
		stagetest.Raw(stage.Record{Topic: "dead-letters", Key: []byte(letterID), Value: []byte("x")}),
		stagetest.Tombstone("dead-letters", letterID),
		stagetest.Raw(stage.Record{Topic: "commands", Key: []byte(letterID), Value: []byte("no command")}),
		stagetest.Tombstone("commands", letterID),
		stagetest.Message(topics.Commands, "another letter", rag.Command{Kind: rag.CommandSchedule, LetterID: letterID, Subject: letterSubject, Original: letterOriginal, Due: noon}),
	)
	want(t, run.Outputs())
	if rowOfLetter(run) != nil || stagetest.Row[ledger.LetterRow](run, "another letter") != nil {
		t.Error("a row was written")
	}
}

func TestCommandsBeyondAVersionHoldThePartition(t *testing.T) {
	m := stage.Message[rag.Command]{Record: stage.Record{Topic: "commands", Offset: rag.MaxOffset + 1}, Key: letterID, Value: rag.Command{Kind: rag.CommandReplay, LetterID: letterID}}
	if _, err := newDeadLetters().HandleCommand(t.Context(), m, nil); stage.ClassOf(err) != stage.ClassOutage {
		t.Errorf("the error is %v", err)
	}
}
