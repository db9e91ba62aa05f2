package processors_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// fakeParser takes text as it is; some texts name what goes wrong.
type fakeParser struct{ calls int }

var errPassing = errors.New("passing")

func (p *fakeParser) Parse(ctx context.Context, in parse.Input) (parse.Text, error) {
	p.calls++
	text := string(in.Content)
	switch text {
	case "panic":
		panic("a broken invariant\nwith a second line")
	case "slow":
		<-ctx.Done()
		return parse.Text{}, ctx.Err()
	case "passing":
		return parse.Text{}, errPassing
	case "away":
		return parse.Text{}, stage.Outage("blobs", 0, errPassing)
	case "scan":
		return parse.Text{}, &parse.Error{Reason: rag.ReasonNoText, Message: "it is a scan"}
	}
	return parse.Text{Title: "Parsed title", Body: text, Type: parse.TypePlain, Warnings: []string{"a warning"}}, nil
}

// lines makes a piece of each line.
type lines struct{ most int }

func (l lines) Split(_ context.Context, text string, _ []rag.Block) ([]split.Piece, error) {
	var pieces []split.Piece
	for start := 0; start < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[start:], '\n'); n >= 0 {
			end = start + n
		}
		if end > start {
			pieces = append(pieces, split.Piece{Start: start, End: end, Heading: "H", Page: 2})
		}
		start = end + 1
	}
	if l.most > 0 && len(pieces) > l.most {
		return nil, &split.Error{Reason: rag.ReasonTooManyChunks, Message: "too many"}
	}
	return pieces, nil
}

func (l lines) Settings() string { return "lines" }

func newChunker() *processors.Chunker {
	return &processors.Chunker{Topics: topics, Place: place, Settings: "settings",
		Reader: read.New(read.Options{Parser: &fakeParser{}, Splitter: lines{}, Time: 30 * time.Second}),
		Model:  "model", ModelSettings: "dims", Keep: ledger.DefaultKeep, Now: now}
}

// noRow is a joined table without rows.
func noRow(stage.Record) *ledger.DocumentRow { return nil }

func chunkerKit(t testing.TB, c *processors.Chunker, join func(stage.Record) *ledger.DocumentRow) *stagetest.Kit {
	t.Helper()
	return stagetest.New(t,
		stagetest.Input(topics.Documents, c.Handle),
		stagetest.Input(topics.Replays, c.HandleReplay),
		stagetest.Join(topics.IndexerTable, join),
		stagetest.Output(topics.Chunks),
		stagetest.Output(topics.Progress),
		stagetest.Output(topics.Events),
		stagetest.Table(topics.ChunkerTable.Codec, ledger.MergeChunkerRow),
		stagetest.OnFailure(c.OnFailure),
	)
}

// served is a document row that serves the version at an offset, of the given text.
func served(c *processors.Chunker, offset int64, text string) *ledger.DocumentRow {
	d := rag.Document{Content: []byte(text), ContentType: "text/plain"}
	return &ledger.DocumentRow{Applied: version(offset), Fence: version(offset),
		Served: ledger.Served{Revision: revision(offset, 0), Count: 1, ContentIdentity: rag.ContentIdentity(d.SubmissionHash(), c.Settings)}}
}
