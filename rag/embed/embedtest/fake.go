package embedtest

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/waymarkhq/waymark/rag/embed"
)

// Defaults of a Config.
const (
	DefaultModel      = "fake-embedding"
	DefaultDimensions = 256
)

const (
	maxRequestBytes = 32 << 20
	keptBatches     = 1000
)

// Config of a Fake.
type Config struct {
	Model      string // the only one it has; "" is DefaultModel
	Dimensions int    // 0 is DefaultDimensions
	APIKey     string // what it asks for; "" asks for none
	MaxBatch   int    // texts of one call; more are answered with 413; 0 is no limit
}

// Fake is an OpenAI-compatible embedding service, as a handler: POST /v1/embeddings, and under /control the same
// control over it as its methods give, for tests in another process. It is safe for concurrent use.
type Fake struct {
	config Config
	mux    *http.ServeMux

	mu       sync.Mutex
	faults   []*Fault
	released chan struct{} // closed to let hanging calls go
	stats    Stats
	texts    map[[sha256.Size]byte]int
}

// Stats count what a Fake was asked for.
type Stats struct {
	Calls    int   `json:"calls"`    // all calls of the service
	Texts    int   `json:"texts"`    // texts answered with a vector, right or wrong, canaries aside
	Distinct int   `json:"distinct"` // different ones among them
	Canaries int   `json:"canaries"` // canary texts answered with a vector
	Batches  []int `json:"batches"`  // texts of each of the last 1,000 calls, faulty ones too
	// Faults counts the calls that each kind has hit: a test whose fault never happened shows nothing.
	Faults map[FaultKind]int `json:"faults"`
}

// NewFake returns a service without faults.
func NewFake(c Config) *Fake {
	if c.Model == "" {
		c.Model = DefaultModel
	}
	if c.Dimensions == 0 {
		c.Dimensions = DefaultDimensions
	}
	f := &Fake{
		config: c, mux: http.NewServeMux(), released: make(chan struct{}),
		stats: Stats{Faults: map[FaultKind]int{}}, texts: map[[sha256.Size]byte]int{},
	}
	f.mux.HandleFunc("POST /v1/embeddings", f.embeddings)
	f.control()
	return f
}

// ServeHTTP answers a call.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.mux.ServeHTTP(w, r) }

// Inject adds a fault. Of several that concern a call the one injected first hits.
func (f *Fake) Inject(fault Fault) error {
	if err := fault.validate(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &fault)
	return nil
}

// Clear removes all faults and lets hanging calls go. It may be called at any time, and often.
func (f *Fake) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
	close(f.released)
	f.released = make(chan struct{})
}

// Stats returns the counts so far.
func (f *Fake) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Distinct = len(f.texts)
	s.Batches = slices.Clone(s.Batches)
	s.Faults = maps.Clone(s.Faults)
	return s
}

// Embedded is how often text was answered with a vector.
func (f *Fake) Embedded(text string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.texts[sha256.Sum256([]byte(text))]
}

type request struct {
	Model    string   `json:"model"`
	Input    []string `json:"input"`
	Encoding string   `json:"encoding_format"`
}

// entry is a vector of a reply, as JSON.
type entry struct {
	index  int
	vector []byte
}

func (f *Fake) embeddings(w http.ResponseWriter, r *http.Request) {
	var req request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes)).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, "the body is not what it should be: "+err.Error())
		return
	}
	fault, released := f.begin(req.Input)
	if fault.Kind == FaultHang || fault.Kind == FaultDelay {
		if !wait(r, released, fault) {
			return
		}
	}
	switch {
	case fault.Kind == FaultReset:
		reset(w)
	case fault.Kind == FaultStatus:
		fault.retryAfter(w.Header())
		if fault.Body == "" {
			refuse(w, fault.Status, http.StatusText(fault.Status))
			return
		}
		w.WriteHeader(fault.Status)
		_, _ = w.Write([]byte(fault.Body)) // a client that has gone needs no answer
	case f.config.APIKey != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+f.config.APIKey)) == 0:
		refuse(w, http.StatusUnauthorized, "incorrect API key provided")
	case req.Model != f.config.Model:
		refuse(w, http.StatusNotFound, fmt.Sprintf("the model %q does not exist", req.Model))
	case len(req.Input) == 0 || slices.Contains(req.Input, "") || req.Encoding != "" && req.Encoding != "float":
		refuse(w, http.StatusBadRequest, "input must hold texts, none of them empty, and encoding_format must be float")
	case f.config.MaxBatch > 0 && len(req.Input) > f.config.MaxBatch:
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("%d texts, at most %d", len(req.Input), f.config.MaxBatch))
	default:
		f.count(req.Input)
		f.answer(w, req.Input, fault)
	}
}

// begin counts the call and takes the fault that hits it; the zero Fault if none does.
func (f *Fake) begin(texts []string) (Fault, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Calls++
	if len(f.stats.Batches) == keptBatches {
		f.stats.Batches = slices.Delete(f.stats.Batches, 0, 1)
	}
	f.stats.Batches = append(f.stats.Batches, len(texts))
	for i, fault := range f.faults {
		if !fault.hits(texts) {
			continue
		}
		if fault.Times > 0 {
			if fault.Times--; fault.Times == 0 {
				f.faults = slices.Delete(f.faults, i, i+1)
			}
		}
		f.stats.Faults[fault.Kind]++
		return *fault, f.released
	}
	return Fault{}, f.released
}

func (f *Fake) count(texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	canaries := embed.CanaryTexts()
	for _, text := range texts {
		if slices.Contains(canaries, text) {
			f.stats.Canaries++
			continue
		}
		f.stats.Texts++
		f.texts[sha256.Sum256([]byte(text))]++
	}
}

func (f *Fake) answer(w http.ResponseWriter, texts []string, fault Fault) {
	entries := make([]entry, len(texts))
	for i, text := range texts {
		entries[i] = entry{i, fault.spoil(text, Vector(text, f.config.Dimensions))}
	}
	entries = fault.rearrange(entries)
	body := []byte(`{"object":"list","data":[`)
	for i, e := range entries {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"object":"embedding","index":`...)
		body = strconv.AppendInt(body, int64(e.index), 10)
		body = append(body, `,"embedding":`...)
		body = append(append(body, e.vector...), '}')
	}
	body = append(body, `],"model":`...)
	body = strconv.AppendQuote(body, f.config.Model)
	body = append(body, `,"usage":{"prompt_tokens":0,"total_tokens":0}}`...)
	switch fault.Kind {
	case FaultGarbage:
		body = []byte("<html><body>It works!</body></html>")
	case FaultCut:
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		body = body[:len(body)/2]
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// wait sits out a hang or a delay; false if the client has gone meanwhile.
func wait(r *http.Request, released <-chan struct{}, fault Fault) bool {
	var due <-chan time.Time
	if fault.Kind == FaultDelay {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-r.Context().Done():
		return false
	case <-released:
	case <-due:
	}
	return true
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "code": status}})
}

// reset closes the connection so that the client sees a reset, not an end.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 cannot be hijacked: the stream is reset instead
	}
	if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// appendVector ends the JSON array that b begins, with the numbers of vector.
func appendVector(b []byte, vector []float32) []byte {
	for _, x := range vector {
		if last := b[len(b)-1]; last != '[' {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return append(b, ']')
}
