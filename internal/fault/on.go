//go:build faults

package fault

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// plan is read once from the environment.
var plan = sync.OnceValue(func() *schedule {
	s := &schedule{left: map[string]int{}, stop: map[string]bool{}}
	s.log = openAppend(os.Getenv("FAULT_LOG"))
	s.trace = openAppend(os.Getenv("FAULT_TRACE"))
	for spec := range strings.SplitSeq(os.Getenv("FAULT_POINT"), ",") {
		parts := strings.Split(spec, ":")
		if len(parts) < 2 {
			continue
		}
		n, err := strconv.Atoi(parts[1])
		if err != nil {
			panic(fmt.Sprintf("FAULT_POINT: %q has no number", spec))
		}
		s.left[parts[0]] = n
		s.stop[parts[0]] = len(parts) > 2 && parts[2] == "stop"
	}
	if d := os.Getenv("FAULT_CLOCK"); d != "" {
		off, err := time.ParseDuration(d)
		if err != nil {
			panic(fmt.Sprintf("FAULT_CLOCK: %v", err))
		}
		s.clock = off
		s.note("clock")
	}
	return s
})

func openAppend(name string) *os.File {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(fmt.Sprintf("a file of the fault build: %v", err))
	}
	return f
}

type schedule struct {
	clock time.Duration

	mu    sync.Mutex
	left  map[string]int
	stop  map[string]bool
	log   *os.File
	trace *os.File
}

// note writes the line by which a test sees that its fault happened.
func (s *schedule) note(what string) {
	if s.log != nil {
		fmt.Fprintf(s.log, "%s\n", what)
	}
}

// Hit kills the process, or stops it until somebody lets it go on, when it comes to a scheduled point for the n-th time.
func Hit(point string) {
	if !Happens(point) {
		return
	}
	if plan().stop[point] {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		<-time.After(100 * time.Millisecond) // this thread may be the last one to stop
		return
	}
	kill()
}

// Happens counts one hit of a point and reports whether its fault, which is the caller's to bring about, is due.
func Happens(point string) bool {
	s := plan()
	s.mu.Lock()
	s.left[point]--
	now := s.left[point] == 0
	s.mu.Unlock()
	if now {
		s.note(point)
	}
	return now
}

func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// Trace writes one event of a message, or of the claim that it belongs to, to FAULT_TRACE. session tells sessions of the
// process apart: a pointer of the caller's.
func Trace(event string, session any, topic string, partition int32, offset int64) {
	s := plan()
	if s.trace == nil {
		return
	}
	line := fmt.Appendf(nil, "{\"pid\":%d,\"session\":\"%p\",\"event\":%q,\"topic\":%q,\"partition\":%d,\"offset\":%d}\n",
		os.Getpid(), session, event, topic, partition, offset)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.trace.Write(line) // one write for one line: a killed process leaves whole ones
}

// Parse panics or kills the process over a document that asks for it.
func Parse(content []byte) {
	s := plan()
	switch {
	case bytes.Contains(content, []byte(PanicText)):
		s.note("parser-panic")
		panic("a fault of the test build")
	case bytes.Contains(content, []byte(KillText)):
		s.note("parser-kill")
		kill()
	}
}

// Now is the time by the shifted clock.
func Now() time.Time { return time.Now().Add(plan().clock) }

// NextFormat tells a build that FAULT_FORMATS makes the next release, which reads the next format of everything, or the one
// after it, which writes it too.
func NextFormat() (reads, writes bool) {
	formats := os.Getenv("FAULT_FORMATS")
	return formats == ReadNext || formats == WriteNext, formats == WriteNext
}
