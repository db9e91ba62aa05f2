package pipeline_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed/builtin"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/sqlite"
)

// whole is a pipeline with its groups on an embedded broker and a SQLite store.
type whole struct {
	t      testing.TB
	cfg    kafka.Config
	topics kafka.Topics
	store  *sqlite.Store
	model  *builtin.Model
	codecs *wire.Codecs
	p      *pipeline.Pipeline
	dir    string // the groups' local stores
	stop   func()
}

const (
	partitions = 4
	tokens     = 60
)

// start runs all groups.
func start(t testing.TB) *whole {
	t.Helper()
	w := prepare(t, 300*time.Millisecond)
	stop, closed := w.run(nil, pipeline.Roles()...), w.stop
	w.stop = func() {
		stop()
		closed()
	}
	t.Cleanup(w.stop)
	return w
}

// prepare makes everything but runs nothing; stop closes what it has opened.
func prepare(t testing.TB, removalDelay time.Duration, changes ...func(*pipeline.Options)) *whole {
	t.Helper()
	w := &whole{t: t, cfg: kafkatest.Start(t, kafkatest.Plan(t, "waymark", partitions)...), topics: kafka.NewTopics("waymark"),
		model: builtin.New(), codecs: wire.NewCodecs(time.Now), dir: t.TempDir()}
	var err error
	w.store, err = sqlite.Open(t.Context(), t.TempDir()+"/store.db", sqlite.Options{Model: w.model.Model(), Dimensions: w.model.Dimensions()})
	check(t, err)
	parser, err := parse.New(parse.Limits{})
	check(t, err)
	splitter, err := split.New(split.Options{Tokens: tokens, Overlap: tokens / 6})
	check(t, err)
	reader, err := kafka.NewReader(w.cfg)
	check(t, err)
	options := pipeline.Options{Topics: w.topics, Partitions: partitions, ReadSettings: parse.Version,
		Documents: read.New(read.Options{Parser: parser, Splitter: splitter, Time: 10 * time.Second}), Embedder: w.model, EmbedBatch: engine.BatchOptions{MaxMessages: 64, MaxBytes: 1 << 20, Linger: 5 * time.Millisecond},
		EventBatch: engine.BatchOptions{MaxMessages: 100, MaxBytes: 4 << 20, Linger: 5 * time.Millisecond},
		Sink:       w.store, StoreBatch: engine.BatchOptions{MaxMessages: 100, MaxBytes: 4 << 20, Linger: 5 * time.Millisecond}, Settle: 10 * time.Millisecond,
		Reader: reader, Now: time.Now, After: time.After,
		Delivery: ledger.Settings{Attempts: 3, RemovalDelay: removalDelay, Keep: ledger.Keep{For: time.Hour, Count: 256}}}
	for _, change := range changes {
		change(&options)
	}
	w.p = pipeline.New(options)
	w.stop = sync.OnceFunc(func() {
		check(t, reader.Close())
		check(t, w.store.Close())
	})
	t.Cleanup(w.stop)
	return w
}

// asItIs is a constructor of settings without the changes that it would take.
func asItIs[C, M any](settings func(...M) (C, error)) func() (C, error) {
	return func() (C, error) { return settings() }
}

// run runs groups until stop is called or the test ends. change may be nil.
func (w *whole) run(change func(*engine.Env), roles ...string) (stop func()) {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("PIPELINE_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, len(roles))
	for _, role := range roles {
		g, err := w.p.Group(role)
		check(w.t, err)
		env := engine.Env{Brokers: w.cfg.Brokers, Sarama: asItIs(w.cfg.Sarama),
			NewSender: engine.KafkaSender(func() (*kafka.Producer, error) { return kafka.NewProducer(w.cfg, kafka.ProducerOptions{}) }),
			Stores:    kafka.NewStores(kafka.StoreOptions{Dir: w.dir + "/" + role, Log: log}), InstanceID: "pod", Log: log}
		if change != nil {
			change(&env)
		}
		r := engine.NewRunner(g, env)
		go func() { ended <- r.Run(ctx) }()
	}
	stop = sync.OnceFunc(func() {
		cancel()
		for range roles {
			if err := kafkatest.Receive(w.t, "end of a role", ended); err != nil {
				w.t.Error(err)
			}
		}
	})
	w.t.Cleanup(stop)
	return stop
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *whole) put(d rag.Document) {
	w.t.Helper()
	d.ContentType = "text/plain; charset=utf-8"
	key, value, headers := wire.DocumentRecord(d, false)
	r := kafka.Record{Topic: w.topics.Documents, Key: key, Value: value}
	for _, h := range headers {
		r.Headers = append(r.Headers, kafka.Header(h))
	}
	kafkatest.Produce(w.t, w.cfg, r)
}

// finals are the final statuses of submissions, as the events say them; later generations win.
func (w *whole) finals() map[string]rag.Status {
	out := map[string]rag.Status{}
	for _, r := range kafkatest.ReadAll(w.t, w.cfg, w.topics.Events) {
		e, err := w.codecs.Event.Decode(r.Value)
		if err == nil && e.Status.Final() { // else a test has written it
			out[e.DocumentID+"/"+e.MessageID] = e.Status
		}
	}
	return out
}

func (w *whole) waitFinal(submission string, want rag.Status) {
	w.t.Helper()
	kafkatest.Wait(w.t, fmt.Sprintf("%s to be %s", submission, want), func() bool { return w.finals()[submission] == want })
}

func (w *whole) chunks(id string) []sinks.Object {
	var all []sinks.Object
	check(w.t, w.store.Scan(w.t.Context(), id, func(o sinks.Object) error { all = append(all, o); return nil }))
	return all
}

func TestDocumentThroughThePipeline(t *testing.T) {
	w := start(t)
	text := strings.Repeat("The harbour of Hamburg is a port on the Elbe. Ships come from everywhere. ", 20)
	w.put(rag.Document{ID: "doc", MessageID: "m1", Content: []byte(text), Title: "Hamburg"})
	w.waitFinal("doc/m1", rag.StatusIndexed)
	first := w.chunks("doc")
	if len(first) < 3 {
		t.Fatalf("%d chunks", len(first))
	}
	for _, o := range first {
		if o.Chunk.Text != text[o.Chunk.Start:o.Chunk.End] {
			t.Errorf("chunk %d is not its slice of the text", o.Chunk.Index)
		}
	}

	w.put(rag.Document{ID: "doc", MessageID: "m2", Content: []byte(text), Title: "Hamburg"})
	w.waitFinal("doc/m2", rag.StatusUnchanged)

	w.put(rag.Document{ID: "doc", MessageID: "m3", Content: []byte("Short now.")})
	w.waitFinal("doc/m3", rag.StatusIndexed)
	kafkatest.Wait(t, "the old chunks to go", func() bool { return len(w.chunks("doc")) == 1 })

	w.put(rag.Document{ID: "doc", MessageID: "m4", Delete: true})
	w.waitFinal("doc/m4", rag.StatusDeleted)
	kafkatest.Wait(t, "the chunks to go", func() bool { return len(w.chunks("doc")) == 0 })
}

func TestDeadDocumentLeavesALetter(t *testing.T) {
	w := start(t)
	bytes := "\x00\x01\x02\xff\xfe\xfd not a text"
	kafkatest.Produce(t, w.cfg, kafka.Record{Topic: w.topics.Documents, Key: []byte("bin"), Value: []byte(bytes), Headers: []kafka.Header{
		{Key: []byte("message-id"), Value: []byte("m")}, {Key: []byte("content-type"), Value: []byte("application/octet-stream")},
		{Key: []byte("x"), Value: nil}}})
	kafkatest.Produce(t, w.cfg, kafka.Record{Topic: w.topics.Documents, Key: []byte("bad"), Value: []byte(`{"text": `), Headers: []kafka.Header{{Key: []byte("message-id"), Value: []byte("m")}}})
	kafkatest.Produce(t, w.cfg, kafka.Record{Topic: w.topics.Documents, Value: []byte("no key, no id"), Headers: []kafka.Header{{Key: []byte("content-type"), Value: []byte("text/plain")}}})
	w.waitFinal("bin/m", rag.StatusDead)
	w.waitFinal("bad/m", rag.StatusDead)
	kafkatest.Wait(t, "three letters", func() bool { return len(kafkatest.ReadAll(t, w.cfg, w.topics.DeadLetters)) == 3 })
	for _, r := range kafkatest.ReadAll(t, w.cfg, w.topics.DeadLetters) {
		l, err := wire.DecodeLetter(r.Key, r.Value, nil, r.Timestamp)
		_ = l
		if err == nil {
			t.Error("a letter without headers was read")
		}
		t.Logf("%s: %q", r.Key, r.Headers)
	}
}
