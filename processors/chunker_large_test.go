package processors_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/blob"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// fakeBlobs is a blob store in memory.
type fakeBlobs struct {
	content map[rag.Hash]string
	open    error // what opening ends in; nil: none
	reading error // what reading ends in, instead of the end
	opened  int
}

func (b *fakeBlobs) Open(_ context.Context, ref rag.Blob) (io.ReadCloser, error) {
	b.opened++
	content, ok := b.content[ref.SHA256]
	switch {
	case b.open != nil:
		return nil, b.open
	case !ok:
		return nil, fmt.Errorf("%w: %s", blob.ErrMissing, ref.Key())
	case b.reading != nil:
		return io.NopCloser(io.MultiReader(strings.NewReader(content), iotest.ErrReader(b.reading))), nil
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

func (b *fakeBlobs) Canary(context.Context) error { return b.open }

// byReference is a document record whose content the blobs hold.
func (b *fakeBlobs) byReference(id, messageID, content string) stage.Record {
	ref := rag.NewBlob(now(), sha256.Sum256([]byte(content)), int64(len(content)))
	if b.content == nil {
		b.content = map[rag.Hash]string{}
	}
	b.content[ref.SHA256] = content
	key, value, headers := wire.DocumentRecord(rag.Document{ID: id, MessageID: messageID, Blob: &ref}, true)
	return stage.Record{Topic: "documents", Partition: home(key), Key: key, Value: value, Headers: headers}
}

func chunkerWithBlobs() (*processors.Chunker, *fakeBlobs) {
	c, b := newChunker(), &fakeBlobs{}
	c.Blobs = b
	return c, b
}

func TestDocumentByReference(t *testing.T) {
	c, b := chunkerWithBlobs()
	run := chunkerKit(t, c, noRow).Run(stagetest.Raw(b.byReference("doc", "m1", "one\ntwo")))
	want(t, run.Outputs(), "event chunker doc/m1@0.0 accepted", `chunk doc/m1@0.0 0/2 "one"`, `chunk doc/m1@0.0 1/2 "two"`, "manifest doc/m1@0.0 of 2", "event chunker doc/m1@0.0 chunked")
}

// Chunks too many to be held at once come one by one, and are the same as others; delivered again they are sent again.
func TestDocumentOfManyChunks(t *testing.T) {
	const n = 2000
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	c, b := chunkerWithBlobs()
	record := b.byReference("doc", "m1", text.String())
	res, err := c.Handle(t.Context(), stage.Message[[]byte]{Record: record, Key: "doc", Value: record.Value, Committed: -1}, nil)
	check(t, err)
	if res.More == nil || len(res.Outputs) != 1 {
		t.Fatalf("%d outputs are held at once", len(res.Outputs))
	}
	for range 2 {
		var chunks []rag.Chunk
		var manifest rag.Progress
		check(t, res.More(t.Context(), func(out stage.Output) error {
			switch out.Topic {
			case topics.Chunks.Name:
				chunk, err := topics.Chunks.Codec.Decode(out.Value)
				chunks = append(chunks, chunk)
				return err
			case topics.Progress.Name:
				var err error
				manifest, err = topics.Progress.Codec.Decode(out.Value)
				return err
			}
			return out.Err
		}))
		if len(chunks) != n || manifest.Count != n || chunks[n-1].Text != fmt.Sprintf("line %d", n-1) || chunks[n-1].Index != n-1 || chunks[0].Count != n {
			t.Errorf("%d chunks, the last one %+v, manifest of %d", len(chunks), chunks[len(chunks)-1], manifest.Count)
		}
	}
	stop := errors.New("enough")
	if err := res.More(t.Context(), func(stage.Output) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}

func TestBlobThatIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fakeBlobs)
		reason string
	}{
		"missing": {func(b *fakeBlobs) { clear(b.content) }, rag.ReasonBlobMissing},
		"corrupt": {func(b *fakeBlobs) { b.reading = fmt.Errorf("%w: other bytes", blob.ErrCorrupt) }, rag.ReasonBlobCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			c, b := chunkerWithBlobs()
			record := b.byReference("doc", "m1", "one\ntwo")
			tc.change(b)
			run := chunkerKit(t, c, noRow).Run(stagetest.Raw(record))
			want(t, run.Outputs(), "event chunker doc/m1@0.0 accepted", "verdict doc/m1@0.0 dead chunker:message:"+tc.reason)
		})
	}
}

// A store that is away costs time: no document dies of it, at whichever of its steps.
func TestBlobStoreThatIsAway(t *testing.T) {
	away := errors.New("connection refused")
	for name, change := range map[string]func(*processors.Chunker, *fakeBlobs){
		"opening":           func(_ *processors.Chunker, b *fakeBlobs) { b.open = away },
		"reading":           func(_ *processors.Chunker, b *fakeBlobs) { b.reading = away },
		"cut midway":        func(_ *processors.Chunker, b *fakeBlobs) { b.reading = fmt.Errorf("read: %w", io.ErrUnexpectedEOF) },
		"cut, as its end":   func(_ *processors.Chunker, b *fakeBlobs) { b.reading = fmt.Errorf("read: %w", io.EOF) },
		"its own time over": func(_ *processors.Chunker, b *fakeBlobs) { b.reading = context.DeadlineExceeded },
		"not configured":    func(c *processors.Chunker, _ *fakeBlobs) { c.Blobs = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c, b := chunkerWithBlobs()
			record := b.byReference("doc", "m1", "one\ntwo")
			change(c, b)
			_, err := c.Handle(t.Context(), stage.Message[[]byte]{Record: record, Key: "doc", Value: record.Value, Committed: -1}, nil)
			if stage.ClassOf(err) != stage.ClassOutage || stage.ReasonOf(err, "") != processors.DependencyBlobs {
				t.Errorf("error %v of class %v", err, stage.ClassOf(err))
			}
		})
	}
}

func TestCanaryOfTheBlobStore(t *testing.T) {
	c, b := chunkerWithBlobs()
	if err := c.Canary(t.Context(), processors.DependencyBlobs); err != nil {
		t.Error(err)
	}
	if c.Canary(t.Context(), "epoch") == nil {
		t.Error("another outage is over because the blob store is there")
	}
	b.open = errors.New("away")
	if c.Canary(t.Context(), processors.DependencyBlobs) == nil {
		t.Error("the store is away")
	}
	c.Blobs = nil
	if c.Canary(t.Context(), processors.DependencyBlobs) == nil {
		t.Error("there is no store")
	}
}

// A duplicate, an unchanged or an old version is told from its record alone: its content is not read.
func TestDuplicateByReferenceIsNotRead(t *testing.T) {
	c, b := chunkerWithBlobs()
	run := chunkerKit(t, c, noRow).Run(stagetest.Raw(b.byReference("doc", "m1", "one")))
	row := stagetest.Row[ledger.ChunkerRow](run, "doc")
	before := b.opened
	again := b.byReference("doc", "m1", "one")
	again.Offset = 7
	res, err := c.Handle(t.Context(), stage.Message[[]byte]{Record: again, Key: "doc", Value: again.Value, Committed: -1}, row)
	check(t, err)
	if len(res.Outputs) > 0 || b.opened != before {
		t.Errorf("%d outputs, opened %d times", len(res.Outputs), b.opened-before)
	}
}

// many is a parser that warns of everything.
type many struct{}

func (many) Parse(context.Context, parse.Input) (parse.Text, error) {
	warnings := make([]string, 1000)
	for i := range warnings {
		warnings[i] = fmt.Sprintf("part %d: %s", i, strings.Repeat("я", 1000))
	}
	return parse.Text{Body: "text", Warnings: warnings}, nil
}

func TestWarningsAreBounded(t *testing.T) {
	c := newChunker()
	c.Reader = read.New(read.Options{Parser: many{}, Splitter: lines{}})
	run := chunkerKit(t, c, noRow).Run(document("doc", "m1", "text"))
	got := stagetest.Sent(run, topics.Progress)[0].Warnings
	if len(got) != 32 || !strings.HasPrefix(got[30], "part 30: я") || len(got[30]) > 600 || got[31] != "There are 969 more warnings." {
		t.Errorf("%d warnings, the last ones %q", len(got), got[max(0, len(got)-2):])
	}
}
