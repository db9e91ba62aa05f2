//go:build faults

package fault

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// plan is read once from FAULT_POINT ("<point>:<n>") and FAULT_LOG, a file to which a line is added before the process
// kills itself, so that a test can see that its fault happened.
var plan = sync.OnceValue(func() *schedule {
	point, n, ok := strings.Cut(os.Getenv("FAULT_POINT"), ":")
	left, err := strconv.Atoi(n)
	if !ok || err != nil {
		return &schedule{}
	}
	return &schedule{point: point, left: left, log: os.Getenv("FAULT_LOG")}
})

type schedule struct {
	mu    sync.Mutex
	point string
	left  int
	log   string
}

// Hit kills the process with SIGKILL when it comes to the scheduled point for the n-th time.
func Hit(point string) {
	s := plan()
	if s.point != point {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left != 0 {
		return
	}
	if f, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintln(f, point)
		_ = f.Close()
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
