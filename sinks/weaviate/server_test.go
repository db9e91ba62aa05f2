package weaviate

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Where the tests find a server: one that runs already, or a binary that they start in a network namespace of their own,
// since some of its ports bind all interfaces whatever it is told.
const (
	urlVariable    = "WEAVIATE_URL"            // http://host:port
	grpcVariable   = "WEAVIATE_GRPC"           // host:port of the same server
	binaryVariable = "WAYMARK_WEAVIATE_SERVER" // path of a binary of version 1.27 to 1.35

	namespaceVariable = "WAYMARK_TEST_IN_NAMESPACE"
)

// realServer is what the tests run against; nil if there is none.
var realServer *server

// noServer says why there is none.
var noServer string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if url := os.Getenv(urlVariable); url != "" {
		realServer = &server{url: url, grpc: os.Getenv(grpcVariable)}
		say("running on the Weaviate server at %s (%s)", url, urlVariable)
		return m.Run()
	}
	binary := findBinary()
	if binary == "" {
		noServer = fmt.Sprintf("neither %s nor %s is set and there is no binary in the cache folder", urlVariable, binaryVariable)
		say("NO WEAVIATE SERVER: %s: what needs one is skipped", noServer)
		return m.Run()
	}
	if os.Getenv(namespaceVariable) == "" {
		code, err := runInNamespace()
		if err == nil {
			return code
		}
		noServer = fmt.Sprintf("no network namespace for %s: %v", binary, err)
		say("NO WEAVIATE SERVER: %s: what needs one is skipped", noServer)
		return m.Run()
	}
	if err := loopbackUp(); err != nil {
		say("loopback of the network namespace: %v", err)
		return 1
	}
	folder, err := os.MkdirTemp("", "weaviate")
	if err != nil {
		say("%v", err)
		return 1
	}
	defer os.RemoveAll(folder)
	realServer = newServer(binary, folder, 18080)
	if err := realServer.start(); err != nil {
		say("%s: %v", binary, err)
		return 1
	}
	defer realServer.kill()
	say("running on a Weaviate server of its own, %s", binary)
	return m.Run()
}

// say writes where nobody can miss it, even without -v.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "sinks/weaviate: "+format+"\n", args...)
}

func findBinary() string {
	if path := os.Getenv(binaryVariable); path != "" {
		return path
	}
	cache := os.Getenv("WAYMARK_CACHE")
	if cache == "" {
		folder, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		cache = filepath.Join(folder, "waymark")
	}
	// With its version, as the end-to-end tests build it; the highest one, as long as the names sort like the versions.
	found, err := filepath.Glob(filepath.Join(cache, "bin", "weaviate-server*"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// needServer skips a test, which the first lines of the output have announced, or gives the server.
func needServer(t testing.TB) *server {
	t.Helper()
	if realServer == nil {
		t.Skip("NOT RUN: no Weaviate server: " + noServer)
	}
	return realServer
}

// server is a Weaviate server.
type server struct {
	url, grpc string

	binary, folder string
	port           int // and the ones after it
	env            []string
	cmd            *exec.Cmd
	log            strings.Builder
}

func newServer(binary, folder string, port int) *server {
	return &server{
		binary: binary, folder: folder, port: port,
		url: fmt.Sprintf("http://127.0.0.1:%d", port), grpc: fmt.Sprintf("127.0.0.1:%d", port+1),
	}
}

// start starts the server and waits until it is ready.
func (s *server) start() error {
	port := func(n int) string { return strconv.Itoa(s.port + n) }
	s.log.Reset()
	s.cmd = exec.Command(s.binary, "--host", "127.0.0.1", "--port", port(0), "--scheme", "http")
	s.cmd.Env = append(os.Environ(),
		"PERSISTENCE_DATA_PATH="+s.folder, "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED=true", "AUTOSCHEMA_ENABLED=false",
		"DEFAULT_VECTORIZER_MODULE=none", "DISABLE_TELEMETRY=true", "GO_PROFILING_DISABLE=true", "LOG_LEVEL=error",
		"CLUSTER_HOSTNAME=node1", "CLUSTER_BIND_ADDR=127.0.0.1", "CLUSTER_ADVERTISE_ADDR=127.0.0.1",
		"CLUSTER_ADVERTISE_PORT="+port(2), "CLUSTER_GOSSIP_BIND_PORT="+port(2), "CLUSTER_DATA_BIND_PORT="+port(3),
		"RAFT_PORT="+port(4), "RAFT_INTERNAL_RPC_PORT="+port(5), "RAFT_BOOTSTRAP_EXPECT=1", "RAFT_JOIN=node1:"+port(4),
		"RAFT_HEARTBEAT_TIMEOUT=1", "RAFT_ELECTION_TIMEOUT=1", "RAFT_LEADER_LEASE_TIMEOUT=1", "RAFT_TIMEOUTS_MULTIPLIER=1",
		"GRPC_PORT="+port(1), "USE_INVERTED_SEARCHABLE=false")
	s.cmd.Env = append(s.cmd.Env, s.env...) // the later wins
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	dieWithParent(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	if err := poll(ctx, s.ready); err != nil {
		s.kill()
		return fmt.Errorf("not ready: %w\n%s", err, s.log.String())
	}
	return nil
}

func (s *server) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/.well-known/ready", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// kill ends the server without warning.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// poll asks until it is true or the context is done.
func poll(ctx context.Context, is func(context.Context) bool) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !is(ctx) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}
