package pipeline_test

import (
	"errors"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/stage"
)

// refusing is a sender that cannot take the rows of one key: what follows from the messages of that key is their failure.
type refusing struct {
	engine.Sender
	table, key string
}

func (s refusing) Check(out stage.Output) error {
	if out.Topic == s.table && string(out.Key) == s.key {
		return &stage.Error{Class: stage.ClassMessage, Reason: engine.ReasonTooLarge, Err: errors.New("a test")}
	}
	return s.Sender.Check(out)
}

func refuse(table, key string) func(*engine.Env) {
	return func(env *engine.Env) {
		env.NewSender = around(env.NewSender, func(s engine.Sender) engine.Sender { return refusing{s, table, key} })
	}
}

// waitRow waits until the table holds a row of the key.
func (w *whole) waitRow(table, key string) {
	w.t.Helper()
	kafkatest.Wait(w.t, "the row of "+key, func() bool {
		for _, r := range kafkatest.ReadAll(w.t, w.cfg, table) {
			if string(r.Key) == key {
				return true
			}
		}
		return false
	})
}

// An event that nothing can be made of does not hold the timelines of its partition.
func TestTrackerPassesByWhatItCannotKeep(t *testing.T) {
	w := prepare(t, time.Second)
	bad, good := "bad", "good"
	for kafka.PartitionOf([]byte(rag.EventKey("doc", bad)), partitions) != kafka.PartitionOf([]byte(rag.EventKey("doc", good)), partitions) {
		good += "x" // behind it, on the same partition
	}
	for _, m := range []string{bad, good} {
		value, err := w.codecs.Event.Encode(rag.Event{Subject: rag.Subject{DocumentID: "doc", MessageID: m, Revision: rag.Revision{Version: 5}},
			Stage: "chunker", Status: rag.StatusAccepted, At: time.Now()})
		check(t, err)
		kafkatest.Produce(t, w.cfg, kafka.Record{Topic: w.topics.Events, Key: []byte(rag.EventKey("doc", m)), Value: value})
	}
	w.run(refuse(w.topics.Tables.Tracker, rag.EventKey("doc", bad)), pipeline.RoleTracker)
	w.waitRow(w.topics.Tables.Tracker, rag.EventKey("doc", good))
}

// A retry that cannot be scheduled does not hold the letters of its partition, and its version ends instead of waiting for
// ever.
func TestDeadLettersPassByWhatTheyCannotKeep(t *testing.T) {
	w := prepare(t, time.Second)
	bad, good := "bad", "good"
	for kafka.PartitionOf([]byte(bad), partitions) != kafka.PartitionOf([]byte(good), partitions) {
		good += "x" // behind it, on the same partition
	}
	subject := func(document string) rag.Subject {
		return rag.Subject{DocumentID: document, MessageID: "m", Revision: rag.Revision{Version: 5}, Attempt: 1}
	}
	for _, id := range []string{bad, good} {
		value, err := w.codecs.Command.Encode(rag.Command{Kind: rag.CommandSchedule, LetterID: id, Subject: subject("doc of " + id), At: time.Now(),
			Due: time.Now().Add(time.Hour), Position: rag.Position{Topic: w.topics.Documents}, Status: rag.StatusRetrying,
			Original: rag.Raw{Key: []byte("doc of " + id), Value: []byte("{}")}, Failure: &rag.Failure{Stage: "embedder", Class: rag.ClassTransient, Reason: "test", Message: "a test"}})
		check(t, err)
		kafkatest.Produce(t, w.cfg, kafka.Record{Topic: w.topics.Commands, Key: []byte(id), Value: value})
	}
	w.run(refuse(w.topics.Tables.DeadLetters, bad), pipeline.RoleDeadLetters)
	w.waitRow(w.topics.Tables.DeadLetters, good)
	said := kafkatest.ReadAll(t, w.cfg, w.topics.Progress)
	if len(said) != 1 {
		t.Fatalf("%d verdicts", len(said))
	}
	p, err := w.codecs.Progress.Decode(said[0].Value)
	if err != nil || p.Kind != rag.ProgressVerdict || p.Status != rag.StatusDead || p.Subject != subject("doc of bad") ||
		p.Failure == nil || p.Failure.Stage != "deadletters" || p.Failure.Reason != engine.ReasonTooLarge {
		t.Errorf("%+v: %v", p, err)
	}
}
