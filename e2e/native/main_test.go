package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/e2e/kafkalocal"
)

// The variables of these tests. None begins with WAYMARK_, which the binary would refuse.
const (
	nativeVariable   = "E2E_NATIVE"    // see the package's comment
	backendVariable  = "E2E_BACKEND"   // given, native or embedded: take no other servers; unset: the first of them that there is
	brokersVariable  = "KAFKA_BROKERS" // host:port,…
	weaviateVariable = "WEAVIATE_URL"  // http://host:port
	grpcVariable     = "WEAVIATE_GRPC" // host:port of the same server; none: REST only

	folderVariable = "E2E_FOLDER" // set for the run inside of the namespaces
	binaryVariable = "E2E_BINARY"
)

// suite is what all tests share.
var suite struct {
	binary  string
	folder  string
	brokers brokers
	store   storeServer
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(composeVariable) != "" {
		suite.brokers, suite.store = givenBrokers(nil), sqlite{}
		say("docker-compose.yml alone, on the Docker engine of this machine")
		return m.Run()
	}
	if os.Getenv(nativeVariable) == "" {
		say("!!! NOTHING RUNS ON REAL KAFKA AND WEAVIATE: %s is not set; `make e2e-native` sets it !!!", nativeVariable)
		return m.Run()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if os.Getenv(folderVariable) != "" {
		return inside(ctx, m)
	}
	folder, err := os.MkdirTemp("", "waymark-native-")
	if err != nil {
		say("%v", err)
		return 1
	}
	defer os.RemoveAll(folder)
	binary, err := build(ctx, folder)
	if err != nil {
		say("%v", err)
		return 1
	}
	if err := prepare(ctx); err != nil {
		say("%v", err)
		return 1
	}
	env := []string{folderVariable + "=" + folder, binaryVariable + "=" + binary}
	if out, err := preparePython(ctx, folder, env); err != nil {
		say("no clients in Python: %v\n%s", err, out)
		return 1
	}
	if os.Getenv(backendVariable) == onGiven {
		// What is given is reached from this network.
		for _, e := range env {
			name, value, _ := strings.Cut(e, "=")
			if err := os.Setenv(name, value); err != nil {
				say("%v", err)
				return 1
			}
		}
		return inside(ctx, m)
	}
	code, err := runApart(env...)
	if err != nil {
		say("no namespaces to run in: %v", err)
		return 1
	}
	return code
}

// inside starts what the tests run on and runs them.
func inside(ctx context.Context, m *testing.M) int {
	suite.folder, suite.binary = os.Getenv(folderVariable), os.Getenv(binaryVariable)
	if os.Getpid() == 1 {
		if err := settleIn(); err != nil {
			say("%v", err)
			return 1
		}
	}
	began := time.Now()
	var err error
	if suite.brokers, err = startBrokers(ctx); err != nil {
		say("brokers: %v", err)
		return 1
	}
	defer suite.brokers.Close()
	if suite.store, err = startStore(ctx); err != nil {
		say("store: %v", err)
		return 1
	}
	defer suite.store.Close()
	say("%s; %s; %s/%s, %d cores; ready after %s; binary %s", suite.brokers, suite.store, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		time.Since(began).Round(10*time.Millisecond), suite.binary)
	return m.Run()
}

// say writes where nobody can miss it, even without -v.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "e2e/native: "+format+"\n", args...) }

// needNative skips a test of a run without the switch.
func needNative(t *testing.T) {
	t.Helper()
	if os.Getenv(nativeVariable) == "" {
		t.Skip("NOT RUN: " + nativeVariable + " is not set")
	}
}

// needAll skips a test that is not of the selection that takes less than five minutes.
func needAll(t *testing.T) {
	t.Helper()
	needNative(t)
	if !all() {
		t.Skip("NOT RUN: it is not in the selection; " + nativeVariable + "=all runs it")
	}
}

func all() bool { return os.Getenv(nativeVariable) == "all" }

// build makes the test build, which can trace what it commits and end itself at a point; that it is the product otherwise is
// what the tests of docker-compose.yml show. What is measured is the product: writing the trace down costs more than some stages.
func build(ctx context.Context, folder string) (string, error) {
	binary, tags := filepath.Join(folder, "waymark"), "faults"
	if os.Getenv(benchVariable) != "" {
		tags = ""
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-tags", tags, "-o", binary, "../../cmd/waymark").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", suiteBinary(folder), "..").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the rows of the fault matrix: %w\n%s", err, out)
	}
	return binary, nil
}

// Servers that the tests run on.
const (
	onGiven    = "given"
	onNative   = "native"
	onEmbedded = "embedded"
)

// isGiven reports whether servers are named.
func isGiven() bool { return os.Getenv(brokersVariable) != "" && os.Getenv(weaviateVariable) != "" }

// prepare chooses the servers and gets everything that needs a network: Kafka's jars and the Weaviate server. It falls back,
// loudly, to what the binary brings with it, unless native servers were asked for by name.
func prepare(ctx context.Context) error {
	switch backend := os.Getenv(backendVariable); {
	case backend == onEmbedded:
		return nil
	case isGiven():
		return os.Setenv(backendVariable, onGiven)
	case backend == onGiven:
		return fmt.Errorf("%s and %s name no servers", brokersVariable, weaviateVariable)
	case backend != "" && backend != onNative:
		return fmt.Errorf("%s is %q: given, native or embedded are known", backendVariable, backend)
	}
	r, err := release(ctx)
	if err == nil {
		err = r.Warm(ctx)
	}
	if err == nil {
		_, err = weaviateBinary(ctx)
	}
	if err != nil && os.Getenv(backendVariable) == "" {
		say("!!! NO NATIVE SERVERS: %v: THE EMBEDDED BROKER AND SQLITE INSTEAD !!!", err)
		return os.Setenv(backendVariable, onEmbedded)
	}
	return errors.Join(err, os.Setenv(backendVariable, onNative))
}

// preparePython makes the clients of the Python producers, which needs a network, too.
func preparePython(ctx context.Context, folder string, env []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, suiteBinary(folder), "-test.run", "^TestPythonClients$")
	cmd.Dir, cmd.Env = "..", append(append(os.Environ(), env...), "E2E_FAULTS_BINARY=unused")
	return cmd.CombinedOutput()
}

func release(ctx context.Context) (kafkalocal.Release, error) {
	cache, err := kafkalocal.CacheDir()
	if err != nil {
		return kafkalocal.Release{}, err
	}
	return kafkalocal.Fetch(ctx, cache, kafkalocal.DefaultVersion)
}

// weaviateVersion is the server that the tests mean.
const weaviateVersion = "v1.35.2"

// weaviateBinary is the server in the cache folder, built the first time, which takes minutes.
func weaviateBinary(ctx context.Context) (string, error) {
	cache, err := kafkalocal.CacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "bin")
	server := filepath.Join(bin, "weaviate-server-"+weaviateVersion)
	if _, err := os.Stat(server); err == nil || !errors.Is(err, os.ErrNotExist) {
		return server, err
	}
	say("building Weaviate %s, once", weaviateVersion)
	unfinished, err := os.MkdirTemp(cache, "weaviate-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(unfinished)
	install := exec.CommandContext(ctx, "nice", "go", "install", "-trimpath", "-ldflags=-s -w", "github.com/weaviate/weaviate/cmd/weaviate-server@"+weaviateVersion)
	install.Dir = os.TempDir() // outside of every module: its requirements are not ours
	install.Env = append(os.Environ(), "GOBIN="+unfinished, "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building Weaviate: %w\n%s", err, out)
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	return server, os.Rename(filepath.Join(unfinished, "weaviate-server"), server)
}
