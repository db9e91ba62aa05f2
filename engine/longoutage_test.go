package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

// hurried is a clock of which a wait takes a moment, and counts in full.
type hurried struct {
	engine.Clock
	mu     sync.Mutex
	waited time.Duration // in the longest waits: those for a dependency
}

// aMoment is what a wait takes.
const aMoment = 2 * time.Millisecond

func (c *hurried) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d >= 30*time.Second {
		c.waited += d
	}
	return time.After(min(d, aMoment))
}

func (c *hurried) hours() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waited.Hours()
}

// A dependency is away for hours while records keep coming. The backlog stays in Kafka: what is in flight is bounded, memory
// is flat, nothing is committed and nothing counts as an attempt. When it is back, everything is done.
func TestHoursOfOutage(t *testing.T) {
	for _, kind := range []string{"messages", "batches"} {
		t.Run(kind, func(t *testing.T) { hoursOfOutage(t, kind == "batches") })
	}
}

func hoursOfOutage(t *testing.T, batches bool) {
	w := newWorld(t)
	const records, size, inFlight = 4000, 2000, 50
	var back atomic.Bool
	var tries atomic.Int64
	errAway := errors.New("refused")
	input := engine.Input(in, func(_ context.Context, m stage.Message[string], _ *counts) (stage.Result[counts], error) {
		if tries.Add(1); !back.Load() {
			return stage.Result[counts]{}, stage.Outage("store", 0, errAway)
		}
		return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, "done")}}, nil
	})
	if batches {
		input = engine.Batch(in, engine.BatchOptions{MaxMessages: 20, MaxBytes: 1 << 20, Linger: time.Millisecond},
			func(_ context.Context, b stage.Batch[string, counts]) (res stage.BatchResult[counts]) {
				res.Errors = map[int]error{}
				tries.Add(1)
				for i, m := range b.Messages {
					if !back.Load() {
						res.Errors[i] = stage.Outage("store", 0, errAway)
						continue
					}
					res.Outputs = append(res.Outputs, out.Record(m.Key, "done"))
				}
				return res
			})
	}
	g := group(t, input, engine.Output(out), engine.Table(countsCodec{}, mergeCounts), engine.OnFailure(toBad))
	env, clock, registry := w.env("a"), &hurried{Clock: engine.SystemClock()}, prometheus.NewRegistry()
	env.Clock, env.Metrics, env.MaxInFlight = clock, engine.NewMetrics(registry), inFlight
	env.Retry = engine.RetryPolicy{Tries: 3, Initial: time.Second, Max: time.Minute}
	value := strings.Repeat("x", size)
	backlog := make([]kafka.Record, records)
	for i := range backlog {
		backlog[i] = kafka.Record{Topic: "in", Key: fmt.Append(nil, "k", i), Value: []byte(value)}
	}
	kafkatest.Produce(t, w.cfg, backlog...)
	r := engine.NewRunner(g, env)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	look := func(hours float64) (heapMB float64) {
		t.Helper()
		kafkatest.Wait(t, fmt.Sprintf("%v hours", hours), func() bool { return clock.hours() >= hours })
		r.Collect()
		if n := gauge(t, registry, "waymark_in_flight"); n == 0 || n > partitions*inFlight {
			t.Errorf("%v messages are in flight, the bound is %d", n, partitions*inFlight)
		}
		if n := gauge(t, registry, "waymark_consumer_lag"); n != records {
			t.Errorf("the lag is %v, want %d: nothing is done", n, records)
		}
		if gauge(t, registry, "waymark_outage") != 1 || r.Ready() == nil {
			t.Error("nobody is told of the outage")
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	early := look(1)
	late := look(12)
	t.Logf("after 1 hour %.1f MB, after 12 hours %.1f MB; %d tries", early, late, tries.Load())
	if late > early+8 {
		t.Errorf("the heap grew from %.1f MB to %.1f MB", early, late)
	}
	back.Store(true)
	if got := w.waitFor("out", records); len(got) != records {
		t.Errorf("%d are done, want %d", len(got), records)
	}
	if got := w.values("bad"); len(got) != 0 {
		t.Errorf("%d failed, such as %s", len(got), got[0])
	}
	kafkatest.Wait(t, "readiness", func() bool { return r.Ready() == nil })
	cancel()
	if err := kafkatest.Receive(t, "end", ended); err != nil {
		t.Error(err)
	}
}

// gauge is the sum of a metric's samples.
func gauge(t *testing.T, g prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	all, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
