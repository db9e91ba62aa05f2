package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Every command of the README is run here, as it stands there but for the way to start the binary, for addresses and for
// folders. A command that is not known here fails the test: add what it needs.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, dir: t.TempDir(), broker: freeAddress(t), api: freeAddress(t), quickstart: freeAddress(t)}
	bin := filepath.Join(r.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(bin, "waymark")); err != nil {
		t.Fatal(err)
	}
	r.path = bin + string(os.PathListSeparator) + os.Getenv("PATH")
	commands := 0
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	// The broker is introduced last, for people who try pods on one machine; here it has to be there first.
	for _, first := range []bool{true, false} {
		for _, block := range blocks {
			for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
				if strings.Contains(line, " broker ") == first {
					r.run(line)
					commands++
				}
			}
		}
	}
	if commands < 15 {
		t.Errorf("only %d commands found: has the README another form now?", commands)
	}
}

// reader follows the README.
type reader struct {
	t                       *testing.T
	dir, path               string
	broker, api, quickstart string
}

func (r *reader) run(line string) {
	r.t.Helper()
	if line == "make test" {
		return // this is it
	}
	line = strings.ReplaceAll(line, "go run ./cmd/waymark", "waymark")
	line = strings.ReplaceAll(line, "kafka:9092", r.broker)
	line = strings.ReplaceAll(line, "127.0.0.1:9092", r.broker)
	line = strings.ReplaceAll(line, "127.0.0.1:8484", r.quickstart)
	line = strings.ReplaceAll(line, "/data/store.db", r.dir+"/store.db")
	line = strings.ReplaceAll(line, "./broker-data", r.dir+"/broker-data")
	switch {
	case strings.HasPrefix(line, "waymark up "):
		r.serve("up", line+" --data-dir "+r.dir+"/up --listen "+r.quickstart)
		api{r.t, "http://" + r.quickstart}.waitReady()
		a := api{r.t, "http://" + r.quickstart}
		eventually(r.t, "the examples to be indexed", func() error { return a.settled() })
	case strings.HasPrefix(line, "waymark broker "):
		r.serve("broker", line)
		eventually(r.t, "the broker", func() error { return dial(r.broker) })
	case strings.HasPrefix(line, "waymark run "):
		roles := strings.Fields(line)[2]
		r.serve(roles, line+" --data-dir "+r.dir+"/"+roles+" --listen "+r.api)
		if roles == "api" {
			api{r.t, "http://" + r.api}.waitReady()
		}
	case strings.HasPrefix(line, "waymark topics apply"):
		r.once(line + " --kafka.replication=1 --kafka.partitions=4")
	case strings.HasPrefix(line, "waymark config"):
		r.once(line)
	case strings.HasPrefix(line, "waymark "):
		r.once(line + " --api http://" + r.quickstart)
	case strings.HasPrefix(line, "curl "):
		r.once(strings.Replace(line, "curl ", "curl --fail-with-body --silent --show-error --retry 5 --retry-all-errors ", 1))
	default:
		r.t.Errorf("the README has a command that this test does not know: %s", line)
	}
}

// serve starts what runs until it is ended.
func (r *reader) serve(name, line string) *process {
	r.t.Helper()
	p := start(r.t, name, []string{"PATH=" + r.path}, shellFields(line)[1:]...)
	r.t.Cleanup(func() { p.kill(syscall.SIGTERM) })
	return p
}

// once runs a command to its end, in the folder of the README.
func (r *reader) once(line string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "PATH="+r.path)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Errorf("%s: %v\n%s", line, err, out)
	}
}

// shellFields splits a command without quotes.
func shellFields(line string) []string {
	fields := strings.Fields(line)
	for i, f := range fields {
		if f == "examples/articles" {
			fields[i] = "../" + f
		}
	}
	return fields
}
