package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/embedded"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
)

// inFull reports whether the fault runs are to be as long as they can be (make faults), not as short as may be.
func inFull() bool { return os.Getenv("E2E_FAULTS") == "all" }

// slowFault leaves a test out of the ordinary run, and says so.
func slowFault(t *testing.T, why string) {
	t.Helper()
	if !inFull() {
		t.Skipf("NOT RUN: %s; 'make faults' runs it", why)
	}
}

// recovery is the time within which everything must be done once the faults are over (I8). E2E_SLOW stretches it on a
// machine that is busy with other things. See settle for one whose business nobody has told of.
var recovery = time.Duration(60 * float64(time.Second) * slowness())

const (
	// stall is how long nothing may change beyond the time of recovery: what goes on is slow, and no hang.
	stall = 30 * time.Second
	// utmost is how many times the time of recovery a machine that is busy may take.
	utmost = 5
)

// busy reports whether more wants to run on this machine than it has processors for, as of the last minute.
func busy() bool {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return false
	}
	var load float64
	_, err = fmt.Sscan(string(b), &load)
	return err == nil && load > 1.5*float64(runtime.NumCPU())
}

func slowness() float64 {
	if f, err := strconv.ParseFloat(os.Getenv("E2E_SLOW"), 64); err == nil && f > 1 {
		return f
	}
	return 1
}

// world is roles of the test build as processes on an embedded broker in this process and one SQLite file, or on the servers
// that are given (see given_test.go), with a fake embedding service, and the memory of what was submitted.
type world struct {
	*pods
	bin      string
	inside   *embedded.Broker
	produced *kfake.FaultHandle // counts the appends to the embedded broker
	unsafe   *kfake.FaultHandle // counts those that do not ask for all replicas
	embedder *embedtest.Fake
	readers  *checker.Readers
	random   *rand.Rand
	seed     uint64

	mu          sync.Mutex
	submissions [][2]string       // document id and message id, in the order of their acceptance
	bodies      map[string]string // of every message id that was put
	alive       map[string]bool   // documents that were put last, not deleted
	replayed    []string
	procs       []*process
	number      atomic.Int64
	faultsOver  time.Time
	partitions  int32
	mostMB      float64 // instead of that of most, where more is expected
	read        checker.Read
}

// worldOptions of newWorld.
type worldOptions struct {
	seed     uint64
	env      []string
	embedder embedtest.Config
	read     checker.Read // what a record means, where it is not the JSON of the API
	// partitions of the topics; 0 means partitionsOfBroker.
	partitions int32
}

// newWorld lets the test run beside others: what such tests mostly do is wait.
func newWorld(t *testing.T, o worldOptions) *world {
	t.Helper()
	t.Parallel()
	bin, err := faultsBinary()
	if err != nil {
		t.Fatal(err)
	}
	if o.embedder.Dimensions == 0 {
		o.embedder.Dimensions = 32
	}
	w := &world{bin: bin, seed: o.seed, random: rand.New(rand.NewPCG(o.seed, 0)), alive: map[string]bool{}, bodies: map[string]string{}, read: o.read, partitions: o.partitions}
	if w.partitions == 0 {
		w.partitions = partitionsOfBroker
	}
	fake, at := embedtest.Serve(t, o.embedder)
	w.embedder = fake
	w.pods = newPods(t, append([]string{
		"WAYMARK_EMBEDDING_KIND=openai", "WAYMARK_EMBEDDING_URL=" + at, "WAYMARK_EMBEDDING_MODEL=" + embedtest.DefaultModel,
		"WAYMARK_SPLITTING_TOKENS=60", "WAYMARK_SPLITTING_OVERLAP=10",
		"WAYMARK_DELIVERY_REMOVAL_DELAY=2s", "WAYMARK_DELIVERY_VIEW_LAG=1s", "WAYMARK_DELIVERY_BACKOFF_MAX=2s",
	}, o.env...)...)
	w.pods.bin = bin
	w.pods.env = append(w.pods.env, "FAULT_LOG="+w.faultLog())
	if g, ok := given(); ok {
		w.use(g, min(w.partitions, partitionsGiven))
		return w
	}
	w.startEmbedded()
	return w
}

// startEmbedded starts the broker in this process, on the folder and address that it keeps.
func (w *world) startEmbedded() {
	w.t.Helper()
	plan, err := kafka.Plan(kafka.PlanOptions{Prefix: "waymark", Partitions: w.partitions, Replication: 1, Embedded: true})
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := embedded.Start(w.t.Context(), embedded.Options{Dir: w.dir + "/broker", Listen: w.broker, Plan: plan})
	if err != nil {
		w.t.Fatal(err)
	}
	w.inside = b
	w.watchAppends()
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			w.t.Error(err)
		}
	})
}

// watchAppends looks at what every append asks for: one broker cannot show what acks=1 loses, but that it was asked for.
func (w *world) watchAppends() {
	observe := func(when func(kmsg.Request) bool) *kfake.FaultHandle {
		return w.inside.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Count: -1, Observe: true, When: when})
	}
	const allReplicas = -1
	w.produced = observe(nil)
	w.unsafe = observe(func(r kmsg.Request) bool {
		p, ok := r.(*kmsg.ProduceRequest)
		return ok && p.Acks != allReplicas
	})
}

// checkAppends: nothing counts as sent before all replicas that are in sync have it.
func (w *world) checkAppends() {
	w.t.Helper()
	if w.inside == nil {
		return
	}
	if w.produced.Hits() == 0 {
		w.t.Error("no append was looked at")
	}
	if n := w.unsafe.Hits(); n > 0 {
		w.t.Errorf("%d appends do not ask for all replicas", n)
	}
}

// cluster is the embedded broker's, for faults that no other broker lets a test make.
func (w *world) cluster() *kfake.Cluster {
	if w.inside == nil {
		w.t.Skip("NOT RUN: it needs the embedded broker, which fails requests on demand")
	}
	return w.inside.Cluster()
}

// watch begins to look at what readers see.
func (w *world) watch() {
	w.readers = checker.Watch(w.t.Context(), w.readersAPI(), w.seed, 2)
	w.t.Cleanup(w.readers.Stop)
}

// readersAPI takes no for an answer.
func (w *world) readersAPI() checker.API {
	a := w.checkerAPI()
	a.Patience = 0
	return a
}

func (w *world) checkerAPI() checker.API {
	return checker.API{Base: w.api.base, Client: &http.Client{Timeout: 30 * time.Second}, Patience: deadline}
}

// start runs roles in a process of the test build, which writes a trace.
func (w *world) start(name string, roles ...string) *process {
	w.t.Helper()
	p := w.run(name, roles...)
	w.procs = append(w.procs, p)
	return p
}

func (w *world) faultLog() string { return w.dir + "/faults.log" }

// happened counts the faults that processes have noted before they did them.
func (w *world) happened(what string) int {
	b, err := os.ReadFile(w.faultLog())
	if err != nil {
		return 0
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		if strings.TrimSpace(line) == what {
			n++
		}
	}
	return n
}

// sentences of the example articles, from which texts are made.
var sentences = sync.OnceValues(func() ([]string, error) {
	files, err := filepath.Glob("../examples/articles/*.txt")
	if err != nil {
		return nil, err
	}
	var all []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for s := range strings.SplitSeq(strings.ToValidUTF8(string(b), ""), ". ") {
			if len(s) > 40 && len(s) < 400 {
				all = append(all, strings.TrimSpace(s)+".")
			}
		}
	}
	return all, nil
})

// text makes a text that no other one equals, of n sentences.
func (w *world) text(n int) string {
	w.t.Helper()
	all, err := sentences()
	if err != nil || len(all) < 100 {
		w.t.Fatalf("%d example sentences: %v", len(all), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	parts := []string{fmt.Sprintf("This is text number %d.", w.number.Add(1))}
	for range n {
		parts = append(parts, all[w.random.IntN(len(all))])
	}
	return strings.Join(parts, " ")
}

func (w *world) messageID() string { return fmt.Sprintf("m%d", w.number.Add(1)) }

// put submits a text and returns its message id; it insists until the API has accepted it.
func (w *world) put(id, text string) string {
	w.t.Helper()
	m := w.messageID()
	w.putAs(id, text, m)
	return m
}

func (w *world) putAs(id, text, messageID string) {
	w.t.Helper()
	body, err := json.Marshal(map[string]string{"id": id, "text": text})
	if err != nil {
		w.t.Fatal(err)
	}
	w.api.insist(http.StatusAccepted, http.MethodPost, "/v1/documents", http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {messageID}}, body)
	w.mu.Lock()
	w.bodies[messageID] = string(body)
	w.mu.Unlock()
	w.accepted(id, messageID, true)
}

// resend sends a submission again, as a client does that has not heard the answer.
func (w *world) resend(id, messageID string) {
	w.t.Helper()
	w.mu.Lock()
	body, put := w.bodies[messageID]
	w.mu.Unlock()
	h := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {messageID}}
	if put {
		w.api.insist(http.StatusAccepted, http.MethodPost, "/v1/documents", h, []byte(body))
	} else {
		w.api.insist(http.StatusAccepted, http.MethodDelete, "/v1/documents/"+url.PathEscape(id), h, nil)
	}
}

// remove deletes a document and returns the message id.
func (w *world) remove(id string) string {
	w.t.Helper()
	m := w.messageID()
	w.api.insist(http.StatusAccepted, http.MethodDelete, "/v1/documents/"+url.PathEscape(id), http.Header{"Idempotency-Key": {m}}, nil)
	w.accepted(id, m, false)
	return m
}

func (w *world) accepted(id, messageID string, put bool) {
	w.mu.Lock()
	w.submissions = append(w.submissions, [2]string{id, messageID})
	w.alive[id] = put
	w.mu.Unlock()
	if w.readers != nil {
		w.readers.Add(id, messageID)
	}
}

// change does something to a document of some: mostly a new text, sometimes a delete, the same text, or a resent id.
func (w *world) change(documents int) {
	w.t.Helper()
	w.mu.Lock()
	id, kind, size := fmt.Sprintf("doc-%d", w.random.IntN(documents)), w.random.IntN(10), 2+w.random.IntN(8)
	alive := w.alive[id]
	w.mu.Unlock()
	switch {
	case kind == 0 && alive:
		w.remove(id)
	case kind == 1:
		text := w.text(size)
		w.put(id, text)
		w.put(id, text) // unchanged, if it comes to that
	case kind == 2:
		text, m := w.text(size), w.messageID()
		w.putAs(id, text, m)
		w.putAs(id, text, m) // one version
	default:
		w.put(id, w.text(size))
	}
}

// over notes that the last fault is over: from now on the time of recovery counts.
func (w *world) over() { w.faultsOver = time.Now() }

// settle waits until everything submitted has a final status, no stage is behind, and due removals have run (I8). Where the
// machine has other things to do it may take longer than the time of recovery, but something must happen all the time.
func (w *world) settle() {
	w.t.Helper()
	if w.faultsOver.IsZero() {
		w.over()
	}
	ctx, cancel := context.WithDeadline(w.t.Context(), w.faultsOver.Add(utmost*recovery))
	defer cancel()
	var why error
	for quiet, changed := 0, time.Now(); quiet < 2; {
		err := w.idle(ctx)
		if now := time.Now(); err == nil {
			quiet++
		} else if quiet = 0; why == nil || err.Error() != why.Error() {
			why, changed = err, now
		}
		if late := time.Since(w.faultsOver) > recovery; err != nil && late && (!busy() || time.Since(changed) > stall || ctx.Err() != nil) {
			w.t.Fatalf("I8: not done %.0f s after the last fault, and as it is for %.0f s (busy machine: %t): %v\n%s",
				time.Since(w.faultsOver).Seconds(), time.Since(changed).Seconds(), busy(), why, w.unfinished())
		}
		pause(100 * time.Millisecond)
	}
	w.t.Logf("noted: I8: everything was done %.1f s after the last fault", time.Since(w.faultsOver).Seconds())
	w.faultsOver = time.Time{}
}

// unfinished tells of the submissions that have no final status, and of the lag: what somebody has to look at.
func (w *world) unfinished() string {
	var b strings.Builder
	w.mu.Lock()
	all := slices.Clone(w.submissions)
	w.mu.Unlock()
	for _, s := range all {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		m, err := w.checkerAPI().Message(ctx, s[0], s[1])
		cancel()
		if !m.Final && b.Len() < 4000 {
			fmt.Fprintf(&b, "%s of %s: version %d, %s %+v (%v)\n", s[1], s[0], m.Version, m.Status, m.Events, err)
		}
	}
	code, stats, err := w.api.try(http.MethodGet, "/v1/stats", nil, nil)
	fmt.Fprintf(&b, "stats: %d %s %v\n", code, stats, err)
	for _, p := range w.procs {
		if p.running() {
			code, ready, err := (api{w.t, "http://" + p.monitor}).try(http.MethodGet, "/readyz", nil, nil)
			fmt.Fprintf(&b, "%s: %d %s %v\n", p.name, code, ready, err)
		}
	}
	return b.String()
}

// idle is nil when nothing is left to do.
func (w *world) idle(ctx context.Context) error {
	if err := w.finals(ctx); err != nil {
		return err
	}
	s, err := w.checkerAPI().Stats(ctx)
	if err != nil {
		return err
	}
	for stage, lag := range s.Lag {
		if lag != 0 {
			return fmt.Errorf("%s is %d behind", stage, lag)
		}
	}
	served, err := w.servedChunks(ctx)
	if err != nil {
		return err
	}
	if served != s.Store.Chunks {
		return fmt.Errorf("the store holds %d chunks, %d are served", s.Store.Chunks, served)
	}
	return nil
}

// finals is nil when every submission that the API accepted has a final status.
func (w *world) finals(ctx context.Context) error {
	w.mu.Lock()
	all := slices.Clone(w.submissions)
	w.mu.Unlock()
	type ask struct {
		MessageID  string `json:"message_id"`
		DocumentID string `json:"document_id"`
	}
	for chunk := range slices.Chunk(all, 1000) {
		var body struct {
			Messages []ask `json:"messages"`
			Timeout  int   `json:"timeout_seconds"`
		}
		body.Timeout = 1
		seen := map[ask]bool{}
		for _, s := range chunk {
			if a := (ask{s[1], s[0]}); !seen[a] {
				seen[a] = true
				body.Messages = append(body.Messages, a)
			}
		}
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		code, answer, err := w.api.try(http.MethodPost, "/v1/messages:wait", http.Header{"Content-Type": {"application/json"}}, b)
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("%d %s %w", code, answer, err)
		}
		var waited struct {
			Pending  int            `json:"pending"`
			Statuses map[string]int `json:"statuses"`
		}
		if err := json.Unmarshal(answer, &waited); err != nil {
			return err
		}
		if waited.Pending > 0 {
			return fmt.Errorf("%d of %d have no final status: %v", waited.Pending, len(body.Messages), waited.Statuses)
		}
	}
	return ctx.Err()
}

// servedChunks is the number of chunks that the documents say are served.
func (w *world) servedChunks(ctx context.Context) (int64, error) {
	var sum int64
	for cursor := ""; ; {
		var page struct {
			Documents  []checker.Document `json:"documents"`
			NextCursor string             `json:"next_cursor"`
		}
		if err := w.checkerAPI().Get(ctx, "/v1/documents?limit=500&cursor="+url.QueryEscape(cursor), &page); err != nil {
			return 0, err
		}
		for _, d := range page.Documents {
			if d.Served != nil {
				sum += int64(d.Served.Chunks)
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return sum, nil
		}
	}
}

// check waits until the run is done and checks all invariants.
func (w *world) check() *checker.Report {
	w.t.Helper()
	w.settle()
	if w.readers != nil {
		w.readers.Stop()
	}
	return w.verify()
}

// verify checks all invariants of a run that is done.
func (w *world) verify() *checker.Report {
	w.t.Helper()
	traces, err := filepath.Glob(w.dir + "/*.trace")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*deadline)
	defer cancel()
	r, err := checker.Check(ctx, checker.Target{
		Broker: w.broker, Prefix: w.prefix, API: w.checkerAPI(), Store: w.dir + "/store.db", Objects: w.objects, Read: w.meaning(), Embed: embedtest.Vector,
		Traces: traces, Readers: w.readers, Strangers: stranger, Replayed: w.replayed,
	})
	if err != nil {
		w.t.Fatalf("the check itself failed: %v", err)
	}
	r.Tell(w.t)
	if r.Submissions == 0 || r.Chunks == 0 || r.Vectors == 0 || r.Events == 0 || r.Marks == 0 {
		w.t.Errorf("nothing was checked: %s", r)
	}
	w.checkAppends()
	w.checkUsage()
	return r
}

func (w *world) meaning() checker.Read {
	if w.read != nil {
		return w.read
	}
	return checker.ReadJSON
}

// stranger begins the keys of what the tests themselves write to internal topics.
const stranger = "stranger-"

// most is what a process of these small worlds may hold in the end (I9).
var most = checker.Usage{MemoryMB: 600, Files: 400, Goroutines: 1500}

func (w *world) checkUsage() {
	w.t.Helper()
	for _, p := range w.procs {
		at := p.monitor
		if at == "" || !p.running() {
			continue
		}
		u, err := checker.API{Base: "http://" + at, Client: http.DefaultClient}.Usage(w.t.Context())
		if err != nil {
			w.t.Errorf("%s: %v", p.name, err)
			continue
		}
		w.t.Logf("noted: I9: %s holds %.0f MB, %.0f files, %.0f goroutines", p.name, u.MemoryMB, u.Files, u.Goroutines)
		limit := most
		limit.MemoryMB = max(limit.MemoryMB, w.mostMB)
		if err := u.Exceeds(limit); err != nil {
			w.t.Errorf("%s: %v", p.name, err)
		}
	}
}
