package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	// binary is the path of the waymark binary under test.
	binary string
	// buildDir is where this run's binaries are.
	buildDir string
)

// built is the binary that a variable names, or one that is built with the tags.
func built(variable, tags string) (string, error) {
	if name := os.Getenv(variable); name != "" {
		return name, nil
	}
	name := filepath.Join(buildDir, "waymark-"+tags)
	build := exec.Command("go", "build", "-tags", tags, "-o", name, "../cmd/waymark")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary with the tags %q: %w\n%s", tags, err, out)
	}
	return name, nil
}

// faultsBinary is the test build (tag faults), made when the first test asks for it. E2E_TAGS are further tags, and
// E2E_FAULTS_BINARY names a binary that is there already.
var faultsBinary = sync.OnceValues(func() (string, error) {
	return built("E2E_FAULTS_BINARY", strings.Trim("faults,"+os.Getenv("E2E_TAGS"), ","))
})

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "waymark-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	buildDir = dir
	if binary, err = built("E2E_BINARY", os.Getenv("E2E_TAGS")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) && runtime.GOMAXPROCS(0) < 4 {
		_ = f.Value.Set("4") // the tests that run beside each other mostly wait
	}
	fmt.Printf("e2e: %s, %s/%s, binary %s\n", backend(), runtime.GOOS, runtime.GOARCH, binary)
	return m.Run()
}

// deadline of one wait. Slow machines get there too; a hang is told from slowness by nothing else.
const deadline = 90 * time.Second

// eventually polls until done returns nil.
func eventually(t testing.TB, what string, done func() error) {
	t.Helper()
	within(t, deadline, what, done)
}

// within is eventually with a deadline of its own.
func within(t testing.TB, patience time.Duration, what string, done func() error) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not after %s: %v", what, patience, err)
		}
		pause(20 * time.Millisecond)
	}
}

// pause waits between two looks at another process, which sends no signal that a test could wait on.
func pause(d time.Duration) { <-time.After(d) }

// freeAddress is a loopback address that nobody listens on now.
func freeAddress(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// process is one run of the binary.
type process struct {
	t    testing.TB
	bin  string
	name string
	// monitor is where it serves its metrics; "" if it does not.
	monitor string
	args    []string
	env     []string
	mu      sync.Mutex
	cmd     *exec.Cmd
	log     *os.File
	done    chan struct{}
}

// start runs the binary; it is ended with the test. Its output is shown when the test fails.
func start(t testing.TB, name string, env []string, args ...string) *process {
	t.Helper()
	return startBinary(t, binary, name, env, args...)
}

func startBinary(t testing.TB, bin, name string, env []string, args ...string) *process {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), name+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, bin: bin, name: name, args: args, env: env, log: log}
	p.launch()
	t.Cleanup(func() {
		p.kill(syscall.SIGKILL)
		if t.Failed() {
			b, _ := os.ReadFile(log.Name())
			t.Logf("output of %s:\n%s", name, tail(b, 6<<10))
		}
		log.Close()
	})
	return p
}

func tail(b []byte, n int) []byte {
	if len(b) > n {
		return append([]byte("…"), b[len(b)-n:]...)
	}
	return b
}

func (p *process) launch() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := exec.Command(p.bin, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	p.cmd, p.done = cmd, done
}

// kill sends a signal and, unless it only stops the process, waits for its end.
func (p *process) kill(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Signal(sig) // it may have ended by itself
	if sig == syscall.SIGSTOP || sig == syscall.SIGCONT {
		return
	}
	<-p.done
}

// waitReady waits until the process says that it does its work.
func (p *process) waitReady() {
	p.t.Helper()
	api{p.t, "http://" + p.monitor}.waitReady()
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// code is the exit code of a process that has ended.
func (p *process) code() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// ended is closed when the process has ended.
func (p *process) ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// restart kills the process with SIGKILL and starts it again.
func (p *process) restart() {
	p.kill(syscall.SIGKILL)
	p.launch()
}

// waymark runs a command of the binary to its end.
func waymark(t testing.TB, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("waymark %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// api is the HTTP interface of a process.
type api struct {
	t    testing.TB
	base string
}

func (a api) try(method, path string, header http.Header, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, b, err
}

// insist repeats a call until it is answered with want: what a client with a little patience does.
func (a api) insist(want int, method, path string, header http.Header, body []byte) []byte {
	a.t.Helper()
	var answer []byte
	eventually(a.t, method+" "+path, func() error {
		status, b, err := a.try(method, path, header, body)
		if err == nil && status != want {
			err = fmt.Errorf("status %d: %s", status, b)
		}
		answer = b
		return err
	})
	return answer
}

func (a api) get(path string, into any) {
	a.t.Helper()
	b := a.insist(http.StatusOK, http.MethodGet, path, nil, nil)
	if err := json.Unmarshal(b, into); err != nil {
		a.t.Fatalf("%s: %v\n%s", path, err, b)
	}
}

func (a api) waitReady() {
	a.t.Helper()
	a.insist(http.StatusOK, http.MethodGet, "/readyz", nil, nil)
}

// metric is the sum of a metric's samples whose labels contain all of the given ones.
func (a api) metric(name string, labels ...string) float64 {
	a.t.Helper()
	sum := 0.0
	for line := range strings.Lines(string(a.insist(http.StatusOK, http.MethodGet, "/metrics", nil, nil))) {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") {
			continue
		}
		matches := true
		for _, l := range labels {
			matches = matches && strings.Contains(line, l)
		}
		var v float64
		if _, err := fmt.Sscan(line[strings.LastIndex(strings.TrimSpace(line), " ")+1:], &v); matches && err == nil {
			sum += v
		}
	}
	return sum
}

func dial(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// settled is nil once no stage is behind.
func (a api) settled() error {
	var s stats
	a.get("/v1/stats", &s)
	if len(s.Documents) == 0 {
		return errors.New("no documents yet")
	}
	for stage, lag := range s.Lag {
		if lag != 0 {
			return fmt.Errorf("%s is %d behind", stage, lag)
		}
	}
	return nil
}

// cacheDir is where what is slow to get or to build is kept between runs.
func cacheDir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("WAYMARK_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "waymark")
}
