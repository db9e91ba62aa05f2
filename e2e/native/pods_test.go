package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/e2e/checker"
)

// workers are all roles but the API.
var workers = []string{"chunker", "embedder", "indexer", "tracker", "deadletters"}

// pods are roles as separate processes with topics and a collection of the test's own.
type pods struct {
	t      *testing.T
	name   string // of the test: prefix of the topics, and of the collection
	class  string // the collection, where it has another name
	dir    string
	apiAt  string
	env    []string
	args   []string // of every process, beside its roles
	api    checker.API
	sent   http.Client
	mu     sync.Mutex
	slow   time.Duration // the longest time that a submission took to be accepted
	refuse int           // answers 503 meanwhile
}

// newPods makes the topics of a test.
func newPods(t *testing.T, name string, env ...string) *pods {
	t.Helper()
	at, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	p := &pods{t: t, name: name, dir: t.TempDir(), apiAt: at}
	p.api = checker.API{Base: "http://" + at, Client: &http.Client{Timeout: 30 * time.Second}, Patience: time.Minute}
	p.sent.Timeout = 30 * time.Second
	p.env = append([]string{
		"WAYMARK_KAFKA_BROKERS=" + strings.Join(suite.brokers.Addrs(), ","), "WAYMARK_KAFKA_TOPIC_PREFIX=" + name,
		"WAYMARK_KAFKA_PARTITIONS=4", "WAYMARK_KAFKA_REPLICATION=" + replication(), "WAYMARK_DELIVERY_BACKOFF_INITIAL=200ms",
		"WAYMARK_DELIVERY_REMOVAL_DELAY=6s", "WAYMARK_DELIVERY_VIEW_LAG=5s",
	}, env...)
	p.env = append(p.env, suite.store.env(name)...)
	if out, err := p.command("topics", "apply"); err != nil {
		t.Fatalf("topics apply: %v\n%s", err, out)
	}
	return p
}

// runAll starts the API, and one process with all other roles, and waits until they are ready.
func (p *pods) runAll() (worker *process) {
	p.t.Helper()
	p.run("api", "api")
	worker = p.run("worker", workers...)
	p.waitReady()
	return worker
}

// collection of the test.
func (p *pods) collection() string {
	if p.class != "" {
		return p.class
	}
	return collection(p.name)
}

// command runs a command of the binary to its end.
func (p *pods) command(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, suite.binary, args...)
	cmd.Env = append(os.Environ(), p.env...)
	return cmd.CombinedOutput()
}

// run starts roles as one process, which ends with the test. Its output is shown when the test fails.
func (p *pods) run(name string, roles ...string) *process {
	p.t.Helper()
	args := append(append([]string{"run"}, roles...), "--data-dir", filepath.Join(p.dir, name))
	args = append(args, p.args...)
	if roles[0] == "api" {
		args = append(args, "--api.listen", p.apiAt)
	}
	env := append(p.env[:len(p.env):len(p.env)], "FAULT_TRACE="+filepath.Join(p.dir, name+".trace"))
	proc, err := newProcess(name, filepath.Join(p.dir, name+".log"), env, args...)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := proc.launch(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		proc.signal(syscall.SIGKILL)
		if p.t.Failed() {
			p.t.Log(proc.tail(8 << 10))
		}
	})
	return proc
}

// restart kills a process and starts it again.
func (p *pods) restart(proc *process) {
	p.t.Helper()
	proc.signal(syscall.SIGKILL)
	if err := proc.launch(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pods) waitReady() {
	p.t.Helper()
	eventually(p.t, "the API to be ready", func() error {
		status, b, err := p.api.Call(p.t.Context(), http.MethodGet, "/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, b)
		}
		return err
	})
}

// article is a document as a client submits it, and as the model remembers it.
type article struct{ id, text, messageID string }

// articles makes n articles of two to six kilobytes out of the examples.
func articles(t *testing.T, n int) []article {
	t.Helper()
	files, err := filepath.Glob("../../examples/articles/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example articles: %v", err)
	}
	var out []article
	for round := 0; len(out) < n; round++ {
		took := len(out)
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			from := round * 3000
			if from+1000 > len(b) || len(out) == n {
				continue
			}
			i := len(out)
			text := strings.ToValidUTF8(string(b[from:min(len(b), from+2000+(i%5)*1000)]), "")
			out = append(out, article{fmt.Sprintf("article-%03d", i), text, fmt.Sprintf("message-%03d", i)})
		}
		if len(out) == took {
			t.Fatalf("the examples make only %d articles", took)
		}
	}
	return out
}

// ingest submits a document until it is accepted, as a client with patience does: with the same message id.
func (p *pods) ingest(a article) {
	p.t.Helper()
	body, err := json.Marshal(map[string]string{"id": a.id, "text": a.text})
	if err != nil {
		p.t.Fatal(err)
	}
	p.submit(http.MethodPost, "/ingest", a.messageID, body)
}

func (p *pods) delete(documentID, messageID string) {
	p.t.Helper()
	p.submit(http.MethodDelete, "/v1/documents/"+url.PathEscape(documentID), messageID, nil)
}

// outagePatience is how long a client repeats a submission: longer than any outage here.
const outagePatience = 4 * time.Minute

func (p *pods) submit(method, path, messageID string, body []byte) {
	p.t.Helper()
	began := time.Now()
	err := poll(p.t.Context(), outagePatience, often, func() error {
		status, b, err := p.try(method, path, messageID, body)
		if err == nil && status != http.StatusAccepted {
			err = fmt.Errorf("%d %s", status, b)
		}
		if status == http.StatusServiceUnavailable {
			p.mu.Lock()
			p.refuse++
			p.mu.Unlock()
		}
		return err
	})
	if err != nil && p.t.Context().Err() == nil {
		p.t.Errorf("%s %s: not after %s: %v", method, path, outagePatience, err) // it may be another goroutine than the test's
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = max(p.slow, time.Since(began))
}

func (p *pods) try(method, path, messageID string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.api.Base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", messageID)
	res, err := p.sent.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// patience tells how submissions were answered since the last call.
func (p *pods) patience() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("the longest submission took %s, %d answers were 503", p.slow.Round(time.Millisecond), p.refuse)
	p.slow, p.refuse = 0, 0
	return text
}

// final waits for the last word on a submission.
func (p *pods) final(documentID, messageID string) checker.Message {
	p.t.Helper()
	var m checker.Message
	eventually(p.t, "a final status of "+messageID, func() (err error) {
		if m, err = p.api.Message(p.t.Context(), documentID, messageID); err == nil && !m.Final {
			err = fmt.Errorf("it is %s (%+v)", m.Status, m.Events)
		}
		return err
	})
	return m
}

// model is what must be served: the text of each document, and the last submission of each.
type model struct {
	text map[string]string
	last map[string]string
}

func newModel() *model { return &model{map[string]string{}, map[string]string{}} }

// put submits an article and remembers it.
func (p *pods) put(m *model, a article) {
	p.t.Helper()
	p.ingest(a)
	m.text[a.id], m.last[a.id] = a.text, a.messageID
}

// putAll submits articles beside what else happens, with a pause behind each. What it returns waits for the last one.
func (p *pods) putAll(m *model, all []article, every time.Duration) (wait func()) {
	var sending sync.WaitGroup
	sending.Go(func() {
		for _, a := range all {
			p.put(m, a)
			pause(every)
		}
	})
	return sending.Wait
}

// check waits until each document's last submission has ended well and is served as the model says, and no stage is behind;
// then it compares the store with what is served, object by object, and by vector search.
func (p *pods) check(m *model) {
	p.t.Helper()
	began := time.Now()
	for id, messageID := range m.last {
		want := "indexed"
		if m.text[id] == "" {
			want = "deleted"
		}
		if got := p.final(id, messageID); got.Status != want {
			p.t.Errorf("%s of %s is %s, want %s (%+v)", messageID, id, got.Status, want, got.Error)
		}
	}
	settled := time.Since(began)
	var chunks map[string]bool
	defer p.explain()
	eventually(p.t, "what is served to be what the model says", func() (err error) { chunks, err = p.served(m); return err })
	eventually(p.t, "no stage to be behind", func() error {
		s, err := p.api.Stats(p.t.Context())
		if err != nil {
			return err
		}
		if s.Documents["dead"] > 0 {
			p.t.Errorf("%d documents are dead", s.Documents["dead"])
		}
		for stage, lag := range s.Lag {
			if lag != 0 {
				return fmt.Errorf("%s is %d behind", stage, lag)
			}
		}
		return nil
	})
	p.checkStore(chunks)
	p.checkLog()
	p.t.Logf("%d documents, %d chunks: all ended %s after the last fault; %s", len(m.last), len(chunks), settled.Round(10*time.Millisecond), p.patience())
}

func (p *pods) served(m *model) (map[string]bool, error) {
	chunks := map[string]bool{}
	for id := range m.last {
		hits, err := p.api.Served(p.t.Context(), id)
		if err != nil {
			return nil, err
		}
		if m.text[id] == "" {
			if len(hits) > 0 {
				return nil, fmt.Errorf("%s was deleted and is served", id)
			}
			continue
		}
		if err := checker.CheckServed(id, m.text[id], hits); err != nil {
			return nil, err
		}
		for _, h := range hits {
			chunks[h.ChunkID] = true
		}
	}
	return chunks, nil
}

// checkStore: the store holds exactly the chunks that are served, and a search finds each by its vector.
func (p *pods) checkStore(chunks map[string]bool) {
	p.t.Helper()
	w, ok := suite.store.(*weaviate)
	if !ok {
		eventually(p.t, "the store to hold exactly what is served", func() error {
			s, err := p.api.Stats(p.t.Context())
			if err == nil && s.Store.Chunks != int64(len(chunks)) {
				err = fmt.Errorf("it holds %d chunks, served are %d", s.Store.Chunks, len(chunks))
			}
			return err
		})
		return
	}
	var objects []checker.WeaviateObject
	eventually(p.t, "the store to hold exactly what is served", func() (err error) {
		if objects, err = w.server().Objects(p.t.Context(), p.collection()); err != nil {
			return err
		}
		for _, o := range objects {
			if !chunks[o.ID] {
				return fmt.Errorf("it holds chunk %d of %s version %.0f, which is not served", o.Properties.Number, o.Properties.DocumentID, o.Properties.Version)
			}
		}
		if len(objects) != len(chunks) {
			return fmt.Errorf("it holds %d chunks, served are %d", len(objects), len(chunks))
		}
		return nil
	})
	eventually(p.t, "each chunk to be found by its vector", func() error {
		lost, err := w.server().Unsearchable(p.t.Context(), p.collection(), objects)
		if err == nil && len(lost) > 0 {
			err = fmt.Errorf("%d of %d are not found, such as %s of %s", len(lost), len(objects), lost[0].ID, lost[0].Properties.DocumentID)
		}
		return err
	})
}

// checkLog compares everything that can be seen from outside with a model of the log: every status, every letter, every
// event, every object, and what the processes have committed.
func (p *pods) checkLog() *checker.Report {
	p.t.Helper()
	traces, err := filepath.Glob(filepath.Join(p.dir, "*.trace"))
	if err != nil {
		p.t.Fatal(err)
	}
	target := checker.Target{Broker: strings.Join(suite.brokers.Addrs(), ","), Prefix: p.name, API: p.api, Traces: traces}
	switch s := suite.store.(type) {
	case *weaviate:
		target.Objects = func(ctx context.Context) (map[string][]checker.Object, error) {
			return s.server().Read(ctx, p.collection())
		}
	case sqlite:
		target.Store = s.path(p.name)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*deadline)
	defer cancel()
	r, err := checker.Check(ctx, target)
	if err != nil {
		p.t.Fatalf("the check itself failed: %v", err)
	}
	r.Tell(p.t)
	if r.Submissions == 0 || r.Chunks == 0 || r.Events == 0 || len(traces) > 0 && r.Marks == 0 {
		p.t.Errorf("nothing was checked: %s", r)
	}
	return r
}

// explain tells of a failed test what the store holds and does not find.
func (p *pods) explain() {
	w, ok := suite.store.(*weaviate)
	if !ok || !p.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	objects, err := w.server().Objects(ctx, p.collection())
	if err != nil {
		p.t.Logf("the store: %v", err)
		return
	}
	numbers := map[string][]int{}
	for _, o := range objects {
		version := fmt.Sprintf("%s@%.0f", o.Properties.DocumentID, o.Properties.Version)
		numbers[version] = append(numbers[version], o.Properties.Number)
	}
	lost, err := w.server().Unsearchable(ctx, p.collection(), objects)
	p.t.Logf("the store holds %d objects, the chunks %v; not found by their vectors (%v):", len(objects), numbers, err)
	for _, o := range lost {
		p.t.Logf("  %s: chunk %d of %s version %.0f, %d dimensions", o.ID, o.Properties.Number, o.Properties.DocumentID, o.Properties.Version, len(o.Vector))
	}
}

var errNotYet = errors.New("not yet")
