package processors_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

func TestUnknownErrorsAskForARetry(t *testing.T) {
	run := chunkerKit(t, newChunker(), noRow).Run(document("doc", "m1", "passing"), document("doc", "m1", "passing"))
	want(t, run.Outputs(), "event chunker doc/m1@0.0 accepted", "verdict doc/m1@0.0 retrying chunker:transient:chunker_error")
	if row := stagetest.Row[ledger.ChunkerRow](run, "doc"); row.Latest != version(0) || len(row.Messages) != 1 {
		t.Errorf("the row is %+v", row)
	}
}

func TestOutagesAreNotTheDocumentsFault(t *testing.T) {
	c := newChunker()
	_, err := c.Handle(context.Background(), message(document("doc", "m1", "away")), nil)
	if stage.ClassOf(err) != stage.ClassOutage {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithDeadline(context.Background(), noon.Add(-time.Hour)) // the partition is lost
	defer cancel()
	if res, err := c.Handle(ctx, message(document("doc", "m1", "slow")), nil); err == nil || stage.ClassOf(err) == stage.ClassMessage {
		t.Errorf("a lost partition gives %v, %v", told(t, res.Outputs), err)
	}
}

// message is a step as a handler sees it.
func message(s stagetest.Step) stage.Message[[]byte] {
	var m stage.Message[[]byte]
	r := s.Record()
	m.Record, m.Key, m.Value, m.Tombstone, m.Committed = r, string(r.Key), r.Value, r.Value == nil, -1
	return m
}

func TestFailureHandler(t *testing.T) {
	c := newChunker()
	record := document("doc", "m1", "one").Record()
	fail := func(r stage.Record, class stage.Class, row *ledger.ChunkerRow) stage.Result[ledger.ChunkerRow] {
		t.Helper()
		res, err := c.OnFailure(context.Background(), r, class, &stage.Error{Class: class, Reason: "too_large", Err: errors.New("too many bytes")}, row)
		check(t, err)
		return res
	}
	res := fail(record, stage.ClassMessage, nil)
	want(t, res.Outputs, "event chunker doc/m1@0.0 accepted", "verdict doc/m1@0.0 dead chunker:message:too_large")
	if res.Row == nil || res.Row.Latest != version(0) {
		t.Errorf("the row is %+v", res.Row)
	}
	want(t, fail(record, stage.ClassMessage, res.Row).Outputs, told(t, res.Outputs)...) // its redelivery

	later := record
	later.Offset = 4
	if dup := fail(later, stage.ClassMessage, res.Row); len(dup.Outputs) != 0 {
		t.Errorf("a resend that fails gives %v", told(t, dup.Outputs))
	}
	later.Value = []byte("other content")
	reused := fail(later, stage.ClassTransient, res.Row)
	want(t, reused.Outputs, "event chunker doc/documents@3-1-4@4.0 accepted", "verdict doc/documents@3-1-4@4.0 retrying chunker:transient:too_large")
	old := record
	old.Headers = []stage.Header{header("message-id", "m0"), header("content-type", "text/plain")}
	if got := fail(old, stage.ClassMessage, reused.Row); len(got.Outputs) != 0 || got.Row != nil {
		t.Errorf("an old record that fails gives %v", told(t, got.Outputs))
	}

	noKey := stage.Record{Topic: "documents", Partition: 2, Offset: 9, Value: []byte("x")}
	got := fail(noKey, stage.ClassMessage, nil)
	want(t, got.Outputs, "event chunker documents@3-2-9/documents@3-2-9@9.0 accepted", "verdict documents@3-2-9/documents@3-2-9@9.0 dead chunker:message:too_large")
	if got.Row != nil {
		t.Errorf("a record without a key writes the row %+v", got.Row)
	}
}

func TestFailureOfAReplay(t *testing.T) {
	s := subject("doc", "m1", 5)
	s.Attempt = 1
	run := chunkerKit(t, newChunker(), noRow).Run(in(topics.Replays, "doc", replayOf(s, "passing")))
	want(t, run.Outputs(), "verdict doc/m1@5.0+1 retrying chunker:transient:chunker_error")
}

func TestOffsetsBeyondAVersionHoldThePartition(t *testing.T) {
	c := newChunker()
	far := document("doc", "m1", "one").Record()
	far.Offset = rag.MaxOffset + 1
	_, err := c.Handle(context.Background(), stage.Message[[]byte]{Record: far}, nil)
	if stage.ClassOf(err) != stage.ClassOutage || stage.ReasonOf(err, "") != "epoch" {
		t.Errorf("the error is %v", err)
	}
	if _, err := c.OnFailure(context.Background(), far, stage.ClassMessage, errors.New("x"), nil); stage.ClassOf(err) != stage.ClassOutage {
		t.Errorf("the failure handler's error is %v", err)
	}
	c.Place.Epoch = rag.MaxEpoch + 1
	near := document("doc", "m1", "one").Record()
	if _, err := c.Handle(context.Background(), stage.Message[[]byte]{Record: near, Committed: 0}, nil); stage.ClassOf(err) != stage.ClassOutage {
		t.Errorf("an epoch beyond the limit gives %v", err)
	}
}

// What a failure says travels in rows, events and letters: one bounded line, never a stack.
func TestSentences(t *testing.T) {
	c := newChunker()
	stack := string(debug.Stack())
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a panic with its stack":       {stage.Reject("panic", "the stage panicked: %v\n%s", "boom", stack), "the stage panicked: boom"},
		"wrapped":                      {fmt.Errorf("outer: %w", stage.Reject("panic", "boom\n%s", stack)), "boom"},
		"an outage around a panic":     {stage.Outage("batch", 0, stage.Reject("panic", "boom\n%s", stack)), "panic: boom"},
		"joined":                       {errors.Join(errors.New("first"), errors.New("second")), "first"},
		"lines of another system":      {errors.New("one\r\ntwo"), "one"},
		"without a cause":              {&stage.Error{Class: stage.ClassMessage, Reason: "odd"}, "odd"},
		"not UTF-8":                    {errors.New("a\xffb"), "a\uFFFDb"},
		"nothing but lines":            {errors.New("\n\nfirst words\nmore"), "first words"},
		"a service's answer of a page": {errors.New(strings.Repeat("ä", 1000)), strings.Repeat("ä", 512) + " …"},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := c.OnFailure(context.Background(), document("doc", "m1", "x").Record(), stage.ClassMessage, tc.err, nil)
			check(t, err)
			got := decode(t, topics.Progress, res.Outputs[1]).Failure.Message
			if got != tc.want || !utf8.ValidString(got) || strings.Contains(got, "goroutine") {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}

// The row of a document that changes every few seconds must not outgrow its record within the time for which ids are kept.
func TestRowIsBounded(t *testing.T) {
	c := newChunker()
	row := &ledger.ChunkerRow{Messages: map[string]ledger.Submission{}}
	for i := range int64(60_000) {
		row.Messages[fmt.Sprintf("%0250d", i)] = ledger.Submission{Version: version(i), At: noon}
		row.Latest = version(i)
	}
	r := document("doc", "new", "one").Record()
	r.Offset = 60_000
	res, err := c.Handle(context.Background(), stage.Message[[]byte]{Record: r, Key: "doc", Committed: 59_990}, row)
	check(t, err)
	b, err := topics.ChunkerTable.Codec.Encode(*res.Row)
	check(t, err)
	if len(b) > 8<<20 {
		t.Errorf("the row has %d messages in %d bytes", len(res.Row.Messages), len(b))
	}
	for i := int64(59_990); i <= 60_000; i++ { // what may come again is still known
		if id := fmt.Sprintf("%0250d", i); i < 60_000 && res.Row.Messages[id].Version != version(i) {
			t.Errorf("message %d is forgotten, although it is not committed", i)
		}
	}
}
