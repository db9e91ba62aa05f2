package native

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// deadline of one wait. Slow machines get there too; a hang is told from slowness by nothing else.
const deadline = 2 * time.Minute

// eventually polls until done returns nil.
func eventually(t testing.TB, what string, done func() error) {
	t.Helper()
	if err := poll(context.Background(), deadline, often, done); err != nil {
		t.Fatalf("%s: not after %s: %v", what, deadline, err)
	}
}

// often is how often most tests look.
const often = 50 * time.Millisecond

func poll(ctx context.Context, patience, every time.Duration, done func() error) error {
	end := time.Now().Add(patience)
	for {
		err := done()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		pause(every)
	}
}

// pause waits between two looks at another process, which sends no signal that a test could wait on.
func pause(d time.Duration) { <-time.After(d) }

func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

func dial(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// process is one run after the other of a command.
type process struct {
	name, command string
	args, env     []string
	log           string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
}

// newProcess describes a run of the binary; launch starts it.
func newProcess(name, log string, env []string, args ...string) (*process, error) {
	return &process{name: name, command: suite.binary, args: args, env: env, log: log}, os.WriteFile(log, nil, 0o600)
}

func (p *process) launch() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.command, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	p.cmd, p.done = cmd, done
	return nil
}

// signal sends a signal and, unless it only stops or continues the process, waits for its end.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig) // it may have ended by itself
	if sig == syscall.SIGSTOP || sig == syscall.SIGCONT {
		return
	}
	<-p.done
}

// awaitOutput waits until the process has said something.
func (p *process) awaitOutput(t testing.TB, words string) {
	t.Helper()
	eventually(t, p.name+" to say "+words, func() error {
		b, err := os.ReadFile(p.log)
		if err == nil && !strings.Contains(string(b), words) {
			err = errNotYet
		}
		return err
	})
}

// tail is the end of the process's output.
func (p *process) tail(n int) string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(b) > n {
		b = append([]byte("…"), b[len(b)-n:]...)
	}
	return fmt.Sprintf("%s:\n%s", p.name, b)
}
