//go:build linux

// Package images_test runs the scripts of this folder with stand-ins for what they start.
package images_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A daemon whose command line is empty, as that of every process is for some milliseconds while it begins, and a client that
// reaches it when it asks for the third time.
const (
	nameless = `echo started >> "$STAND_IN/starts"; exec -a '' sleep 600`
	patient  = `echo asked >> "$STAND_IN/asked"; [ "$(wc -l < "$STAND_IN/asked")" -ge 3 ]`
)

// standIn is a folder with a daemon and a client that do what the scripts say, and the environment in which they are found.
func standIn(t *testing.T, dockerd, docker string) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range map[string]string{"dockerd": dockerd, "docker": docker} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/usr/bin/env bash\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "STAND_IN="+dir, "DOCKERD_RUN="+filepath.Join(dir, "run"), "DOCKERD_SYSTEM_RUN="+dir)
	t.Cleanup(func() { succeed(t, env, "stop") })
	return dir, env
}

func run(env []string, verb string) (string, error) {
	cmd := exec.Command("./dockerd.sh", verb) // the cleanup calls it when the test's context has ended
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func succeed(t *testing.T, env []string, verb string) {
	t.Helper()
	if out, err := run(env, verb); err != nil {
		t.Fatalf("%s: %v\n%s", verb, err, out)
	}
}

func lines(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

func TestADaemonIsWaitedForWhateverItsCommandLine(t *testing.T) {
	t.Parallel()
	dir, env := standIn(t, nameless, patient)
	for range 2 { // the second time it is there
		succeed(t, env, "start")
	}
	if got := lines(t, filepath.Join(dir, "starts")); got != 1 {
		t.Errorf("%d daemons were started, want 1", got)
	}
	file := filepath.Join(dir, "run", "pid")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, _, _ := strings.Cut(string(b), " ")
	succeed(t, env, "stop")
	// What init has not asked for yet is a zombie: it has ended.
	if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("process %s still runs after the daemon was stopped: %s", pid, stat)
	}
}

func TestADaemonThatEndsSaysWhy(t *testing.T) {
	t.Parallel()
	_, env := standIn(t, `echo "no room on the disk" >&2; exit 1`, `exit 1`)
	out, err := run(env, "start")
	if err == nil || !strings.Contains(out, "has ended") || !strings.Contains(out, "no room on the disk") {
		t.Errorf("start: %v, said:\n%s", err, out)
	}
}

// The number of a daemon that has ended may be another process's by now.
func TestAnotherProcessIsNotTheDaemon(t *testing.T) {
	t.Parallel()
	dir, env := standIn(t, nameless, patient)
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), "sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Wait() }) // the test's context ends it
	if err := os.WriteFile(filepath.Join(dir, "run", "pid"), fmt.Appendf(nil, "%d 1\n", other.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	succeed(t, env, "start")
	if got := lines(t, filepath.Join(dir, "starts")); got != 1 {
		t.Errorf("%d daemons were started, want 1", got)
	}
	succeed(t, env, "stop")
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another process was ended: %v", err)
	}
}

// Docker believes the files of a daemon that was killed, and does not start while another process has the id in them.
func TestWhatAKilledDaemonHasLeftIsForgotten(t *testing.T) {
	t.Parallel()
	dir, env := standIn(t, `[ ! -e "$STAND_IN/docker.pid" ] || { echo "pid file found" >&2; exit 1; }; exec sleep 600`, patient)
	if err := os.WriteFile(filepath.Join(dir, "docker.pid"), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	succeed(t, env, "start")
}
