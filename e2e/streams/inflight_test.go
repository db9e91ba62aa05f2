package streams

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/internal/benchwork"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/stage"
)

// heapFile is where the process that holds messages writes the bytes of its heap: before, and with all messages in flight.
const heapFile = "heap"

// hold keeps as many messages in flight as it is told, as a batch that waits for more, and writes down what they take.
func (c contender) hold(ctx context.Context) error {
	want, err := strconv.Atoi(os.Getenv(messagesVariable))
	if err != nil {
		return err
	}
	in, _ := c.topics()
	g, err := engine.NewGroup(c.group,
		engine.Batch(in, engine.BatchOptions{MaxMessages: 1 << 30, MaxBytes: 1 << 40, Linger: time.Hour},
			func(context.Context, stage.Batch[[]byte, []byte]) stage.BatchResult[[]byte] {
				return stage.BatchResult[[]byte]{}
			}),
		engine.Table(benchwork.Raw{}, benchwork.Later))
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	r := engine.NewRunner(g, engine.Env{
		Brokers:     c.cfg.Brokers,
		Sarama:      func() (*sarama.Config, error) { return c.cfg.Sarama() },
		NewSender:   engine.KafkaSender(func() (*kafka.Producer, error) { return kafka.NewProducer(c.cfg, kafka.ProducerOptions{}) }),
		Stores:      kafka.NewStores(kafka.StoreOptions{Dir: filepath.Join(c.dir, "state")}),
		MaxInFlight: 1 << 30, MaxInFlightBytes: 1 << 40, Log: slog.New(slog.DiscardHandler), Metrics: engine.NewMetrics(registry),
	})
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	before := heap()
	for ctx.Err() == nil {
		r.Collect()
		if inFlight(registry) >= want {
			text := fmt.Sprintf("%d %d", before, heap())
			if err := os.WriteFile(filepath.Join(c.dir, heapFile), []byte(text), 0o600); err != nil {
				return err
			}
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	return <-ended
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one has finalised
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func inFlight(r *prometheus.Registry) int {
	all, err := r.Gather()
	if err != nil {
		return 0
	}
	for _, f := range all {
		if f.GetName() == "waymark_in_flight" {
			return int(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return 0
}

// BenchmarkMessageInFlight tells how much of the heap a message of 1 KiB takes from its delivery to its end.
func BenchmarkMessageInFlight(b *testing.B) {
	s := newBench(b)
	s.messages = min(s.messages, 60_000)
	for b.Loop() {
		s.runs++
		group := fmt.Sprintf("hold-%d", s.runs)
		s.fill(b, group)
		dir := filepath.Join(b.TempDir(), group)
		cmd := s.contender(b, "hold")(group, dir)
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", messagesVariable, s.messages))
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		end := time.Now().Add(patience)
		var before, with uint64
		for {
			text, err := os.ReadFile(filepath.Join(dir, heapFile))
			if n, _ := fmt.Sscan(strings.TrimSpace(string(text)), &before, &with); err == nil && n == 2 {
				break
			}
			if time.Now().After(end) {
				b.Fatal("the messages are not in flight")
			}
			<-time.After(100 * time.Millisecond)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(with-before)/float64(s.messages), "B/message")
	}
	b.ReportMetric(0, "ns/op") // it says nothing here
}
