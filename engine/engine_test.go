package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

func TestMain(m *testing.M) {
	if os.Getenv("ENGINE_CHILD") != "" {
		killedByItsMessage()
		return
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),  // one for the process, by design
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"), // ends within a second of Close
	)
}

// text is a codec of strings.
type text struct{}

func (text) Encode(s string) ([]byte, error) { return []byte(s), nil }
func (text) Decode(b []byte) (string, error) {
	if string(b) == "garbage" {
		return "", fmt.Errorf("garbage")
	}
	if string(b) == "newer" {
		return "", stage.ErrNewerFormat
	}
	return string(b), nil
}

// counts is a row: how often each message was seen, as the highest offset; it merges by the maximum.
type counts struct{ Last map[string]int64 }

type countsCodec struct{}

func (countsCodec) Encode(c counts) ([]byte, error) { return json.Marshal(c) }
func (countsCodec) Decode(b []byte) (counts, error) {
	var c counts
	err := json.Unmarshal(b, &c)
	return c, err
}

func mergeCounts(a, b *counts) *counts {
	m := &counts{Last: map[string]int64{}}
	for _, c := range []*counts{a, b} {
		for k, v := range c.Last {
			m.Last[k] = max(m.Last[k], v)
		}
	}
	return m
}

// world is a broker and what a test runs on it.
type world struct {
	t   testing.TB
	cfg kafka.Config
	dir string
}

const partitions = 2

var (
	in   = stage.Topic[string]{Name: "in", Codec: text{}}
	out  = stage.Topic[string]{Name: "out", Codec: text{}}
	said = stage.Topic[string]{Name: "said", Codec: text{}}
	bad  = stage.Topic[string]{Name: "bad", Codec: text{}}
)

func newWorld(t testing.TB) *world {
	cfg := kafkatest.Start(t, kafkatest.Topic("in", partitions), kafkatest.Topic("out", partitions), kafkatest.Topic("said", partitions),
		kafkatest.Topic("bad", partitions), kafkatest.Topic("g-table", partitions))
	return &world{t: t, cfg: cfg, dir: t.TempDir()}
}

func (w *world) env(pod string) engine.Env {
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("ENGINE_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("pod", pod)
	}
	return engine.Env{
		Brokers:    w.cfg.Brokers,
		Sarama:     func() (*sarama.Config, error) { return w.cfg.Sarama() },
		NewSender:  engine.KafkaSender(func() (*kafka.Producer, error) { return kafka.NewProducer(w.cfg, kafka.ProducerOptions{}) }),
		Stores:     kafka.NewStores(kafka.StoreOptions{Dir: w.dir + "/" + pod, Log: log}),
		InstanceID: pod,
		Log:        log,
		Retry:      engine.RetryPolicy{Tries: 3, Initial: time.Millisecond, Max: 20 * time.Millisecond},
	}
}

// run runs the group until stop is called or the test ends.
func (w *world) run(pod string, g *engine.Group) (stop func()) { return w.runIn(w.env(pod), g) }

func (w *world) runIn(env engine.Env, g *engine.Group) (stop func()) {
	r, pod := engine.NewRunner(g, env), env.InstanceID
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := kafkatest.Receive(w.t, "end of "+pod, done); err != nil {
				w.t.Errorf("%s: %v", pod, err)
			}
		})
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) send(key string, values ...string) {
	w.t.Helper()
	for _, v := range values {
		kafkatest.Produce(w.t, w.cfg, kafka.Record{Topic: "in", Key: []byte(key), Value: []byte(v)})
	}
}

func (w *world) values(topic string) []string {
	var all []string
	for _, r := range kafkatest.ReadAll(w.t, w.cfg, topic) {
		all = append(all, string(r.Value))
	}
	return all
}

func (w *world) waitFor(topic string, n int) []string {
	w.t.Helper()
	kafkatest.Wait(w.t, fmt.Sprintf("%d records on %s", n, topic), func() bool { return len(w.values(topic)) >= n })
	return w.values(topic)
}

func (w *world) committed(key string) int64 {
	return kafkatest.Committed(w.t, w.cfg, "g", "in", kafka.PartitionOf([]byte(key), partitions))
}

func (w *world) waitCommitted(key string, offset int64) {
	w.t.Helper()
	kafkatest.Wait(w.t, fmt.Sprintf("commit of %d", offset), func() bool { return w.committed(key) == offset })
}

func group(t testing.TB, options ...engine.Option) *engine.Group {
	t.Helper()
	g, err := engine.NewGroup("g", options...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func seen(row *counts, m stage.Message[string]) *counts {
	next := &counts{Last: map[string]int64{m.Value: m.Record.Offset + 1}}
	if row != nil {
		next = mergeCounts(row, next)
	}
	return next
}

func toBad(_ context.Context, f engine.Failure, _ *counts) (stage.Result[counts], error) {
	return stage.Result[counts]{Outputs: []stage.Output{bad.Record(string(f.Record.Key), f.Class.String()+":"+stage.ReasonOf(f.Err, "?"))}}, nil
}

func TestOutputsRowAndSaid(t *testing.T) {
	w := newWorld(t)
	g := group(t,
		engine.Input(in, func(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
			return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, "out "+m.Value)}, Row: seen(row, m),
				Said: []stage.Output{said.Record(m.Key, "said "+m.Value)}}, nil
		}),
		engine.Table(countsCodec{}, mergeCounts),
	)
	stop := w.run("a", g)
	w.send("k", "1", "2", "3")
	if got := w.waitFor("said", 3); fmt.Sprint(got) != "[said 1 said 2 said 3]" {
		t.Errorf("said %v", got)
	}
	if got := w.values("out"); fmt.Sprint(got) != "[out 1 out 2 out 3]" {
		t.Errorf("out %v", got)
	}
	w.waitCommitted("k", 3)
	stop()

	// A second process starts from Kafka alone and knows the row.
	stop = w.run("b", g)
	w.send("k", "4")
	w.waitFor("said", 4)
	stop()
	if last := w.lastRow(); len(last) != 4 {
		t.Errorf("the last row is %v, want four messages", last)
	}
}

func TestFailures(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	tries := map[string]int{}
	g := group(t,
		engine.Input(in, func(_ context.Context, m stage.Message[string], _ *counts) (stage.Result[counts], error) {
			mu.Lock()
			tries[m.Value]++
			n := tries[m.Value]
			mu.Unlock()
			switch {
			case m.DecodeError != nil:
				return stage.Result[counts]{}, stage.Reject("undecodable", "no text: %w", m.DecodeError)
			case m.Value == "reject":
				return stage.Result[counts]{}, stage.Reject("refused", "never")
			case m.Value == "panic":
				panic("at the disco")
			case m.Value == "always":
				return stage.Result[counts]{}, fmt.Errorf("unknown")
			case m.Value == "twice" && n < 3, m.Value == "outage" && n < 6:
				if m.Value == "outage" {
					return stage.Result[counts]{}, stage.Outage("store", 0, fmt.Errorf("refused"))
				}
				return stage.Result[counts]{}, fmt.Errorf("passing")
			case m.Value == "large":
				return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, string(make([]byte, 2<<20)))}}, nil
			}
			return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}}, nil
		}),
		engine.Table(countsCodec{}, mergeCounts),
		engine.OnFailure(toBad),
	)
	w.run("a", g)
	w.send("k", "first", "reject", "panic", "always", "twice", "outage", "large", "garbage", "last")
	if got := w.waitFor("out", 4); fmt.Sprint(got) != "[first twice outage last]" {
		t.Errorf("out %v", got)
	}
	if got := w.waitFor("bad", 5); fmt.Sprint(got) != "[message:refused message:panic transient:? message:too_large message:undecodable]" {
		t.Errorf("bad %v", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if tries["reject"] != 1 || tries["panic"] != 1 || tries["always"] != 3 || tries["outage"] != 6 {
		t.Errorf("tries %v", tries)
	}
	w.waitCommitted("k", 9)
}

func TestNewerFormatHoldsThePartition(t *testing.T) {
	w := newWorld(t)
	g := group(t,
		engine.Input(in, func(_ context.Context, m stage.Message[string], _ *counts) (stage.Result[counts], error) {
			return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}}, nil
		}),
		engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad))
	r := engine.NewRunner(g, w.env("a"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	w.send("k", "1", "newer", "2")
	w.waitFor("out", 1)
	kafkatest.Wait(t, "not ready", func() bool { return r.Ready() != nil })
	w.waitCommitted("k", 1)
	cancel()
	if err := kafkatest.Receive(t, "end", done); err != nil {
		t.Error(err)
	}
	if got := w.values("bad"); len(got) != 0 {
		t.Errorf("bad %v", got)
	}
}

// A batch that waits inside its handler says so; readiness and the metric repeat it until the handler returns.
func TestBatchThatWaitsInsideItsHandlerIsAnOutage(t *testing.T) {
	w := newWorld(t)
	waiting, release := make(chan struct{}), make(chan struct{})
	g := group(t,
		engine.Batch(in, engine.BatchOptions{MaxMessages: 10, MaxBytes: 1 << 20, Linger: time.Millisecond},
			func(_ context.Context, b stage.Batch[string, counts]) stage.BatchResult[counts] {
				b.Held("store", errors.New("no answer"))
				close(waiting)
				<-release
				return stage.BatchResult[counts]{}
			}),
		engine.Table(countsCodec{}, mergeCounts))
	env, registry := w.env("a"), prometheus.NewRegistry()
	env.Metrics = engine.NewMetrics(registry)
	r := engine.NewRunner(g, env)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	w.send("k", "1")
	<-waiting
	if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "store is away: no answer") {
		t.Errorf("it is ready, or says %v", err)
	}
	outages := func() float64 { return gauge(t, registry, "waymark_outage") }
	if n := outages(); n != 1 {
		t.Errorf("the metric counts %v outages", n)
	}
	close(release)
	kafkatest.Wait(t, "readiness", func() bool { return r.Ready() == nil && outages() == 0 })
	cancel()
	if err := kafkatest.Receive(t, "end", done); err != nil {
		t.Error(err)
	}
}

// Whoever loses a partition while a dependency is away has no outage any more: it is the next owner's.
func TestOutageGoesWithThePartition(t *testing.T) {
	w := newWorld(t)
	g := group(t,
		engine.Batch(in, engine.BatchOptions{MaxMessages: 10, MaxBytes: 1 << 20, Linger: time.Millisecond},
			func(_ context.Context, b stage.Batch[string, counts]) (res stage.BatchResult[counts]) {
				res.Errors = map[int]error{}
				for i := range b.Messages {
					res.Errors[i] = stage.Outage("store", 0, errors.New("refused"))
				}
				return res
			}),
		engine.Table(countsCodec{}, mergeCounts))
	env, registry := w.env("a"), prometheus.NewRegistry()
	env.Metrics = engine.NewMetrics(registry)
	stop := w.runIn(env, g)
	w.send("k", "1")
	kafkatest.Wait(t, "the outage", func() bool { return gauge(t, registry, "waymark_outage") == 1 })
	stop()
	if n := gauge(t, registry, "waymark_outage"); n != 0 {
		t.Errorf("%v outages without a partition", n)
	}
}

func TestBatch(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	calls := map[string]int{}
	var sizes []int
	work := func(_ context.Context, b stage.Batch[string, counts]) stage.BatchResult[counts] {
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, len(b.Messages))
		res := stage.BatchResult[counts]{Errors: map[int]error{}, Rows: map[string]*counts{}}
		for i, m := range b.Messages {
			calls[m.Value]++
			switch {
			case m.Value == "reject":
				res.Errors[i] = stage.Reject("refused", "never")
				continue
			case m.Value == "once" && calls[m.Value] == 1:
				res.Errors[i] = fmt.Errorf("passing")
				continue
			}
			res.Outputs = append(res.Outputs, out.Record(m.Key, m.Value))
			res.Rows[m.Key] = seen(b.Row(m.Key), m)
		}
		return res
	}
	g := group(t, engine.Batch(in, engine.BatchOptions{MaxMessages: 10, MaxBytes: 1 << 20, Linger: 5 * time.Millisecond}, work),
		engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad))
	for i := range 50 {
		w.send("k", fmt.Sprint(i))
	}
	w.send("k", "reject", "once", "garbage", "end")
	w.run("a", g)
	w.waitFor("out", 52)
	if got := w.waitFor("bad", 2); len(got) != 2 {
		t.Errorf("bad %v", got)
	}
	w.waitCommitted("k", 54)
	mu.Lock()
	defer mu.Unlock()
	if calls["once"] != 2 || calls["reject"] != 1 || sizes[0] < 2 {
		t.Errorf("calls %v, sizes %v", calls, sizes)
	}
}

// A culprit that makes the whole batch fail while the dependency works ends alone; its neighbours go through.
func TestBatchIsHalvedWhereTheCanaryPasses(t *testing.T) {
	w := newWorld(t)
	work := func(_ context.Context, b stage.Batch[string, counts]) stage.BatchResult[counts] {
		res := stage.BatchResult[counts]{Errors: map[int]error{}}
		for i, m := range b.Messages {
			if m.Value == "culprit" {
				for j := range b.Messages {
					res.Errors[j] = stage.Outage("store", 0, fmt.Errorf("500"))
				}
				res.Outputs = nil
				return res
			}
			_ = i
			res.Outputs = append(res.Outputs, out.Record(m.Key, m.Value))
		}
		return res
	}
	g := group(t, engine.Batch(in, engine.BatchOptions{MaxMessages: 8, MaxBytes: 1 << 20, Linger: 5 * time.Millisecond}, work),
		engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad),
		engine.WithCanary(func(context.Context, string) error { return nil }))
	w.send("k", "1", "2", "3", "culprit", "5", "6", "7", "8")
	w.run("a", g)
	w.waitFor("out", 7)
	if got := w.waitFor("bad", 1); fmt.Sprint(got) != "[transient:store]" {
		t.Errorf("bad %v", got)
	}
	w.waitCommitted("k", 8)
}

// A message that makes the handler panic, and one whose output is too large, fail alone, also where nothing is probed.
func TestBatchFindsTheMessageThatNobodyNames(t *testing.T) {
	w := newWorld(t)
	work := func(_ context.Context, b stage.Batch[string, counts]) (res stage.BatchResult[counts]) {
		for _, m := range b.Messages {
			v := m.Value
			switch v {
			case "panic":
				panic("at the disco")
			case "large":
				v = string(make([]byte, 2<<20))
			}
			res.Outputs = append(res.Outputs, out.Record(m.Key, v))
		}
		return res
	}
	g := group(t, engine.Batch(in, engine.BatchOptions{MaxMessages: 8, MaxBytes: 1 << 20, Linger: 5 * time.Millisecond}, work),
		engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad))
	w.send("k", "1", "panic", "3", "4", "large", "6", "7", "8")
	w.run("a", g)
	w.waitFor("out", 6)
	if got := w.waitFor("bad", 2); fmt.Sprint(got) != "[message:panic message:too_large]" {
		t.Errorf("bad %v", got)
	}
	w.waitCommitted("k", 8)
}

// A stranger's old row that comes late must not be the last one in the table (contract rule 12).
func TestOwnerFollowsItsTable(t *testing.T) {
	w := newWorld(t)
	g := group(t,
		engine.Input(in, func(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
			return stage.Result[counts]{Row: seen(row, m), Said: []stage.Output{said.Record(m.Key, m.Value)}}, nil
		}),
		engine.Table(countsCodec{}, mergeCounts))
	w.run("a", g)
	w.send("k", "1", "2")
	w.waitFor("said", 2)
	w.stranger(map[string]int64{"1": 1, "stranger": 7})
	kafkatest.Wait(t, "the row to be written again", func() bool {
		last := w.lastRow()
		return last["2"] == 2 && last["stranger"] == 7
	})
}

func TestTimerFiresForRows(t *testing.T) {
	w := newWorld(t)
	g := group(t,
		engine.Input(in, kept),
		engine.Table(countsCodec{}, mergeCounts),
		engine.Timer(stage.Timer[counts]{
			Next: func(row *counts) (time.Time, bool) { return time.Unix(0, 0), row.Last["done"] == 0 },
			Fire: func(_ context.Context, key string, _ *counts, _ func() bool) ([]stage.Output, error) {
				return []stage.Output{in.Record(key, "done"), said.Record(key, "fired")}, nil
			},
		}))
	stop := w.run("a", g)
	w.send("k", "1")
	w.waitFor("said", 1)
	w.waitCommitted("k", 2)
	stop()
	if got := w.values("said"); len(got) != 1 {
		t.Errorf("fired %d times, want once", len(got))
	}
}
