package node

import (
	"context"
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
)

func blobNamed(name string) rag.Blob {
	return rag.NewBlob(time.Unix(1e9, 0), sha256.Sum256([]byte(name)), 7)
}

// committer commits all of a topic as if it had read it, and leaves.
type committer struct {
	lag   *lagReader
	topic string
	leave context.CancelFunc
}

func (c committer) Setup(s sarama.ConsumerGroupSession) error {
	defer c.leave()
	for _, p := range s.Claims()[c.topic] {
		end, err := c.lag.client.GetOffset(c.topic, p, sarama.OffsetNewest)
		if err != nil {
			return err
		}
		s.MarkOffset(c.topic, p, end, "")
	}
	s.Commit()
	return nil
}

func (committer) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (committer) ConsumeClaim(s sarama.ConsumerGroupSession, _ sarama.ConsumerGroupClaim) error {
	<-s.Context().Done()
	return nil
}

func commitAll(t *testing.T, lag *lagReader, group, topic string) {
	t.Helper()
	g, err := sarama.NewConsumerGroupFromClient(group, lag.client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	if err := g.Consume(ctx, []string{topic}, committer{lag, topic, leave}); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
}

// What refers to blobs: the latest record of every document, and letters that may be replayed. A chunker that has read nothing
// may still read every record.
func TestBlobReferences(t *testing.T) {
	cfg := kafkatest.Start(t, kafkatest.Plan(t, "waymark", 2)...)
	names := kafka.NewTopics("waymark")
	reader, err := kafka.NewReader(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	lag, err := newLagReader(cfg, names)
	if err != nil {
		t.Fatal(err)
	}
	defer lag.Close(context.Background())

	put := func(id, blob string) {
		d := rag.Document{ID: id, MessageID: id + blob, Content: []byte("small")}
		if blob != "" {
			ref := blobNamed(blob)
			d.Content, d.Blob = nil, &ref
		}
		key, value, headers := wire.DocumentRecord(d, true)
		r := kafka.Record{Topic: names.Documents, Key: key, Value: value}
		for _, h := range headers {
			r.Headers = append(r.Headers, kafka.Header(h))
		}
		kafkatest.Produce(t, cfg, r)
	}
	put("replaced", "old")
	put("replaced", "new")
	put("small now", "was large")
	put("small now", "")
	put("deleted", "of a deleted one")
	kafkatest.Produce(t, cfg, kafka.Record{Topic: names.Documents, Key: []byte("deleted")})
	put("alone", "alone")

	rows := pipeline.Topics(names, time.Now).DeadLettersTable.Codec
	letter := func(id, blob string, state rag.LetterState) {
		ref := blobNamed(blob)
		_, value, headers := wire.DocumentRecord(rag.Document{ID: id, MessageID: id, Blob: &ref}, true)
		row := ledger.LetterRow{ID: id, State: state, Original: rag.Raw{Key: []byte(id), Value: value}}
		for _, h := range headers {
			row.Original.Headers = append(row.Original.Headers, rag.Header(h))
		}
		b, err := rows.Encode(row)
		if err != nil {
			t.Fatal(err)
		}
		kafkatest.Produce(t, cfg, kafka.Record{Topic: names.Tables.DeadLetters, Key: []byte(id), Value: b})
	}
	letter("l1", "waits", rag.LetterWaiting)
	letter("l2", "is scheduled", rag.LetterScheduled)
	letter("l3", "runs", rag.LetterReplaying)
	letter("l4", "was resolved", rag.LetterWaiting)
	letter("l4", "was resolved", rag.LetterResolved)
	letter("l5", "was discarded", rag.LetterDiscarded)
	letter("l6", "was superseded", rag.LetterSuperseded)

	refs := blobReferences{reader: reader, lag: lag, topics: names, rows: rows}
	noted := func() []string {
		t.Helper()
		found := map[string]bool{}
		if err := refs.each(t.Context(), func(b rag.Blob) { found[b.Key()] = true }); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, name := range []string{"old", "new", "was large", "of a deleted one", "alone", "waits", "is scheduled", "runs", "was resolved", "was discarded", "was superseded"} {
			if found[blobNamed(name).Key()] {
				all = append(all, name)
				delete(found, blobNamed(name).Key())
			}
		}
		if len(found) > 0 {
			t.Errorf("noted too: %v", found)
		}
		return all
	}
	letters := []string{"waits", "is scheduled", "runs"}
	if got, want := noted(), append([]string{"old", "new", "was large", "of a deleted one", "alone"}, letters...); !slices.Equal(got, want) {
		t.Errorf("nothing is read: %q, want %q", got, want)
	}
	commitAll(t, lag, names.Groups.Chunker, names.Documents)
	if got, want := noted(), append([]string{"new", "alone"}, letters...); !slices.Equal(got, want) {
		t.Errorf("everything is read: %q, want %q", got, want)
	}
	kafkatest.Produce(t, cfg, kafka.Record{Topic: names.Tables.DeadLetters, Key: []byte("l9"), Value: []byte("nobody can read this")})
	if err := refs.each(t.Context(), func(rag.Blob) {}); err == nil {
		t.Error("a letter that cannot be read is passed by")
	}
}
