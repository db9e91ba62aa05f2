package pipeline_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

// inFullSize runs all groups with the limits that the topics really have.
func inFullSize(t testing.TB) *whole {
	t.Helper()
	limits := kafka.Limits(kafkatest.Plan(t, "waymark", partitions))
	w := prepare(t, 300*time.Millisecond, func(o *pipeline.Options) { o.Limits = limits })
	w.run(func(env *engine.Env) {
		env.NewSender = engine.KafkaSender(func() (*kafka.Producer, error) {
			return kafka.NewProducer(w.cfg, kafka.ProducerOptions{Limits: limits})
		})
	}, pipeline.Roles()...)
	return w
}

// neighbours submits a healthy document to every partition, and returns a wait for them to be served.
func (w *whole) neighbours(name string) (served func()) {
	w.t.Helper()
	ids := map[int32]string{}
	for i := 0; len(ids) < partitions; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		if p := kafka.PartitionOf([]byte(id), partitions); ids[p] == "" {
			ids[p] = id
			w.put(rag.Document{ID: id, MessageID: "m", Content: []byte("A neighbour of " + name + ".")})
		}
	}
	return func() {
		w.t.Helper()
		for _, id := range ids {
			w.waitFinal(id+"/m", rag.StatusIndexed)
		}
	}
}

// letters are the dead letters by the position that they name.
func (w *whole) letters() map[string]rag.Letter {
	w.t.Helper()
	letters := map[string]rag.Letter{}
	for _, r := range kafkatest.ReadAll(w.t, w.cfg, w.topics.DeadLetters) {
		if l, ok := letterOf(r); ok {
			letters[l.ID] = l
		}
	}
	return letters
}

func letterOf(r kafka.Record) (rag.Letter, bool) {
	var headers []stage.Header
	for _, h := range r.Headers {
		headers = append(headers, stage.Header(h))
	}
	l, err := wire.DecodeLetter(r.Key, r.Value, headers, r.Timestamp)
	return l, err == nil
}

func header(key, value string) kafka.Header {
	return kafka.Header{Key: []byte(key), Value: []byte(value)}
}

// What is large where nobody expects it (keys, headers) is no reason for anything to stand still, and a letter keeps it.
func TestBombsInKeysAndHeaders(t *testing.T) {
	w := inFullSize(t)
	many := make([]kafka.Header, 20_000)
	for i := range many {
		many[i] = header(fmt.Sprint("x-", i), "v")
	}
	huge := []kafka.Header{{Key: []byte("x-huge"), Value: bytes.Repeat([]byte{0xff, 0}, 4<<20)}, {Key: bytes.Repeat([]byte("k"), 1<<20), Value: nil}}
	good, broken := []byte(`{"text":"It is fine."}`), []byte(`{"text":`)
	for _, c := range []struct {
		name    string
		key     string
		value   []byte
		headers []kafka.Header
		reason  string // "": it is served
	}{
		{"thousands of headers", "many", good, many, ""},
		{"thousands of headers on what dies", "many-broken", broken, many, rag.ReasonBrokenJSON},
		{"a huge header", "huge", good, huge, ""},
		{"a huge header on what dies", "huge-broken", broken, huge, rag.ReasonBrokenJSON},
		{"a huge message id", "id", good, []kafka.Header{header("message-id", strings.Repeat("m", 6<<20))}, rag.ReasonBadMessageID},
		{"a huge title", "title", []byte("text"), []kafka.Header{header("content-type", "text/plain"), header("title", strings.Repeat("t", 6<<20))}, rag.ReasonInvalidField},
		{"a huge content type", "type", []byte("text"), []kafka.Header{header("content-type", strings.Repeat("t", 6<<20))}, rag.ReasonInvalidField},
		{"a key of ten megabytes", strings.Repeat("k", 10<<20), good, nil, rag.ReasonBadKey},
	} {
		served := w.neighbours(fmt.Sprint("beside-", c.key[:2]))
		r := kafkatest.Produce(t, w.cfg, kafka.Record{Topic: w.topics.Documents, Key: []byte(c.key), Value: c.value, Headers: c.headers})[0]
		behind := w.neighbours(fmt.Sprint("behind-", c.key[:2]))
		id := fmt.Sprintf("%s@0-%d-%d", w.topics.Documents, r.Partition, r.Offset)
		if c.reason == "" {
			w.waitFinal(c.key+"/"+id, rag.StatusIndexed)
		} else {
			kafkatest.Wait(t, c.name+" to die", func() bool { return w.letters()[id].ID == id })
			l := w.letters()[id]
			if l.Failure.Reason != c.reason || l.Failure.Message == "" || len(l.Failure.Message) > 2<<10 {
				t.Errorf("%s dies of %q (%.200q)", c.name, l.Failure.Reason, l.Failure.Message)
			}
			if l.Lost != "" || string(l.Original.Key) != c.key || !bytes.Equal(l.Original.Value, c.value) || len(l.Original.Headers) != len(c.headers) {
				t.Errorf("%s: the letter keeps %d bytes of key, %d of value, %d headers (%s)", c.name, len(l.Original.Key), len(l.Original.Value), len(l.Original.Headers), l.Lost)
			}
			for i, h := range l.Original.Headers {
				if !bytes.Equal(h.Key, c.headers[i].Key) || !bytes.Equal(h.Value, c.headers[i].Value) {
					t.Fatalf("%s: header %d differs", c.name, i)
				}
			}
		}
		served()
		behind()
	}
}

// What cannot be read on the pipeline's own topics belongs to no version: it is passed by, and nobody notices.
func TestUnreadableRecordsOnOwnTopics(t *testing.T) {
	w := inFullSize(t)
	subject := rag.Subject{DocumentID: "doc", MessageID: "m", Revision: rag.Revision{Version: 5}}
	encode := func(b []byte, err error) []byte {
		t.Helper()
		check(t, err)
		return b
	}
	internal := map[string][]byte{
		w.topics.Chunks:   encode(w.codecs.Chunk.Encode(rag.Chunk{Subject: subject, Count: 1, Text: "some text", End: 9})),
		w.topics.Vectors:  encode(w.codecs.Vector.Encode(rag.Vector{Chunk: rag.Chunk{Subject: subject, Count: 1, Text: "some text", End: 9}, Values: []float32{1, 2}})),
		w.topics.Progress: encode(w.codecs.Progress.Encode(rag.Progress{Kind: rag.ProgressManifest, Subject: subject, At: time.Now(), Count: 1})),
		w.topics.Events:   encode(w.codecs.Event.Encode(rag.Event{Subject: subject, Stage: "chunker", Status: rag.StatusAccepted, At: time.Now()})),
		w.topics.Replays:  encode(w.codecs.Replay.Encode(rag.Replay{Subject: subject, Position: rag.Position{Topic: w.topics.Documents}})),
		w.topics.Commands: encode(w.codecs.Command.Encode(rag.Command{Kind: rag.CommandReplay, LetterID: "l", Subject: subject, At: time.Now()})),
	}
	served := w.neighbours("beside")
	groups := map[string]string{w.topics.Chunks: w.topics.Groups.Embedder, w.topics.Vectors: w.topics.Groups.Indexer, w.topics.Progress: w.topics.Groups.Indexer,
		w.topics.Events: w.topics.Groups.Tracker, w.topics.Replays: w.topics.Groups.Chunker, w.topics.Commands: w.topics.Groups.DeadLetters}
	key := "stranger"
	for topic, good := range internal {
		e, err := codecs.Open(good)
		check(t, err)
		payload := e.Payload[:len(e.Payload)-3]
		truncated := encode(codecs.New(e.Format, time.Now, func(b []byte) ([]byte, error) { return b, nil }, func(b []byte) ([]byte, error) { return b, nil }).Encode(payload))
		broken := bytes.Clone(good)
		broken[len(broken)-1] ^= 1 // its checksum does not hold
		for _, value := range [][]byte{truncated, broken, good[:len(good)/2], []byte("garbage"), {}, nil} {
			kafkatest.Produce(t, w.cfg, kafka.Record{Topic: topic, Key: []byte(key), Value: value})
		}
	}
	behind := w.neighbours("behind")
	served()
	behind()
	for topic, group := range groups {
		p := kafka.PartitionOf([]byte(key), partitions)
		kafkatest.Wait(t, "the group of "+topic+" to pass by", func() bool {
			records := 0
			for _, r := range kafkatest.ReadAll(t, w.cfg, topic) {
				if r.Partition == p {
					records = int(r.Offset) + 1
				}
			}
			return kafkatest.Committed(t, w.cfg, group, topic, p) >= int64(records)
		})
	}
	if n := len(w.letters()); n != 0 {
		t.Errorf("%d letters", n)
	}
	for submission, status := range w.finals() {
		if strings.HasPrefix(submission, "doc/") {
			t.Errorf("%s is %s", submission, status)
		}
	}
}

// A producer that counts its partitions in another way (librdkafka's default) writes where a document has no home: it is
// forwarded, and served once.
func TestRecordsOfAnotherPartitioner(t *testing.T) {
	w := inFullSize(t)
	p, err := kafka.NewProducer(w.cfg, kafka.ProducerOptions{Limits: map[string]int{w.topics.Documents: kafka.MaxDocumentBytes}})
	check(t, err)
	acks := make(chan error, 3*partitions)
	strays := 0
	for i := range 3 * partitions {
		id := fmt.Sprint("doc-", i)
		to := int32(i % partitions)
		if to != kafka.PartitionOf([]byte(id), partitions) {
			strays++
		}
		r := kafka.Record{Topic: w.topics.Documents, Key: []byte(id), Value: []byte(`{"text":"It came from elsewhere."}`), Headers: []kafka.Header{header("message-id", "m")}}
		check(t, p.SendTo(t.Context(), to, r, func(_ int32, _ int64, err error) { acks <- err }))
	}
	for range 3 * partitions {
		check(t, kafkatest.Receive(t, "an acknowledgement", acks))
	}
	check(t, p.Close())
	served := w.neighbours("beside")
	for i := range 3 * partitions {
		id := fmt.Sprint("doc-", i)
		w.waitFinal(id+"/m", rag.StatusIndexed)
		if n := len(w.chunks(id)); n != 1 {
			t.Errorf("%s has %d chunks", id, n)
		}
	}
	served()
	if strays == 0 {
		t.Error("all records were at home")
	}
	if n := len(w.letters()); n != 0 {
		t.Errorf("%d letters", n)
	}
}
