package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// storeProxy stands in front of Weaviate and does to writes what a test wants. Nothing of it works on gRPC.
type storeProxy struct {
	*httptest.Server
	t       *testing.T
	forward *httputil.ReverseProxy

	mu      sync.Mutex
	refuse  int            // the status that every write is answered with; 0 lets them through
	refused map[int]int    // by status
	spoil   bool           // of batches
	batches int            // that came while they were spoilt
	partial int            // batches of which the store was given a part only
	unheard int            // batches that were written and not answered
	stored  map[string]int // objects by id whose write was acknowledged
	again   int            // objects that were sent again after that
}

func newStoreProxy(t *testing.T, target string) *storeProxy {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	s := &storeProxy{t: t, forward: httputil.NewSingleHostReverseProxy(to), refused: map[int]int{}, stored: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// use makes processes that are started later reach the store through the proxy, by REST only.
func (s *storeProxy) use(p *pods) {
	p.env = append(p.env, "WAYMARK_WEAVIATE_URL="+s.URL)
	p.args = append(p.args, "--weaviate.grpc=")
}

func (s *storeProxy) set(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = status
}

func (s *storeProxy) refusals(status int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[status]
}

// ServeHTTP is called for every request.
func (s *storeProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	writes := r.Method != http.MethodGet && (strings.HasPrefix(r.URL.Path, "/v1/objects") || strings.HasPrefix(r.URL.Path, "/v1/batch"))
	if !writes {
		s.forward.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	status := s.refuse
	if status != 0 {
		s.refused[status]++
	}
	s.mu.Unlock()
	switch {
	case status != 0:
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"error":[{"message":"no"}]}`, status)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/batch/objects":
		s.batch(w, r)
	default:
		s.forward.ServeHTTP(w, r)
	}
}

// batch hands a batch on: all of it, all but one object, which is answered as failed, or without an answer.
func (s *storeProxy) batch(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Fields  []string          `json:"fields"`
		Objects []json.RawMessage `json:"objects"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.t.Errorf("a batch that is no JSON: %v", err)
		return
	}
	kind := s.next(body.Objects)
	held := body.Objects[0]
	if kind == partly {
		body.Objects = body.Objects[1:]
	}
	b, err := json.Marshal(body)
	if err != nil {
		s.t.Error(err)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	answer := httptest.NewRecorder()
	s.forward.ServeHTTP(answer, r)
	if kind == unheard {
		panic(http.ErrAbortHandler) // the connection ends
	}
	var results []map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &results); err != nil {
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		return
	}
	s.note(results)
	if kind == partly {
		failed := map[string]any{}
		if err := json.Unmarshal(held, &failed); err != nil {
			s.t.Error(err)
		}
		failed["result"] = map[string]any{"status": "FAILED", "errors": map[string]any{"error": []any{map[string]string{"message": "put object: store is not ready"}}}}
		results = append([]map[string]any{failed}, results...)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	if err := json.NewEncoder(w).Encode(results); err != nil {
		s.t.Error(err)
	}
}

// What happens to a batch.
const (
	whole = iota
	partly
	unheard
)

// next decides what happens to a batch.
func (s *storeProxy) next(objects []json.RawMessage) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		var id struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(o, &id) == nil && s.stored[id.ID] > 0 {
			s.again++
		}
	}
	if !s.spoil || len(objects) < 2 {
		return whole
	}
	s.batches++
	switch {
	case s.batches%3 == 1:
		s.partial++
		return partly
	case s.batches%7 == 2:
		s.unheard++
		return unheard
	}
	return whole
}

// note remembers what the store has acknowledged.
func (s *storeProxy) note(results []map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range results {
		result, _ := r["result"].(map[string]any)
		if id, ok := r["id"].(string); ok && result["status"] == "SUCCESS" {
			s.stored[id]++
		}
	}
}

// Row 14: Weaviate is overloaded and says so: nothing dies, and everything goes on when it has recovered.
func TestWeaviateOverloaded(t *testing.T) {
	needNative(t)
	s := newStoreProxy(t, needWeaviate(t).url)
	p := newPods(t, "overloaded")
	s.use(p)
	_, monitor := p.runAllMonitored()
	l := p.startLoad(40, 20*time.Millisecond)
	l.await(20)
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		s.set(status)
		p.awaitOutage(monitor)
		l.await(20)
		eventually(t, "writes to be refused", func() error {
			if n := s.refusals(status); n < 5 {
				return fmt.Errorf("%d were answered with %d", n, status)
			}
			return nil
		})
		s.set(0)
		l.await(20)
	}
	p.check(l.end())
}

// Row 15: Weaviate takes a part of a batch, and says so object by object; or it takes all of it, and the answer is lost. Only
// what failed is sent again, and what had no answer is repaired.
func TestWeaviateTakesAPart(t *testing.T) {
	needNative(t)
	s := newStoreProxy(t, needWeaviate(t).url)
	p := newPods(t, "part")
	s.use(p)
	_, monitor := p.runAllMonitored()
	s.mu.Lock()
	s.spoil = true
	s.mu.Unlock()
	l := p.startLoad(60, 10*time.Millisecond)
	eventually(t, "batches to be spoilt", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.partial < 5 || s.unheard < 3 {
			return fmt.Errorf("%d were taken in part, %d were not answered", s.partial, s.unheard)
		}
		return nil
	})
	m := l.end()
	p.check(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d batches were taken in part, %d written without an answer; %v writes had no answer; %d objects were sent again after their acknowledgement",
		s.partial, s.unheard, p.workerMetric(monitor, "waymark_store_objects_total", `outcome="ambiguous"`), s.again)
	if s.again > 0 {
		t.Errorf("%d objects were sent again although the store had acknowledged them", s.again)
	}
}
