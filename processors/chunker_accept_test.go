package processors_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

func TestNewDocument(t *testing.T) {
	c := newChunker()
	run := chunkerKit(t, c, noRow).Run(
		document("doc", "m1", "one\ntwo", header("source", "https://example.org/x")),
		document("doc", "", "other"), // without a message id it has the foreign form of its position
	)
	want(t, run.Outputs(),
		"event chunker doc/m1@0.0 accepted",
		`chunk doc/m1@0.0 0/2 "one"`,
		`chunk doc/m1@0.0 1/2 "two"`,
		"manifest doc/m1@0.0 of 2",
		"event chunker doc/m1@0.0 chunked",
		"event chunker doc/documents@3-1-1@1.0 accepted",
		`chunk doc/documents@3-1-1@1.0 0/1 "other"`,
		"manifest doc/documents@3-1-1@1.0 of 1",
		"event chunker doc/documents@3-1-1@1.0 chunked",
	)
	chunk := stagetest.Sent(run, topics.Chunks)[1]
	wantChunk := rag.Chunk{Subject: subject("doc", "m1", 0), Index: 1, Count: 2, Text: "two", Start: 4, End: 7, Title: "Parsed title",
		Source: "https://example.org/x", Heading: "H", Page: 2}
	if fmt.Sprint(chunk) != fmt.Sprint(wantChunk) {
		t.Errorf("the chunk is %+v, want %+v", chunk, wantChunk)
	}
	manifest := stagetest.Sent(run, topics.Progress)[0]
	d := rag.Document{Content: []byte("one\ntwo"), ContentType: "text/plain", Source: "https://example.org/x"}
	if manifest.ContentIdentity != rag.ContentIdentity(d.SubmissionHash(), "settings") || !slices.Equal(manifest.Warnings, []string{"a warning"}) {
		t.Errorf("the manifest is %+v", manifest)
	}
	events := stagetest.Sent(run, topics.Events)
	if events[0].At.Equal(noon) || !events[1].At.Equal(noon) || events[1].Chunks != 2 {
		t.Errorf("accepted is said at the record's time, chunked at the clock's: %+v", events[:2])
	}
	row := stagetest.Row[ledger.ChunkerRow](run, "doc")
	if row.Latest != version(1) || len(row.Messages) != 2 || row.Messages["m1"].Version != version(0) {
		t.Errorf("the row is %+v", row)
	}
}

func TestOwnTitleWins(t *testing.T) {
	run := chunkerKit(t, newChunker(), noRow).Run(document("doc", "m1", "one", header("title", "Mine")))
	if got := stagetest.Sent(run, topics.Chunks)[0].Title; got != "Mine" {
		t.Errorf("the title is %q", got)
	}
}

func TestEqualTextsShareTheirKey(t *testing.T) {
	c := newChunker()
	run := chunkerKit(t, c, noRow).Run(document("a", "m", "same\nother"), document("b", "m", "same"))
	var keys []string
	for _, out := range run.Outputs() {
		if out.Topic == "chunks" {
			keys = append(keys, string(out.Key))
		}
	}
	if len(keys) != 3 || keys[0] != keys[2] || keys[0] == keys[1] {
		t.Errorf("the keys are %q", keys)
	}
}

func TestDuplicates(t *testing.T) {
	run := chunkerKit(t, newChunker(), noRow).Run(
		document("doc", "m1", "one"),
		document("doc", "m1", "one"), // a resend
		document("doc", "m2", "one"), // the same text is another submission
		document("doc", "m1", "one"),
		document("other", "m1", "one"), // an id is scoped to its document
	)
	want(t, run.Outputs(),
		"event chunker doc/m1@0.0 accepted", `chunk doc/m1@0.0 0/1 "one"`, "manifest doc/m1@0.0 of 1", "event chunker doc/m1@0.0 chunked",
		"event chunker doc/m2@2.0 accepted", `chunk doc/m2@2.0 0/1 "one"`, "manifest doc/m2@2.0 of 1", "event chunker doc/m2@2.0 chunked",
		"event chunker other/m1@4.0 accepted", `chunk other/m1@4.0 0/1 "one"`, "manifest other/m1@4.0 of 1", "event chunker other/m1@4.0 chunked",
	)
}

func TestReusedMessageID(t *testing.T) {
	run := chunkerKit(t, newChunker(), noRow).Run(
		document("doc", "m1", "one"),
		document("doc", "m1", "two"),
		document("doc", "m1", "one", header("title", "another title")), // title and source are part of what was submitted
	)
	want(t, run.Outputs()[4:],
		"event chunker doc/documents@3-1-1@1.0 accepted",
		"verdict doc/documents@3-1-1@1.0 dead chunker:message:message_id_reused",
		"event chunker doc/documents@3-1-2@2.0 accepted",
		"verdict doc/documents@3-1-2@2.0 dead chunker:message:message_id_reused",
	)
	row := stagetest.Row[ledger.ChunkerRow](run, "doc")
	if row.Messages["m1"].Version != version(0) || row.Latest != version(2) || len(row.Messages) != 3 {
		t.Errorf("the row is %+v", row)
	}
}

func TestDelete(t *testing.T) {
	partition := home([]byte("doc"))
	run := chunkerKit(t, newChunker(), noRow).Run(
		document("doc", "m1", "one"),
		stagetest.Raw(stage.Record{Topic: "documents", Partition: partition, Key: []byte("doc"), Headers: []stage.Header{header("message-id", "m2")}}),
	)
	want(t, run.Outputs()[4:], "event chunker doc/m2@1.0 accepted", "delete doc/m2@1.0")
}

func TestUnchanged(t *testing.T) {
	c := newChunker()
	join := func(r stage.Record) *ledger.DocumentRow {
		if r.Offset == 0 {
			return nil
		}
		return served(c, 0, "one")
	}
	run := chunkerKit(t, c, join).Run(
		document("doc", "m1", "one"),
		stagetest.Settled(),
		document("doc", "m2", "one"),
	)
	want(t, run.Outputs()[4:], "event chunker doc/m2@1.0 accepted", "verdict doc/m2@1.0 unchanged")
	verdict := stagetest.Sent(run, topics.Progress)[1]
	if verdict.Base != version(0) || verdict.ContentIdentity != served(c, 0, "one").Served.ContentIdentity {
		t.Errorf("the verdict is %+v", verdict)
	}
}

func TestNotUnchanged(t *testing.T) {
	processed := func(id string) []string {
		return []string{"event chunker doc/" + id + " accepted", "chunk doc/" + id + ` 0/1 "one"`, "manifest doc/" + id + " of 1", "event chunker doc/" + id + " chunked"}
	}
	c := newChunker()
	deleted := &ledger.DocumentRow{Applied: version(9), Fence: version(0), Served: ledger.Served{Revision: revision(0, 0)}}
	for name, join := range map[string]*ledger.DocumentRow{
		"other content is served": served(c, 0, "two"),
		"the document is deleted": deleted,
		"nothing is served":       {Applied: version(3)},
	} {
		t.Run(name, func(t *testing.T) {
			run := chunkerKit(t, c, func(stage.Record) *ledger.DocumentRow { return join }).Run(document("doc", "m2", "one").Offset(1))
			want(t, run.Outputs(), processed("m2@1.0")...)
		})
	}
	t.Run("other settings", func(t *testing.T) {
		c, old := newChunker(), newChunker()
		old.Settings = "older settings"
		run := chunkerKit(t, c, func(stage.Record) *ledger.DocumentRow { return served(old, 0, "one") }).Run(document("doc", "m2", "one").Offset(1))
		want(t, run.Outputs(), processed("m2@1.0")...)
	})
}

// What was accepted above the fence counts, even if the joined row shows an older state.
func TestUnchangedOnlyAgainstTheLatest(t *testing.T) {
	c := newChunker()
	join := func(stage.Record) *ledger.DocumentRow { return served(c, 0, "one") }
	run := chunkerKit(t, c, join).Run(
		document("doc", "m1", "two").Offset(1),
		document("doc", "m2", "one"),
	)
	want(t, run.Outputs()[4:],
		"event chunker doc/m2@2.0 accepted", `chunk doc/m2@2.0 0/1 "one"`, "manifest doc/m2@2.0 of 1", "event chunker doc/m2@2.0 chunked")
}

func TestSuperseded(t *testing.T) {
	c := newChunker()
	join := func(stage.Record) *ledger.DocumentRow { return served(c, 5, "later") }
	run := chunkerKit(t, c, join).Run(document("doc", "m1", "one"))
	want(t, run.Outputs(), "event chunker doc/m1@0.0 accepted", "verdict doc/m1@0.0 superseded")
}

func TestWhatIsBelowTheLatestIsOld(t *testing.T) {
	// An operator has reset the offsets, and the ids were forgotten since.
	c := newChunker()
	row := &ledger.ChunkerRow{Latest: version(7), Forgotten: version(6), Messages: map[string]ledger.Submission{"m9": {Version: version(7)}}}
	m := stage.Message[[]byte]{Record: stage.Record{Topic: "documents", Partition: home([]byte("doc")), Offset: 3, Key: []byte("doc"), Value: []byte("x"),
		Headers: []stage.Header{header("message-id", "m1"), header("content-type", "text/plain")}}}
	res, err := c.Handle(context.Background(), m, row)
	check(t, err)
	if len(res.Outputs) != 0 || res.Row != nil {
		t.Errorf("an old record gives %v and the row %+v", told(t, res.Outputs), res.Row)
	}
}

// inOneParent gives the pieces of lines one parent, the whole text.
type inOneParent struct{ lines }

func (s inOneParent) Split(ctx context.Context, text string, blocks []rag.Block) ([]split.Piece, error) {
	pieces, err := s.lines.Split(ctx, text, blocks)
	for i := range pieces {
		pieces[i].Parent = split.Span{End: len(text)}
	}
	return pieces, err
}

func TestChunksCarryTheirParent(t *testing.T) {
	c := newChunker()
	c.Reader = read.New(read.Options{Parser: &fakeParser{}, Splitter: inOneParent{}})
	for i, chunk := range stagetest.Sent(chunkerKit(t, c, noRow).Run(document("doc", "m1", "one\ntwo")), topics.Chunks) {
		if chunk.Parent != (rag.Parent{End: 7, Text: "one\ntwo"}) || chunk.Text != []string{"one", "two"}[i] || chunk.Index != i || chunk.Count != 2 {
			t.Errorf("chunk %d is %+v", i, chunk)
		}
	}
}
