package pipeline_test

import (
	"context"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/stage"
)

// Schedules aimed at single rules of the delivery contract, with the pipeline's own stages.

// unsent is a sender from which nothing reaches Kafka, as from a process that dies now.
type unsent struct {
	engine.Sender
	topics chan string
}

func (s unsent) Send(_ context.Context, out stage.Output, _ func(int64, error)) error {
	s.topics <- out.Topic
	return nil
}

// around puts something around the senders that open makes. P is goka's producer.
func around[P any](open func() (engine.Sender, P, error), with func(engine.Sender) engine.Sender) func() (engine.Sender, P, error) {
	return func() (engine.Sender, P, error) {
		s, p, err := open()
		return with(s), p, err
	}
}

// The chunker dies when the row stands in its local store, and nothing of the document in Kafka. The row that it finds when it
// comes again must not be taken for the end of its work.
func TestCrashBehindTheLocalRow(t *testing.T) {
	w := prepare(t, time.Second)
	w.put(rag.Document{ID: "doc", MessageID: "m1", Content: []byte("Ships come from everywhere.")})
	table, topics := w.topics.Tables.Chunker, make(chan string, 100)
	stop := w.run(func(env *engine.Env) {
		env.NewSender = around(env.NewSender, func(s engine.Sender) engine.Sender { return unsent{s, topics} })
		env.DrainTimeout = 50 * time.Millisecond
	}, pipeline.RoleChunker)
	for kafkatest.Receive(t, "the row on its way", topics) != table { // it is stored before it is sent
	}
	stop()
	for _, topic := range []string{w.topics.Chunks, w.topics.Progress, w.topics.Events, table} {
		if n := len(kafkatest.ReadAll(t, w.cfg, topic)); n > 0 {
			t.Fatalf("%d records in %s: this test shows nothing", n, topic)
		}
	}

	w.run(nil, pipeline.RoleChunker)
	kafkatest.Wait(t, "the commit", func() bool {
		return kafkatest.Committed(t, w.cfg, w.topics.Groups.Chunker, w.topics.Documents, kafka.PartitionOf([]byte("doc"), partitions)) == 1
	})
	for _, topic := range []string{w.topics.Chunks, w.topics.Progress, table} {
		if n := len(kafkatest.ReadAll(t, w.cfg, topic)); n != 1 {
			t.Fatalf("committed with %d records in %s", n, topic)
		}
	}
	w.run(nil, pipeline.RoleEmbedder, pipeline.RoleIndexer)
	w.waitFinal("doc/m1", rag.StatusIndexed)
}

// A reader may have seen the row of the version before for as long as the removal delay: its chunks stay as long.
func TestReplacedChunksStayForLateReaders(t *testing.T) {
	w := prepare(t, time.Hour)
	w.run(nil, pipeline.RoleChunker, pipeline.RoleEmbedder, pipeline.RoleIndexer)
	for i, text := range []string{"First.", "Second.", "Third."} {
		id := string(rune('1' + i))
		w.put(rag.Document{ID: "doc", MessageID: id, Content: []byte(text)})
		w.waitFinal("doc/"+id, rag.StatusIndexed) // a removal would have had its time while the next version is made
	}
	held := map[string]bool{}
	for _, o := range w.chunks("doc") {
		held[o.Chunk.Text] = true
	}
	if len(held) != 3 {
		t.Errorf("an hour before they are to go, the store holds %v of the three versions", held)
	}
}
