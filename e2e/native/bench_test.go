package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/go-openapi/strfmt"
	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	weaviateclient "github.com/weaviate/weaviate-go-client/v4/weaviate"
	grpcconfig "github.com/weaviate/weaviate-go-client/v4/weaviate/grpc"
	"github.com/weaviate/weaviate/entities/models"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed/builtin"
	"github.com/waymarkhq/waymark/rag/split"
)

const (
	benchVariable       = "E2E_BENCH"       // runs the measurements of this file
	benchDocsVariable   = "BENCH_DOCUMENTS" // 1,500 unless set
	benchRoundsVariable = "BENCH_ROUNDS"    // 3 unless set; the machine is not the same from one minute to the next
	benchNodesVariable  = "BENCH_NODES"     // 1: one broker without replication, instead of three
	benchPoll           = 200 * time.Millisecond
	benchWriters        = 4
	benchBatch          = 100
)

// needBench skips what measures and does not judge.
func needBench(t *testing.T) (documents, rounds int) {
	t.Helper()
	needNative(t)
	if os.Getenv(benchVariable) == "" {
		t.Skipf("NOT RUN: it measures; `make bench-weaviate` sets %s", benchVariable)
	}
	return number(t, benchDocsVariable, 1500), number(t, benchRoundsVariable, 3)
}

// number is what a variable says.
func number(t *testing.T, variable string, unset int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return unset
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q", variable, text)
	}
	return n
}

// benchDocuments are JSON documents of one to three kilobytes: sentences of words as frequent as in a text.
func benchDocuments(n int) []article {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]article, n)
	for i := range out {
		var b strings.Builder
		for size := 1000 + r.IntN(2000); b.Len() < size; {
			for range 6 + r.IntN(12) {
				fmt.Fprintf(&b, "word%d ", int(r.ExpFloat64()*700))
			}
			b.WriteString("end. ")
			if r.IntN(4) == 0 {
				b.WriteString("\n\n")
			}
		}
		out[i] = article{fmt.Sprintf("doc-%d", i), b.String(), fmt.Sprintf("message-%d", i)}
	}
	return out
}

// record of a document, as any producer may write it.
func (a article) record(t *testing.T, topic string) *kgo.Record {
	t.Helper()
	value, err := json.Marshal(map[string]string{"text": a.text})
	if err != nil {
		t.Fatal(err)
	}
	return &kgo.Record{Topic: topic, Key: []byte(a.id), Value: value, Headers: []kgo.RecordHeader{{Key: "message-id", Value: []byte(a.messageID)}}}
}

func produceDocuments(t *testing.T, topic string, docs []article) {
	t.Helper()
	c := kafkaClient(t)
	for _, d := range docs {
		c.Produce(t.Context(), d.record(t, topic), func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// count is how many objects a collection holds.
func (w *weaviate) count(ctx context.Context, class string) (int, error) {
	var answer struct {
		Data struct {
			Aggregate map[string][]struct{ Meta struct{ Count int } }
		}
	}
	query := fmt.Sprintf("{Aggregate {%s {meta {count}}}}", class)
	if err := w.server().Call(ctx, http.MethodPost, "/v1/graphql", map[string]string{"query": query}, &answer); err != nil {
		return 0, err
	}
	if all := answer.Data.Aggregate[class]; len(all) == 1 {
		return all[0].Meta.Count, nil
	}
	return 0, nil
}

// rate follows a collection until done, and gives the objects per second between a tenth of what there will be and the
// last one.
func (w *weaviate) rate(t *testing.T, class string, about int, done func() (bool, error)) (perSecond float64, objects int) {
	t.Helper()
	var began, grown time.Time
	from, last := 0, 0
	// Rarely: each look costs the store and the pipeline's API something.
	err := poll(t.Context(), deadline, benchPoll, func() error {
		n, err := w.count(t.Context(), class)
		if err != nil {
			return err
		}
		if n > last {
			last, grown = n, time.Now()
		}
		if began.IsZero() && n >= about/10 {
			began, from = time.Now(), n
		}
		finished, err := done()
		if err == nil && !finished {
			err = fmt.Errorf("%d objects", n)
		}
		return err
	})
	if err != nil {
		t.Fatalf("all objects of %s: %v", class, err)
	}
	return float64(last-from) / grown.Sub(began).Seconds(), last
}

// TestThroughputBesideABareLoop runs the same documents through a loop of sarama, the splitter, the model and the Weaviate
// client, which keeps no state and repairs nothing, and through the pipeline in one pod, in turn. In the last round documents
// come at half of the pipeline's rate afterwards, and each one's way is timed.
func TestThroughputBesideABareLoop(t *testing.T) {
	n, rounds := needBench(t)
	w := needWeaviate(t)
	docs := benchDocuments(n)
	for round := 1; round <= rounds; round++ {
		b := benchRound{t: t, w: w, docs: docs, number: round}
		bareRate, chunks := b.bare()
		b.pipeline(bareRate, chunks, round == rounds)
	}
}

// benchRound is one turn of each.
type benchRound struct {
	t      *testing.T
	w      *weaviate
	docs   []article
	number int
}

func (b benchRound) cpu(what string, of time.Duration) {
	b.t.Logf("round %d: CPU s for 1,000 documents: %s %.2f", b.number, what, of.Seconds()/float64(len(b.docs))*1000)
}

func (b benchRound) bare() (perSecond float64, chunks int) {
	b.t.Helper()
	l := newBareLoop(b.t, b.w, b.docs, b.number)
	cpu := processCPU(b.t, os.Getpid())
	perSecond, chunks = l.run(b.t)
	b.cpu("the bare loop (and asking for its progress)", processCPU(b.t, os.Getpid())-cpu)
	return perSecond, chunks
}

func (b benchRound) pipeline(bareRate float64, about int, timed bool) {
	t, name := b.t, fmt.Sprintf("bench%d", b.number)
	t.Helper()
	p := newPods(t, name)
	pod := p.run("all", append([]string{"api"}, workers...)...)
	p.waitReady()
	// All of it counts: the first stages are done with most documents before the store has a tenth of them.
	cpu := processCPU(t, pod.cmd.Process.Pid)
	produceDocuments(t, name+".documents", b.docs)
	rate, chunks := b.w.rate(t, collection(name), about, func() (bool, error) {
		s, err := p.api.Stats(t.Context())
		return err == nil && int(s.Documents["indexed"]) == len(b.docs), nil
	})
	b.cpu("the pod", processCPU(t, pod.cmd.Process.Pid)-cpu)
	t.Logf("round %d: %d documents: bare loop %.0f chunks/s (%d chunks), pipeline %.0f chunks/s (%d chunks): %.2f of the bare loop; load %s",
		b.number, len(b.docs), bareRate, about, rate, chunks, rate/bareRate, loadAverage())
	if timed {
		p.latency(b.docs, rate/(float64(chunks)/float64(len(b.docs)))/2)
	}
	pod.signal(syscall.SIGTERM)
	usage, ok := pod.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("no usage")
	}
	t.Logf("round %d: the pod has %d MB at most", b.number, usage.Maxrss/1024)
}

// processCPU is the processor time that a process has used, in the kernel's ticks of 10 ms.
func processCPU(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name may hold anything
	fields := strings.Fields(rest)
	var user, system int64
	if n, _ := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); n != 2 {
		t.Fatalf("processor time in %q", b)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// latencyDocuments are at most so many.
const latencyDocuments = 300

// latency sends changed documents at a rate and tells how long each took from its record to its final status.
func (p *pods) latency(docs []article, perSecond float64) {
	p.t.Helper()
	docs = slices.Clone(docs[:min(len(docs), latencyDocuments)])
	c := kafkaClient(p.t)
	every := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer every.Stop()
	for i := range docs {
		docs[i].text, docs[i].messageID = docs[i].text+"changed.", docs[i].messageID+"-changed"
		if err := c.ProduceSync(p.t.Context(), docs[i].record(p.t, p.name+".documents")).FirstErr(); err != nil {
			p.t.Fatal(err)
		}
		<-every.C
	}
	took := make([]time.Duration, len(docs))
	for i, d := range docs {
		p.final(d.id, d.messageID)
		took[i] = p.timed(d)
	}
	slices.Sort(took)
	p.t.Logf("at %.0f documents/s, half of the maximum: from record to final status p50 %s, p99 %s (%d documents); load %s", perSecond,
		took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond), len(took), loadAverage())
}

// timed is the time between the first and the last event of a submission.
func (p *pods) timed(d article) time.Duration {
	p.t.Helper()
	status, body, err := p.api.Call(p.t.Context(), http.MethodGet, "/v1/messages/"+d.messageID+"?document_id="+d.id)
	var m struct {
		Events []struct {
			At time.Time `json:"at"`
		} `json:"events"`
	}
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil || len(m.Events) == 0 {
		p.t.Fatalf("%s: %d %s, %v", d.messageID, status, body, err)
	}
	first, last := m.Events[0].At, m.Events[0].At
	for _, e := range m.Events {
		if e.At.Before(first) {
			first = e.At
		}
		if e.At.After(last) {
			last = e.At
		}
	}
	return last.Sub(first)
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}

// bareLoop is the work without a promise.
type bareLoop struct {
	w        *weaviate
	class    string
	topic    string
	cfg      kafka.Config
	client   *weaviateclient.Client
	splitter split.Splitter
	model    *builtin.Model
	batches  chan []*models.Object
}

func newBareLoop(t *testing.T, w *weaviate, docs []article, round int) *bareLoop {
	t.Helper()
	l := &bareLoop{w: w, class: fmt.Sprintf("BareLoop%d", round), topic: fmt.Sprintf("bare%d.documents", round),
		cfg: kafka.Config{Brokers: suite.brokers.Addrs()}, model: builtin.New(), batches: make(chan []*models.Object)}
	spec := kafka.TopicSpec{Name: l.topic, Partitions: 4, Replication: 1}
	if k, ok := suite.brokers.(killable); ok && k.Nodes() >= 3 {
		spec.Replication = 3
	}
	if _, err := kafka.Apply(t.Context(), l.cfg, []kafka.TopicSpec{spec}); err != nil {
		t.Fatal(err)
	}
	produceDocuments(t, spec.Name, docs)
	var err error
	if l.splitter, err = split.New(split.Options{Tokens: 200, Overlap: 30, MaxPieces: 20_000}); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	l.client, err = weaviateclient.NewClient(weaviateclient.Config{Host: u.Host, Scheme: u.Scheme, GrpcConfig: &grpcconfig.Config{Host: w.grpc}})
	if err != nil {
		t.Fatal(err)
	}
	// The fields of the loop that the sink is measured against.
	text := func(n string) *models.Property { return &models.Property{Name: n, DataType: []string{"text"}} }
	number := func(n string) *models.Property { return &models.Property{Name: n, DataType: []string{"int"}} }
	class := &models.Class{Class: l.class, Vectorizer: "none", VectorIndexType: "hnsw", VectorIndexConfig: map[string]any{"distance": "cosine"},
		Properties: []*models.Property{text("documentId"), number("version"), number("number"), number("count"), text("title"), text("text"),
			{Name: "metadata", DataType: []string{"text[]"}}}}
	if err := l.client.Schema().ClassCreator().WithClass(class).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *bareLoop) run(t *testing.T) (perSecond float64, chunks int) {
	t.Helper()
	cfg, err := l.cfg.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	group, err := sarama.NewConsumerGroup(l.cfg.Brokers, l.topic, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() {
		for range group.Errors() { // drained so that the group goes on
		}
	})
	for range benchWriters {
		working.Go(func() {
			for batch := range l.batches {
				if err := l.write(batch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	consuming := make(chan error, 1)
	go func() { consuming <- group.Consume(ctx, []string{l.topic}, l) }()
	last, still := -1, time.Now()
	perSecond, chunks = l.w.rate(t, l.class, 3000, func() (bool, error) {
		n, err := l.w.count(ctx, l.class)
		if n != last {
			last, still = n, time.Now()
		}
		return n > 0 && time.Since(still) > 3*time.Second, err
	})
	stop()
	if err := errors.Join(<-consuming, group.Close()); err != nil {
		t.Error(err)
	}
	close(l.batches)
	working.Wait()
	return perSecond, chunks
}

func (l *bareLoop) write(batch []*models.Object) error {
	reply, err := l.client.Batch().ObjectsBatcher().WithObjects(batch...).Do(context.Background())
	if err != nil {
		return err
	}
	for _, r := range reply {
		if r.Result == nil || r.Result.Status == nil || *r.Result.Status != models.ObjectsGetResponseAO2ResultStatusSUCCESS {
			return fmt.Errorf("an object failed: %+v", r.Result)
		}
	}
	return nil
}

// Setup, Cleanup and ConsumeClaim implement sarama.ConsumerGroupHandler.
func (*bareLoop) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*bareLoop) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (l *bareLoop) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	var batch []*models.Object
	flush := time.NewTicker(50 * time.Millisecond)
	defer flush.Stop()
	for {
		select {
		case m, ok := <-c.Messages():
			if !ok {
				return nil
			}
			objects, err := l.objects(s.Context(), m)
			if err != nil {
				return err
			}
			batch = append(batch, objects...)
			s.MarkMessage(m, "")
			for len(batch) >= benchBatch {
				l.batches <- batch[:benchBatch]
				batch = batch[benchBatch:]
			}
		case <-flush.C:
			if len(batch) > 0 {
				l.batches <- batch
				batch = nil
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

func (l *bareLoop) objects(ctx context.Context, m *sarama.ConsumerMessage) ([]*models.Object, error) {
	var d struct{ Text string }
	if err := json.Unmarshal(m.Value, &d); err != nil {
		return nil, err
	}
	pieces, err := l.splitter.Split(ctx, d.Text, []rag.Block{{Start: 0, End: len(d.Text)}})
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(pieces))
	for i, p := range pieces {
		texts[i] = d.Text[p.Start:p.End]
	}
	vectors, err := l.model.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	out := make([]*models.Object, len(pieces))
	for i := range pieces {
		out[i] = &models.Object{Class: l.class, ID: strfmt.UUID(uuid.NewString()), Vector: vectors[i].Vector,
			Properties: map[string]any{"documentId": string(m.Key), "version": m.Offset, "number": i, "count": len(pieces), "title": "", "text": texts[i],
				"metadata": []string{}}}
	}
	return out, nil
}
