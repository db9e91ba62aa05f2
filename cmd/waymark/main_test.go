package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "WAYMARK_") {
			if err := os.Unsetenv(name); err != nil {
				panic(err)
			}
		}
	}
	goleak.VerifyTestMain(m,
		// LevelDB ends this one within a second after a store is closed.
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
		// sarama's circuit breaker: ends by itself 10 s after the last failure.
		goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer"),
		// sarama's metrics share this one in the whole process.
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// buffer may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// session is one command line with everything around it.
type session struct {
	args     []string
	stdin    io.Reader
	environ  []string
	width    int // of the terminal; 0: output is piped
	runtime  Runtime
	out, err buffer
	signal   context.CancelCauseFunc
}

// start runs the command line in the background; the channel gives its exit code.
func (s *session) start(t *testing.T) <-chan int {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	s.signal = cancel
	stream := func(w io.Writer) console.Stream {
		return console.Stream{Writer: w, Width: func() int { return s.width }}
	}
	env := map[string]string{"NO_COLOR": "1"}
	for _, entry := range s.environ {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	e := &environment{
		console: console.New(stream(&s.out), stream(&s.err)), stdin: s.stdin, environ: s.environ,
		getenv: func(name string) string { return env[name] }, newRuntime: func(*slog.Logger) Runtime { return s.runtime },
	}
	code := make(chan int, 1)
	go func() {
		defer cancel(nil)
		code <- run(ctx, s.args, e)
	}()
	return code
}

// do runs the command line to its end.
func (s *session) do(t *testing.T) int {
	t.Helper()
	return s.wait(t, s.start(t))
}

func (s *session) wait(t *testing.T, code <-chan int) int {
	t.Helper()
	select {
	case c := <-code:
		return c
	case <-time.After(30 * time.Second):
		t.Fatalf("%q does not end; it said:\n%s%s", s.args, s.out.String(), s.err.String())
		return 0
	}
}

// command is a session with piped output.
func command(args ...string) *session { return &session{args: args, stdin: strings.NewReader("")} }

// eventually polls until done, or fails the test after a time.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(20 * time.Second); !done(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come: %s", what)
		}
	}
}

// golden compares text with a file of testdata; -update rewrites it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(testdata, name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", name, text, want)
	}
}

// testdata is absolute, because tests change their folder.
var testdata = func() string {
	path, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return path
}()

var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	seconds = regexp.MustCompile(`\(\d+\.\d s`)
	jsonSec = regexp.MustCompile(`"seconds":[0-9.e-]+`)
)

// steady replaces what differs from run to run.
func steady(text string) string {
	text = uuids.ReplaceAllString(text, "UUID")
	text = seconds.ReplaceAllString(text, "(T s")
	return jsonSec.ReplaceAllString(text, `"seconds":T`)
}

// folder writes files, by slash path, into a new folder and makes it the current one.
func folder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		put(t, name, text)
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
