package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

var middle = stage.Topic[string]{Name: "middle", Codec: text{}}

// chain are two groups: one keeps rows and passes on to the other.
func chain(t testing.TB) []*engine.Group {
	t.Helper()
	first, err := engine.NewGroup("first",
		engine.Input(in, func(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
			if m.Value == "reject" {
				return stage.Result[counts]{}, stage.Reject("refused", "never")
			}
			return stage.Result[counts]{Outputs: []stage.Output{middle.Record(m.Key, m.Value)}, Row: seen(row, m)}, nil
		}),
		engine.Output(middle),
		engine.Output(bad),
		engine.Table(countsCodec{}, mergeCounts),
		engine.OnFailure(engine.ToDeadLetters[counts]("bad", 0)),
	)
	if err != nil {
		t.Fatal(err)
	}
	second, err := engine.NewGroup("second",
		engine.Input(middle, func(_ context.Context, m stage.Message[string], _ *struct{}) (stage.Result[struct{}], error) {
			return stage.Result[struct{}]{Outputs: []stage.Output{out.Record(m.Key, m.Value+"!")}}, nil
		}),
		engine.Output(out),
	)
	if err != nil {
		t.Fatal(err)
	}
	return []*engine.Group{first, second}
}

func chainPlan(t testing.TB) []kafka.TopicSpec {
	t.Helper()
	plan, err := engine.TopicPlan(engine.TopicOptions{Partitions: partitions, Replication: 1, Embedded: true, Forever: []string{"bad"}}, chain(t)...)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// application is the chain on a broker without topics.
func application(t testing.TB) (*world, engine.Config) {
	t.Helper()
	w := &world{t: t, cfg: kafkatest.Start(t), dir: t.TempDir()}
	return w, engine.Config{Kafka: w.cfg, DataDir: w.dir, Topics: chainPlan(t), CreateTopics: true, Registerer: prometheus.NewRegistry(),
		Retry: engine.RetryPolicy{Tries: 3, Initial: time.Millisecond, Max: 20 * time.Millisecond}}
}

// supervise runs the chain until stop is called.
func supervise(t testing.TB, c engine.Config) (s *engine.Supervisor, stop func()) {
	t.Helper()
	s, err := engine.NewSupervisor(c, chain(t)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = func() {
		t.Helper()
		cancel()
		if err := kafkatest.Receive(t, "the end of the groups", done); err != nil {
			t.Error(err)
		}
	}
	return s, stop
}

func TestSupervisorRunsAChain(t *testing.T) {
	w, c := application(t)
	s, stop := supervise(t, c)
	kafkatest.Wait(t, "readiness", func() bool { return s.Ready() == nil })
	w.send("k", "1", "reject", "2")
	if got := w.waitFor("out", 2); fmt.Sprint(got) != "[1! 2!]" {
		t.Errorf("out %v", got)
	}
	if got := w.waitFor("bad", 1); fmt.Sprint(got) != "[reject]" {
		t.Errorf("bad %v", got)
	}
	stop()
	if s.Ready() == nil {
		t.Error("an ended supervisor is ready")
	}
	for _, name := range []string{"state/first", "journal/first/running", "journal/second/running"} {
		if _, err := os.Stat(filepath.Join(c.DataDir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("it ran twice")
	}

	// The next process on the folder goes on where this one has ended.
	c.Registerer = nil
	_, stop = supervise(t, c)
	w.send("k", "3")
	if got := w.waitFor("out", 3); fmt.Sprint(got) != "[1! 2! 3!]" {
		t.Errorf("out %v", got)
	}
	stop()
}

func TestSupervisorTellsItsHealth(t *testing.T) {
	_, c := application(t)
	s, err := engine.NewSupervisor(c, chain(t)...)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	if code, body := get("/healthz"); code != http.StatusOK || body != `{"status":"ok"}` {
		t.Errorf("healthz: %d %s", code, body)
	}
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable || body != `{"ready":false,"reasons":[{"reason":"not_started","message":"not started"}]}` {
		t.Errorf("readyz: %d %s", code, body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	kafkatest.Wait(t, "readiness", func() bool { code, body := get("/readyz"); return code == http.StatusOK && body == `{"ready":true}` })
	cancel()
	if err := kafkatest.Receive(t, "the end of the groups", done); err != nil {
		t.Error(err)
	}
}

func TestSupervisorWaitsForKafka(t *testing.T) {
	w, c := application(t)
	dir := t.TempDir()
	broker := kafkatest.StartIn(t, dir, chainPlan(t)...)
	address := broker.Addrs()[0]
	kafkatest.Stop(t, broker)
	c.Kafka.Brokers = []string{address}
	s, stop := supervise(t, c)
	kafkatest.Wait(t, "the reason", func() bool {
		err := s.Ready()
		return err != nil && strings.Contains(err.Error(), "looking at the topics")
	})
	kafkatest.StartIn(t, dir)
	w.cfg = c.Kafka
	w.send("k", "1")
	w.waitFor("out", 1)
	stop()
}

func TestSupervisorRefusesWhatCannotWork(t *testing.T) {
	groups := chain(t)
	for name, c := range map[string]struct {
		config engine.Config
		groups []*engine.Group
		want   []string
	}{
		"nothing": {engine.Config{}, nil, []string{"brokers", "data dir", "no group"}},
		"below zero": {engine.Config{Epoch: -1, MaxInFlight: -1, MaxInFlightBytes: -1, DrainTimeout: -1, CreateTopics: true,
			Retry: engine.RetryPolicy{Tries: -1, Initial: -2, Max: -3}}, groups,
			[]string{"epoch", "max in flight:", "max in flight bytes", "drain timeout", "retry tries", "retry initial", "retry max", "create topics"}},
		"half a retry policy":  {engine.Config{Retry: engine.RetryPolicy{Tries: 1}}, groups, []string{"retry:"}},
		"a group twice":        {engine.Config{}, []*engine.Group{groups[0], groups[0]}, []string{"group first: is there twice"}},
		"a name for no folder": {engine.Config{}, []*engine.Group{named(t, "../up")}, []string{`group "../up"`}},
	} {
		_, err := engine.NewSupervisor(c.config, c.groups...)
		for _, part := range c.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not say %q", name, err, part)
			}
		}
	}
}

func named(t testing.TB, name string) *engine.Group {
	t.Helper()
	g, err := engine.NewGroup(name, engine.Input(in, func(context.Context, stage.Message[string], *counts) (stage.Result[counts], error) {
		return stage.Result[counts]{}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestOneProcessPerDataDir(t *testing.T) {
	_, c := application(t)
	s, stop := supervise(t, c)
	defer stop()
	kafkatest.Wait(t, "readiness", func() bool { return s.Ready() == nil })
	c.Registerer = nil
	err := engine.Run(t.Context(), c, chain(t)...)
	var dir *engine.DataDirError
	if !errors.As(err, &dir) || !errors.Is(err, engine.ErrDataDirInUse) || dir.Dir != c.DataDir {
		t.Errorf("a second process gets %v", err)
	}
}

// Half an application is worse than none: a group that cannot run at all ends the others.
func TestAGroupThatCannotRunEndsTheOthers(t *testing.T) {
	_, c := application(t)
	inTheWay := filepath.Join(c.DataDir, "journal", "second", "running")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := engine.Run(t.Context(), c, chain(t)...); err == nil || !strings.Contains(err.Error(), "group second:") {
		t.Errorf("it ended with %v", err)
	}
}

func TestTopicsAreChecked(t *testing.T) {
	_, c := application(t)
	c.CreateTopics, c.Registerer = false, nil
	err := engine.Run(t.Context(), c, chain(t)...)
	var topics *engine.TopicsError
	if !errors.As(err, &topics) || len(topics.Differences) != len(c.Topics) {
		t.Fatalf("without topics: %v", err)
	}
	if _, err := kafka.Apply(t.Context(), c.Kafka, c.Topics); err != nil {
		t.Fatal(err)
	}
	c.CreateTopics, c.Topics[1].Partitions = true, partitions+1
	err = engine.Run(t.Context(), c, chain(t)...)
	if !errors.As(err, &topics) || len(topics.Differences) != 1 || topics.Differences[0].Kind != kafka.DifferencePartitions {
		t.Errorf("with another number of partitions: %v", err)
	}
}

// An input that was made anew starts at offset 0 again, where the rows have seen everything: nobody may work like that.
func TestATopicMadeAnewIsNoticed(t *testing.T) {
	w, c := application(t)
	work := func(key string, records int) {
		t.Helper()
		_, stop := supervise(t, c)
		w.send(key, "x")
		w.waitFor("out", records)
		stop()
		c.Registerer = nil
	}
	work("a", 1)
	remake(t, c, "in")
	err := engine.Run(t.Context(), c, chain(t)...)
	var changed *engine.TopicChangedError
	if !errors.As(err, &changed) || changed.Topic != "in" || changed.Group != "first" || changed.Epoch != 0 {
		t.Fatalf("a topic made anew gives %v", err)
	}
	c.Epoch = 1
	work("b", 2)
	// With its table the topic may go: then no row is left that speaks of it.
	remake(t, c, "in", "first-table")
	work("c", 3)
}

// remake deletes topics, and makes them again.
func remake(t testing.TB, c engine.Config, topics ...string) {
	t.Helper()
	conf, err := c.Kafka.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sarama.NewClusterAdmin(c.Kafka.Brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		if err := admin.DeleteTopic(topic); err != nil {
			t.Fatal(err)
		}
	}
	if err := admin.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := kafka.Apply(t.Context(), c.Kafka, c.Topics); err != nil {
		t.Fatal(err)
	}
}

func TestTheInstanceIDStays(t *testing.T) {
	_, c := application(t)
	read := func() string {
		s, stop := supervise(t, c)
		kafkatest.Wait(t, "readiness", func() bool { return s.Ready() == nil })
		stop()
		c.Registerer = nil
		b, err := os.ReadFile(c.DataDir + "/instance-id")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if first, second := read(), read(); first != second || len(first) < 10 {
		t.Errorf("the instance ids are %q and %q", first, second)
	}
}

func TestTopicPlan(t *testing.T) {
	plan, err := engine.TopicPlan(engine.TopicOptions{Partitions: 12, Replication: 3, Forever: []string{"bad"}}, chain(t)...)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range plan {
		if s.Partitions != 12 || s.Replication != 3 || s.Config["min.insync.replicas"] != "2" {
			t.Errorf("%+v", s)
		}
		got[s.Name] = fmt.Sprint(s.Config["cleanup.policy"], " ", s.Config["retention.ms"], " ", s.Config["max.message.bytes"])
	}
	want := map[string]string{
		"in": "delete 2592000000 12582912", "middle": "delete 2592000000 12582912", "out": "delete 2592000000 13631488",
		"bad": "delete -1 13631488", "first-table": "compact -1 13631488",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the plan is %v, want %v", got, want)
	}
	for _, o := range []engine.TopicOptions{{Replication: 1}, {Partitions: 1}, {Partitions: 1, Replication: 1, Forever: []string{"nobody's"}}} {
		if _, err := engine.TopicPlan(o, chain(t)...); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// A row that nobody can rebuild holds its partition where it cannot be read, instead of counting as missing.
func TestIrreplaceableRowsHold(t *testing.T) {
	w := newWorld(t)
	damaged := "{"
	kafkatest.Produce(t, w.cfg, kafka.Record{Topic: "g-table", Key: []byte("k"), Value: []byte(damaged)})
	g := group(t,
		engine.Input(in, func(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
			return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, fmt.Sprint(row))}, Row: seen(row, m)}, nil
		}),
		engine.Table(engine.Irreplaceable(countsCodec{}), mergeCounts), engine.OnFailure(toBad))
	r := engine.NewRunner(g, w.env("a"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	w.send("k", "1")
	kafkatest.Wait(t, "the outage", func() bool {
		err := r.Ready()
		return err != nil && strings.Contains(err.Error(), "nobody can rebuild")
	})
	cancel()
	if err := kafkatest.Receive(t, "end", done); err != nil {
		t.Error(err)
	}
	if got := append(w.values("out"), w.values("bad")...); len(got) != 0 || w.committed("k") > 0 {
		t.Errorf("it went on: %v, committed %d", got, w.committed("k"))
	}
	var broken *json.SyntaxError
	if _, err := engine.Irreplaceable(countsCodec{}).Decode([]byte(damaged)); !errors.As(err, &broken) || !errors.Is(err, stage.ErrNewerFormat) {
		t.Errorf("the error is %v", err)
	}
}
