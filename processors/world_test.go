package processors_test

import (
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"slices"
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

// The pipeline's topics, places and a clock that stands still.

var noon = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

func now() time.Time { return noon }

const (
	epoch      = 3
	partitions = 4
)

var topics = func() processors.Topics {
	c := wire.NewCodecs(now)
	return processors.Topics{
		Documents:   stage.Topic[[]byte]{Name: "documents", Codec: processors.Bytes{}},
		Replays:     stage.Topic[rag.Replay]{Name: "replays", Codec: c.Replay},
		Chunks:      stage.Topic[rag.Chunk]{Name: "chunks", Codec: c.Chunk},
		Vectors:     stage.Topic[rag.Vector]{Name: "vectors", Codec: c.Vector},
		Progress:    stage.Topic[rag.Progress]{Name: "progress", Codec: c.Progress},
		Events:      stage.Topic[rag.Event]{Name: "events", Codec: c.Event},
		DeadLetters: stage.Topic[[]byte]{Name: "dead-letters", Codec: processors.Bytes{}},
		Commands:    stage.Topic[rag.Command]{Name: "commands", Codec: c.Command},

		ChunkerTable:     stage.Topic[ledger.ChunkerRow]{Name: "chunker-table", Codec: c.ChunkerRow},
		EmbedderTable:    stage.Topic[wire.CachedVector]{Name: "embedder-table", Codec: c.CachedVector},
		IndexerTable:     stage.Topic[ledger.DocumentRow]{Name: "indexer-table", Codec: c.DocumentRow},
		TrackerTable:     stage.Topic[ledger.TrackerRow]{Name: "tracker-table", Codec: c.TrackerRow},
		DeadLettersTable: stage.Topic[ledger.LetterRow]{Name: "deadletters-table", Codec: c.LetterRow},
	}
}()

var place = processors.Place{Documents: "documents", Epoch: epoch, Home: home}

// home is the pipeline's partitioner here; librdkafka is another one.
func home(key []byte) int32 {
	h := fnv.New32a()
	_, _ = h.Write(key)
	return int32(h.Sum32() % partitions)
}

func librdkafka(key []byte) int32 { return int32(crc32.ChecksumIEEE(key) % partitions) }

// version of a record of the documents or progress topic.
func version(offset int64) rag.Version {
	v, err := rag.NewVersion(epoch, offset)
	if err != nil {
		panic(err)
	}
	return v
}

func revision(offset int64, generation int) rag.Revision {
	return rag.Revision{Version: version(offset), Generation: generation}
}

// subject of a document's version at an offset of its home partition.
func subject(document, message string, offset int64) rag.Subject {
	return rag.Subject{DocumentID: document, MessageID: message, Revision: revision(offset, 0), Partition: home([]byte(document))}
}

func header(key, value string) stage.Header {
	return stage.Header{Key: []byte(key), Value: []byte(value)}
}

// document is a record that stands where its key belongs, with plain text under a message id ("" for none).
func document(key, messageID, text string, more ...stage.Header) stagetest.Step {
	r := stage.Record{Topic: "documents", Partition: home([]byte(key)), Key: []byte(key), Value: []byte(text)}
	if messageID != "" {
		r.Headers = append(r.Headers, header("message-id", messageID))
	}
	r.Headers = append(append(r.Headers, header("content-type", "text/plain")), more...)
	return stagetest.Raw(r)
}

// in puts a record of a document's internal topics into its partition.
func in[T any](topic stage.Topic[T], key string, v T) stagetest.Step {
	return stagetest.Message(topic, key, v).On(home([]byte(key)))
}

// told renders records for comparison, one line each: what they say, not when.
func told(t testing.TB, outs []stage.Output) []string {
	t.Helper()
	lines := make([]string, len(outs))
	for i, out := range outs {
		lines[i] = line(t, out)
	}
	return lines
}

func line(t testing.TB, out stage.Output) string {
	t.Helper()
	if out.Err != nil {
		t.Errorf("an output of %s cannot be encoded: %v", out.Topic, out.Err)
	}
	switch out.Topic {
	case "documents":
		return fmt.Sprintf("document %q", out.Key)
	case "dead-letters":
		l, err := wire.DecodeLetter(out.Key, out.Value, out.Headers, noon)
		check(t, err)
		return fmt.Sprintf("letter %s %s", who(l.Subject), why(&l.Failure))
	case "chunks":
		c := decode(t, topics.Chunks, out)
		return fmt.Sprintf("chunk %s %d/%d %q", who(c.Subject), c.Index, c.Count, c.Text)
	case "vectors":
		v := decode(t, topics.Vectors, out)
		return fmt.Sprintf("vector %s %d/%d %v", who(v.Subject), v.Index, v.Count, v.Values)
	case "replays":
		return "replay " + who(decode(t, topics.Replays, out).Subject)
	case "events":
		e := decode(t, topics.Events, out)
		if want := rag.EventKey(e.DocumentID, e.MessageID); string(out.Key) != want {
			t.Errorf("an event has the key %q, want %q", out.Key, want)
		}
		return strings.TrimSpace(fmt.Sprintf("event %s %s %s %s", e.Stage, who(e.Subject), e.Status, why(e.Failure)))
	case "commands":
		c := decode(t, topics.Commands, out)
		kind := [...]string{"", "schedule", "close", "replay", "discard", "due"}[c.Kind]
		return strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", kind, c.LetterID, who(c.Subject), c.Status, why(c.Failure)))
	}
	p := decode(t, topics.Progress, out)
	switch p.Kind {
	case rag.ProgressManifest:
		return fmt.Sprintf("manifest %s of %d", who(p.Subject), p.Count)
	case rag.ProgressDelete:
		return "delete " + who(p.Subject)
	case rag.ProgressReceipt:
		return fmt.Sprintf("receipt %s %v", who(p.Subject), p.Confirmed)
	case rag.ProgressRemoved:
		return fmt.Sprintf("removed %s %s", p.DocumentID, removal(p.Removal))
	}
	return strings.TrimSpace(fmt.Sprintf("verdict %s %s %s", who(p.Subject), p.Status, why(p.Failure)))
}

func removal(r rag.Removal) string {
	if r.Exact {
		return "exactly " + short(r.Revision)
	}
	return "below " + short(r.Revision)
}

func short(r rag.Revision) string { return fmt.Sprintf("%d.%d", r.Version.Offset(), r.Generation) }

func who(s rag.Subject) string {
	text := fmt.Sprintf("%s/%s@%s", s.DocumentID, s.MessageID, short(s.Revision))
	if s.Attempt > 0 {
		text += fmt.Sprintf("+%d", s.Attempt)
	}
	return text
}

func why(f *rag.Failure) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s:%s:%s", f.Stage, f.Class, f.Reason)
}

func decode[T any](t testing.TB, topic stage.Topic[T], out stage.Output) T {
	t.Helper()
	v, err := topic.Codec.Decode(out.Value)
	check(t, err)
	return v
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want compares rendered records, in order.
func want(t testing.TB, outs []stage.Output, lines ...string) {
	t.Helper()
	if got := told(t, outs); !slices.Equal(got, lines) {
		t.Errorf("sent\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(lines, "\n  "))
	}
}
