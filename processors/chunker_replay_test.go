package processors_test

import (
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// replayOf is a replay of the version at offset 5 of "doc".
func replayOf(s rag.Subject, text string) rag.Replay {
	return rag.Replay{Subject: s, Position: rag.Position{Topic: "documents", Epoch: epoch, Partition: s.Partition, Offset: 5},
		Original: rag.Raw{Key: []byte("doc"), Value: []byte(text), Timestamp: noon, Headers: []rag.Header{
			{Key: []byte("message-id"), Value: []byte("m1")}, {Key: []byte("content-type"), Value: []byte("text/plain")}}}}
}

func TestReplays(t *testing.T) {
	attempt, generation, both := subject("doc", "m1", 5), subject("doc", "m1", 5), subject("doc", "m1", 5)
	attempt.Attempt, generation.Revision.Generation = 1, 1
	both.Revision.Generation, both.Attempt = 2, 2
	for name, tc := range map[string]struct {
		subject rag.Subject
		who     string
	}{
		"a retry":             {attempt, "doc/m1@5.0+1"},
		"a replay":            {generation, "doc/m1@5.1"},
		"a retry of a replay": {both, "doc/m1@5.2+2"},
	} {
		t.Run(name, func(t *testing.T) {
			run := chunkerKit(t, newChunker(), noRow).Run(in(topics.Replays, "doc", replayOf(tc.subject, "one\ntwo")))
			want(t, run.Outputs(),
				"chunk "+tc.who+` 0/2 "one"`, "chunk "+tc.who+` 1/2 "two"`, "manifest "+tc.who+" of 2", "event chunker "+tc.who+" chunked")
			if row := stagetest.Row[ledger.ChunkerRow](run, "doc"); row != nil {
				t.Errorf("a replay writes the row %+v", row)
			}
		})
	}
}

func TestReplayLeavesTheRowAlone(t *testing.T) {
	s := subject("doc", "m1", 0)
	s.Revision.Generation = 1
	run := chunkerKit(t, newChunker(), noRow).Run(
		document("doc", "m1", "one"),
		stagetest.Settled(),
		in(topics.Replays, "doc", replayOf(s, "one")),
		document("doc", "m1", "one"), // still a duplicate
	)
	if got := len(run.Outputs()); got != 4+3 {
		t.Errorf("sent %v", told(t, run.Outputs()))
	}
	if row := stagetest.Row[ledger.ChunkerRow](run, "doc"); row.Latest != version(0) || len(row.Messages) != 1 {
		t.Errorf("the row is %+v", row)
	}
}

func TestReplayBelowTheFence(t *testing.T) {
	c := newChunker()
	s := subject("doc", "m1", 5)
	s.Revision.Generation = 1
	for name, tc := range map[string]struct {
		fence int64
		lines []string
	}{
		"below": {6, []string{"verdict doc/m1@5.1 superseded"}},
		"at it": {5, []string{`chunk doc/m1@5.1 0/1 "one"`, "manifest doc/m1@5.1 of 1", "event chunker doc/m1@5.1 chunked"}},
	} {
		t.Run(name, func(t *testing.T) {
			join := func(stage.Record) *ledger.DocumentRow {
				return &ledger.DocumentRow{Applied: version(9), Fence: version(tc.fence)}
			}
			want(t, chunkerKit(t, c, join).Run(in(topics.Replays, "doc", replayOf(s, "one"))).Outputs(), tc.lines...)
		})
	}
}

func TestReplayOfADelete(t *testing.T) {
	r := replayOf(subject("doc", "m1", 5), "")
	r.Original.Value, r.Attempt = nil, 1
	want(t, chunkerKit(t, newChunker(), noRow).Run(in(topics.Replays, "doc", r)).Outputs(), "delete doc/m1@5.0+1")
}

func TestReplayThatDiesAgain(t *testing.T) {
	s := subject("doc", "m1", 5)
	s.Revision.Generation = 1
	for text, reason := range map[string]string{"scan": "no_text", "panic": "panic"} {
		want(t, chunkerKit(t, newChunker(), noRow).Run(in(topics.Replays, "doc", replayOf(s, text))).Outputs(), "verdict doc/m1@5.1 dead chunker:message:"+reason)
	}
}

// A document without a usable key dies in every generation under the same ids.
func TestReplayOfADocumentWithoutAKey(t *testing.T) {
	id := "documents@3-2-5"
	s := rag.Subject{DocumentID: id, MessageID: id, Revision: revision(5, 1), Partition: 2}
	r := rag.Replay{Subject: s, Position: rag.Position{Topic: "documents", Epoch: epoch, Partition: 2, Offset: 5}, Original: rag.Raw{Value: []byte("x"), Timestamp: noon}}
	want(t, chunkerKit(t, newChunker(), noRow).Run(in(topics.Replays, id, r)).Outputs(), "verdict "+id+"/"+id+"@5.1 dead chunker:message:no_key")
}

// A schedule whose record had gone from the log brings nothing to process; that is not the fault of a missing key.
func TestReplayWithoutTheRecord(t *testing.T) {
	r := replayOf(subject("doc", "m1", 5), "")
	r.Original, r.Attempt = rag.Raw{}, 1
	run := chunkerKit(t, newChunker(), noRow).Run(in(topics.Replays, "doc", r))
	want(t, run.Outputs(), "verdict doc/m1@5.0+1 dead chunker:message:record_lost")
}

func TestUnreadableReplaysAreIgnored(t *testing.T) {
	run := chunkerKit(t, newChunker(), noRow).Run(
		stagetest.Raw(stage.Record{Topic: "replays", Key: []byte("doc"), Value: []byte("no replay")}),
		stagetest.Tombstone("replays", "doc"),
	)
	want(t, run.Outputs())
}
