package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

// killedByItsMessage is the process of the test below: one message kills it whenever it is worked on.
func killedByItsMessage() {
	cfg := kafka.Config{Brokers: []string{os.Getenv("ENGINE_BROKER")}}
	dir := os.Getenv("ENGINE_CHILD")
	g, err := engine.NewGroup("g",
		engine.Input(in, func(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
			if m.Value == "killer" {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			<-time.After(time.Millisecond) // work that others are in the middle of
			return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}, Row: seen(row, m)}, nil
		}),
		engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad))
	if err != nil {
		panic(err)
	}
	err = engine.NewRunner(g, engine.Env{
		Brokers: cfg.Brokers, Sarama: func() (*sarama.Config, error) { return cfg.Sarama() },
		NewSender:  engine.KafkaSender(func() (*kafka.Producer, error) { return kafka.NewProducer(cfg, kafka.ProducerOptions{}) }),
		Stores:     kafka.NewStores(kafka.StoreOptions{Dir: dir + "/state"}),
		InstanceID: "pod", Journal: dir + "/running",
	}).Run(context.Background())
	panic(err)
}

// A message that kills its process is found by working on the suspects alone: its neighbours all get through, and it ends
// at the failure handler (contract rule 6).
func TestMessageThatKillsTheProcessIsFound(t *testing.T) {
	w := newWorld(t)
	var want []string
	for i := range 60 {
		key := fmt.Sprintf("k%d", i%7)
		v := fmt.Sprint(i)
		if i == 20 {
			w.send(key, "killer")
			continue
		}
		want = append(want, v)
		w.send(key, v)
	}
	dir, deaths := t.TempDir(), 0
	done := false
	for !done {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "ENGINE_CHILD="+dir, "ENGINE_BROKER="+w.cfg.Brokers[0])
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = child.Wait(); close(ended) }()
		kafkatest.Wait(t, "its death or its success", func() bool {
			select {
			case <-ended:
				deaths++
				return true
			default:
			}
			if len(w.values("bad")) > 0 && len(slices.Compact(slices.Sorted(slices.Values(w.values("out"))))) == len(want) {
				done = true
				_ = child.Process.Kill()
				<-ended
				return true
			}
			return false
		})
		if deaths > 12 {
			t.Fatal("it dies for ever")
		}
	}
	if got := w.values("bad"); len(slices.Compact(got)) != 1 || got[0] != "message:kills_process" {
		t.Errorf("bad %v", got)
	}
	if deaths < 4 { // once among others, then three times alone
		t.Errorf("it died %d times: it was charged for a death among others", deaths)
	}
	t.Logf("%d deaths", deaths)
}

// memory is what processes of one group share.
type memory struct {
	mu     sync.Mutex
	counts map[string]int
}

func (m *memory) Load(context.Context, string) (map[string]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := map[string]int{}
	for k, v := range m.counts {
		c[k] = v
	}
	return c, nil
}

func (m *memory) Publish(_ context.Context, _, at string, n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < 0 {
		delete(m.counts, at)
		return nil
	}
	m.counts[at] = n
	return nil
}

// What other processes have published counts here as well; a suspect that does no harm is cleared for all.
func TestSuspicionsAreShared(t *testing.T) {
	w := newWorld(t)
	w.send("k", "first", "condemned", "suspect", "last")
	p := kafka.PartitionOf([]byte("k"), partitions)
	shared := &memory{counts: map[string]int{fmt.Sprintf("in@%d-1", p): 3, fmt.Sprintf("in@%d-2", p): 2}}
	g := group(t, engine.Input(in, func(_ context.Context, m stage.Message[string], _ *counts) (stage.Result[counts], error) {
		return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}}, nil
	}), engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad))
	env := w.env("a")
	env.Suspicions, env.Journal = shared, t.TempDir()+"/running"
	w.runIn(env, g)
	if got := w.waitFor("out", 3); strings.Join(got, " ") != "first suspect last" {
		t.Errorf("out %v", got)
	}
	if got := w.waitFor("bad", 1); got[0] != "message:kills_process" {
		t.Errorf("bad %v", got)
	}
	if c, _ := shared.Load(t.Context(), "g"); len(c) != 1 {
		t.Errorf("left %v, want the condemned one alone", c)
	}
}
