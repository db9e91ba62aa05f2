package external

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// Exit codes of a command, those of sysexits.h. Any other but 0 says that it failed, which may be anybody's fault.
const (
	exitDataErr     = 65 // the document cannot be read
	exitUnavailable = 69 // something that it needs is away
	exitTempFail    = 75
)

const (
	// killDelay is how long a killed command's pipes are waited for.
	killDelay = 2 * time.Second
	// watchEvery is how often the memory of a command is measured.
	watchEvery = 100 * time.Millisecond
	// maxErrors bounds what is kept of standard error: its end.
	maxErrors = 4 << 10
)

var (
	errOutput = errors.New("the output is too large")
	errMemory = errors.New("the memory is used up")
	errTime   = errors.New("the time is over")
)

// run runs the command on a document, in a folder of its own that is gone behind it.
func (x *program) run(ctx context.Context, in Input) (result Result, err error) {
	dir, err := os.MkdirTemp("", "waymark-parser-")
	if err != nil {
		return Result{}, outage("a folder for the parser: %w", err)
	}
	defer func() {
		if gone := os.RemoveAll(dir); gone != nil && err == nil {
			result.Warnings = append(result.Warnings, "The parser's folder could not be removed.")
		}
	}()
	parent := ctx
	limited, stop := context.WithTimeoutCause(ctx, x.time, errTime)
	defer stop()
	ctx, cancel := context.WithCancelCause(limited)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, x.path, x.Command[1:]...)
	cmd.Args[0] = x.Command[0]
	cmd.Dir, cmd.Env, cmd.Stdin = dir, environment(dir, in), bytes.NewReader(in.Content)
	out := &bounded{limit: x.limit, over: func() { cancel(errOutput) }}
	said := &ending{limit: maxErrors}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, said, killDelay
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return Result{}, outage("the parser %s cannot be started: %v", x.Command[0], err)
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		x.watch(ctx, cmd.Process.Pid, func() { cancel(errMemory) })
	}()
	err = cmd.Wait()
	cancel(nil)
	<-watched
	killGroup(cmd.Process.Pid) // what it has left behind
	switch cause := context.Cause(ctx); {
	case parent.Err() != nil:
		return Result{}, parent.Err()
	case errors.Is(cause, errTime):
		return Result{}, flow.Reject(rag.ReasonTimeout, "the parser %s takes longer than the limit of %v for the document", x.Command[0], x.time)
	case errors.Is(cause, errOutput):
		return Result{}, errTooMuch(x.limit)
	case errors.Is(cause, errMemory):
		return Result{}, flow.Reject(rag.ReasonMemory, "the parser %s takes more than %d MiB of memory for the document", x.Command[0], x.Memory)
	}
	return x.judge(err, out.kept.Bytes(), said.String())
}

// judge says what a command's end means.
func (x *program) judge(err error, out []byte, said string) (Result, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		if bytes.HasPrefix(out, []byte("{")) {
			return understand(out)
		}
		return plain(out, formatPlain), nil
	case !errors.As(err, &exit):
		return Result{}, failed("the parser %s: %w%s", x.Command[0], err, describe(said))
	case exit.ExitCode() == exitDataErr:
		if bytes.HasPrefix(out, []byte("{")) {
			if _, err := understand(out); flow.IsReject(err) {
				return Result{}, err
			}
		}
		return Result{}, flow.Reject(rag.ReasonBrokenFile, "the parser %s cannot read the document%s", x.Command[0], describe(lastLine(said)))
	case exit.ExitCode() == exitUnavailable, exit.ExitCode() == exitTempFail:
		return Result{}, outage("the parser %s is not available%s", x.Command[0], describe(lastLine(said)))
	}
	return Result{}, failed("the parser %s failed (%s)%s", x.Command[0], exit.ProcessState, describe(lastLine(said)))
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// environment is that of this process, without what may be its secrets, and with what is known of the document.
func environment(dir string, in Input) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "WAYMARK_") && !strings.HasPrefix(v, "TMPDIR=") {
			env = append(env, v)
		}
	}
	name := strings.ReplaceAll(in.Name, "\x00", "")
	return append(env, "TMPDIR="+dir, "WAYMARK_CONTENT_TYPE="+in.Type, "WAYMARK_NAME="+name)
}

// watch calls over when the command and what it has started hold too much memory.
func (x *program) watch(ctx context.Context, group int, over func()) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if groupMemory(group) > int64(x.Memory)<<20 {
				over()
				return
			}
		}
	}
}

// bounded keeps what is written to it up to a limit, and calls over when there is more.
type bounded struct {
	kept  bytes.Buffer
	limit int
	over  func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > b.limit {
		b.over()
		return 0, fmt.Errorf("%w: more than %d bytes", errOutput, b.limit)
	}
	return b.kept.Write(p)
}

// ending keeps the end of what is written to it.
type ending struct {
	kept  []byte
	limit int
}

func (e *ending) Write(p []byte) (int, error) {
	e.kept = append(e.kept, p...)
	if n := len(e.kept) - e.limit; n > 0 {
		e.kept = append(e.kept[:0], e.kept[n:]...)
	}
	return len(p), nil
}

func (e *ending) String() string { return string(e.kept) }
