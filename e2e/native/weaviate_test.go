package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// storeServer is what stores vectors.
type storeServer interface {
	fmt.Stringer
	// env makes the binary use it, with a collection or a file of the test's own.
	env(name string) []string
	Close()
}

// startStore takes the first that there is: a given Weaviate, a native one, SQLite with the embedded broker.
func startStore(ctx context.Context) (storeServer, error) {
	if given := os.Getenv(weaviateVariable); given != "" {
		return &weaviate{url: given, grpc: os.Getenv(grpcVariable)}, nil
	}
	if os.Getenv(storeVariable) == "sqlite" {
		return sqlite{}, nil
	}
	binary, err := weaviateBinary(ctx)
	if err != nil {
		return nil, err
	}
	log := filepath.Join(suite.folder, "weaviate.log")
	w := &weaviate{url: "http://127.0.0.1:8080", grpc: "127.0.0.1:50051", process: &process{
		name: "weaviate", command: binary, log: log, args: []string{"--host", "127.0.0.1", "--port", "8080", "--scheme", "http"},
		env: []string{
			"PERSISTENCE_DATA_PATH=" + filepath.Join(suite.folder, "weaviate"), "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED=true",
			"AUTOSCHEMA_ENABLED=false", "DEFAULT_VECTORIZER_MODULE=none", "DISABLE_TELEMETRY=true", "GO_PROFILING_DISABLE=true", "LOG_LEVEL=error",
			"CLUSTER_HOSTNAME=node1", "CLUSTER_BIND_ADDR=127.0.0.1", "CLUSTER_ADVERTISE_ADDR=127.0.0.1", "CLUSTER_ADVERTISE_PORT=7946",
			"CLUSTER_GOSSIP_BIND_PORT=7946", "CLUSTER_DATA_BIND_PORT=7947", "RAFT_PORT=8300", "RAFT_INTERNAL_RPC_PORT=8301",
			"RAFT_BOOTSTRAP_EXPECT=1", "RAFT_JOIN=node1:8300", "RAFT_HEARTBEAT_TIMEOUT=1", "RAFT_ELECTION_TIMEOUT=1",
			"RAFT_LEADER_LEASE_TIMEOUT=1", "RAFT_TIMEOUTS_MULTIPLIER=1", "GRPC_PORT=50051", "USE_INVERTED_SEARCHABLE=false",
		},
	}}
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		return nil, err
	}
	return w, w.start(ctx)
}

// sqlite is the embedded store, a file for each test.
type sqlite struct{}

func (sqlite) String() string { return "store: SQLITE" }
func (sqlite) Close()         {}
func (sqlite) env(name string) []string {
	return []string{"WAYMARK_STORE_KIND=sqlite", "WAYMARK_STORE_PATH=" + filepath.Join(suite.folder, name+".db")}
}

// weaviate is a server; process is nil if it is not ours.
type weaviate struct {
	*process
	url, grpc string
}

func (w *weaviate) String() string {
	if w.process == nil {
		return "store: Weaviate, given, " + w.url
	}
	return "store: Weaviate " + weaviateVersion + ", native"
}

func (w *weaviate) Close() {
	if w.process != nil {
		w.signal(syscall.SIGKILL)
	}
}

func (w *weaviate) env(name string) []string {
	return []string{"WAYMARK_STORE_KIND=weaviate", "WAYMARK_WEAVIATE_URL=" + w.url, "WAYMARK_WEAVIATE_GRPC=" + w.grpc, "WAYMARK_WEAVIATE_COLLECTION=" + collection(name)}
}

// collection of a test.
func collection(name string) string {
	return strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "-", "_")
}

func (w *weaviate) start(ctx context.Context) error {
	if err := w.launch(); err != nil {
		return err
	}
	return poll(ctx, time.Minute, func() error { return w.call(ctx, http.MethodGet, "/v1/.well-known/ready", nil, nil) })
}

// call asks the server; into may be nil.
func (w *weaviate) call(ctx context.Context, method, path string, body, into any) error {
	var send io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		send = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, send)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d: %s", method, path, res.StatusCode, b)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(b, into)
}

// object is one that the server holds.
type object struct {
	ID         string    `json:"id"`
	Vector     []float32 `json:"vector"`
	Properties struct {
		DocumentID string  `json:"documentId"`
		Version    float64 `json:"version"`
		Number     int     `json:"number"`
	} `json:"properties"`
}

// objects lists a collection, with vectors.
func (w *weaviate) objects(ctx context.Context, class string) ([]object, error) {
	var all []object
	for after := ""; ; {
		var page struct{ Objects []object }
		if err := w.call(ctx, http.MethodGet, "/v1/objects?include=vector&limit=500&class="+class+"&after="+after, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Objects...)
		if len(page.Objects) < 500 {
			return all, nil
		}
		after = all[len(all)-1].ID
	}
}

// unsearchable are the objects that no search for their own vector finds. Counts and lists do not tell: an object can be
// there whose vector is not in the index.
func (w *weaviate) unsearchable(ctx context.Context, class string, objects []object) ([]object, error) {
	const neighbours, together = 16, 50
	var lost []object
	for some := range slices.Chunk(objects, together) {
		var query strings.Builder
		query.WriteString("{Get {")
		for i, o := range some {
			vector, err := json.Marshal(o.Vector)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&query, "q%d: %s(limit: %d, nearVector: {vector: %s}) {_additional {id distance}} ", i, class, neighbours, vector)
		}
		query.WriteString("}}")
		var answer struct {
			Data struct {
				Get map[string][]struct {
					Additional struct {
						ID       string
						Distance float64
					} `json:"_additional"`
				}
			}
			Errors []any
		}
		if err := w.call(ctx, http.MethodPost, "/v1/graphql", map[string]string{"query": query.String()}, &answer); err != nil {
			return nil, err
		}
		if len(answer.Errors) > 0 {
			return nil, fmt.Errorf("graphql: %v", answer.Errors)
		}
		for i, o := range some {
			hits := answer.Data.Get[fmt.Sprintf("q%d", i)]
			found := len(hits) == neighbours && hits[neighbours-1].Additional.Distance < 1e-5 // crowded out by its doubles
			for _, h := range hits {
				found = found || h.Additional.ID == o.ID
			}
			if !found {
				lost = append(lost, o)
			}
		}
	}
	return lost, nil
}

// needWeaviate gives the server to a test of its own.
func needWeaviate(t *testing.T) *weaviate {
	t.Helper()
	w, ok := suite.store.(*weaviate)
	if !ok {
		t.Skipf("NOT RUN: it needs Weaviate; %s", suite.store)
	}
	return w
}

// needOwnWeaviate gives it to a test that kills it, and sees to it that it runs afterwards.
func needOwnWeaviate(t *testing.T) *weaviate {
	t.Helper()
	w := needWeaviate(t)
	if w.process == nil {
		t.Skipf("NOT RUN: %s is not ours to kill", w)
	}
	t.Cleanup(func() {
		w.signal(syscall.SIGCONT)
		eventually(t, "Weaviate after the test", func() error { return w.call(context.Background(), http.MethodGet, "/v1/.well-known/ready", nil, nil) })
	})
	return w
}
