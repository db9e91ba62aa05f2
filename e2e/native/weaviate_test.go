package native

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/e2e/checker"
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
	switch os.Getenv(backendVariable) {
	case onGiven:
		return &weaviate{url: os.Getenv(weaviateVariable), grpc: os.Getenv(grpcVariable)}, nil
	case onEmbedded:
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
	return []string{"WAYMARK_STORE_KIND=sqlite", "WAYMARK_STORE_PATH=" + sqlite{}.path(name)}
}
func (sqlite) path(name string) string { return filepath.Join(suite.folder, name+".db") }

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
	return poll(ctx, time.Minute, often, func() error { return w.ready(ctx) })
}

// server is asked by its own interface.
func (w *weaviate) server() checker.Weaviate {
	return checker.Weaviate{URL: w.url, Client: &http.Client{Timeout: 30 * time.Second}}
}

func (w *weaviate) ready(ctx context.Context) error {
	return w.server().Call(ctx, http.MethodGet, "/v1/.well-known/ready", nil, nil)
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
		eventually(t, "Weaviate after the test", func() error { return w.ready(context.Background()) })
	})
	return w
}
