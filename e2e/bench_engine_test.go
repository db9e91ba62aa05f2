package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
)

// committed are the committed offsets of a group on a topic, by partition.
func committed(b *testing.B, c *kgo.Client, group, topic string) map[int32]int64 {
	b.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	t := kmsg.NewOffsetFetchRequestTopic()
	t.Topic = topic
	for p := range int32(partitionsOfBroker) {
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	res, err := req.RequestWith(ctx, c)
	if err != nil {
		b.Fatal(err)
	}
	out := map[int32]int64{}
	if res.ErrorCode == groupNotFound {
		return map[int32]int64{0: -1, 1: -1, 2: -1, 3: -1}
	}
	for _, t := range res.Topics {
		for _, p := range t.Partitions {
			out[p.Partition] = p.Offset
		}
	}
	for _, g := range res.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				out[p.Partition] = p.Offset
			}
		}
	}
	if len(out) != partitionsOfBroker {
		b.Fatalf("offsets of %d partitions, error code %d", len(out), res.ErrorCode)
	}
	return out
}

// groupNotFound is Kafka's error code of a group that nobody has joined yet.
const groupNotFound = 69

// BenchmarkRecoveryAfterKill kills a pod of the chunker 20 times while records flow, and reports how long it takes from the
// kill until every partition has a new committed offset: with the same pod started again at once, and with another pod
// taking over.
func BenchmarkRecoveryAfterKill(b *testing.B) {
	for _, mode := range []string{"restarted", "taken-over"} {
		b.Run(mode, func(b *testing.B) {
			for b.Loop() {
				took := recoveries(b, mode == "restarted")
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
				b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "worst-ms")
			}
		})
	}
}

// watched is a pod of the chunker that tells when it is ready.
type watched struct {
	*process
	health api
}

func (p *pods) watched(name string) watched {
	at := freeAddress(p.t)
	return watched{start(p.t, name, append(p.env, "WAYMARK_MONITOR_LISTEN="+at), "run", "chunker", "--data-dir", p.dir+"/"+name), api{p.t, "http://" + at}}
}

func recoveries(b *testing.B, restart bool) []time.Duration {
	p := newPods(b)
	p.startBroker()
	first := p.watched("first")
	first.health.waitReady()
	second := first
	if !restart {
		second = p.watched("second")
		second.health.waitReady()
	}
	f := p.startFlow(b)
	eventually(b, "the first commits", func() error { return f.advanced(map[int32]int64{0: 0, 1: 0, 2: 0, 3: 0}) })
	var took []time.Duration
	for range 20 {
		first.kill(9)
		began, from := time.Now(), f.committed()
		if restart {
			first.launch()
		}
		eventually(b, "new commits everywhere", func() error { return f.advanced(from) })
		took = append(took, time.Since(began))
		if !restart {
			first.launch()
			first.health.waitReady()
			now := f.committed()
			eventually(b, "both to work", func() error { return f.advanced(now) })
			first, second = second, first
		}
	}
	f.end()
	return took
}

// flow is a client that sends records to the chunker, evenly to all partitions, and looks what it commits.
type flow struct {
	b   *testing.B
	c   *kgo.Client
	end func()
}

func (p *pods) startFlow(b *testing.B) *flow {
	b.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(p.broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ { // a delete of an unknown document: the cheapest record there is
			c.Produce(ctx, &kgo.Record{Topic: "waymark.documents", Key: fmt.Appendf(nil, "doc-%d", i), Partition: int32(i % partitionsOfBroker)}, nil)
			pause(5 * time.Millisecond)
		}
	}()
	end := sync.OnceFunc(func() {
		stop()
		<-ended
		c.Close()
	})
	b.Cleanup(end)
	return &flow{b, c, end}
}

func (f *flow) committed() map[int32]int64 {
	f.b.Helper()
	return committed(f.b, f.c, "waymark-chunker", "waymark.documents")
}

// advanced is an error unless every partition has a committed offset behind from.
func (f *flow) advanced(from map[int32]int64) error {
	for part, offset := range f.committed() {
		if offset <= from[part] {
			return fmt.Errorf("partition %d stands at %d", part, offset)
		}
	}
	return nil
}

// BenchmarkTableOfMessageIDs fills the chunker's table with rows of one message id each (a million, or WAYMARK's own number
// in E2E_IDS) and reports how long a fresh pod takes to recover it, and its resident memory then.
func BenchmarkTableOfMessageIDs(b *testing.B) {
	n := messageIDs(b, 1_000_000)
	for b.Loop() {
		p := newPods(b)
		p.startBroker()
		fillChunkerTable(b, p.broker, n)
		began := time.Now()
		pod := p.watched("pod")
		within(b, deadline+time.Duration(n)*100*time.Microsecond, "the pod to recover its table", func() error {
			code, answer, err := pod.health.try(http.MethodGet, "/readyz", nil, nil)
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("%d %s", code, answer)
			}
			return err
		})
		b.ReportMetric(time.Since(began).Seconds(), "s-to-recover")
		b.ReportMetric(residentMB(b, pod.cmd.Process.Pid), "RSS-MB")
	}
}

// BenchmarkTakeoverOfALargeTable kills one of two pods of the chunker whose table has rows of 200,000 message ids (or E2E_IDS),
// and reports how long it takes until every partition has a new committed offset: with kafka.standby and without. The
// session timeout is part of it.
func BenchmarkTakeoverOfALargeTable(b *testing.B) {
	n := messageIDs(b, 200_000)
	for _, standby := range []bool{false, true} {
		b.Run(fmt.Sprintf("standby=%t", standby), func(b *testing.B) {
			for b.Loop() {
				took, rss := takeover(b, n, standby)
				b.ReportMetric(took.Seconds(), "s-to-take-over")
				b.ReportMetric(rss, "RSS-MB")
			}
		})
	}
}

func takeover(b *testing.B, rows int, standby bool) (took time.Duration, rss float64) {
	p := newPods(b)
	p.startBroker()
	fillChunkerTable(b, p.broker, rows)
	p.env = append(p.env, fmt.Sprintf("WAYMARK_KAFKA_STANDBY=%t", standby))
	first := p.watched("first")
	first.health.waitReady()
	second := p.watched("second")
	second.health.waitReady()
	f := p.startFlow(b)
	eventually(b, "commits everywhere", func() error { return f.advanced(map[int32]int64{0: 0, 1: 0, 2: 0, 3: 0}) })
	first.kill(9)
	began, from := time.Now(), f.committed()
	eventually(b, "new commits everywhere", func() error { return f.advanced(from) })
	took = time.Since(began)
	f.end()
	return took, residentMB(b, second.cmd.Process.Pid)
}

// messageIDs is how many rows the chunker's table gets: E2E_IDS where it is set.
func messageIDs(b *testing.B, usual int) int {
	b.Helper()
	s := os.Getenv("E2E_IDS")
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func fillChunkerTable(b *testing.B, broker string, n int) {
	b.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.MaxBufferedRecords(50_000))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	codec := wire.NewCodecs(time.Now).ChunkerRow
	for i := range n {
		v, err := rag.NewVersion(0, int64(i))
		if err != nil {
			b.Fatal(err)
		}
		row := ledger.ChunkerRow{Latest: v, Messages: map[string]ledger.Submission{fmt.Sprintf("0195e7a0-0000-7000-8000-%012d", i): {Version: v, Hash: rag.Hash{1}, At: time.Now()}}}
		value, err := codec.Encode(row)
		if err != nil {
			b.Fatal(err)
		}
		c.Produce(b.Context(), &kgo.Record{Topic: "waymark-chunker-table", Key: fmt.Appendf(nil, "document-%d", i), Value: value}, nil)
	}
	if err := c.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}
