package native

import (
	"context"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/waymarkhq/waymark/internal/netns"
)

// runApart runs this test binary again in namespaces of its own: Weaviate's ports bind every interface, and when the
// tests end, however they do, everything that they have started ends with them.
func runApart(env ...string) (code int, err error) {
	return netns.Rerun(context.Background(), syscall.CLONE_NEWPID|syscall.CLONE_NEWNS, env...)
}

// settleIn gives the new namespaces what processes expect: a loopback, and a /proc of their own.
func settleIn() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return netns.LoopbackUp()
}
