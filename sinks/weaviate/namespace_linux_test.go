package weaviate

import (
	"context"
	"os/exec"
	"syscall"

	"github.com/waymarkhq/waymark/internal/netns"
)

// runInNamespace runs this test binary again in a network namespace of its own.
func runInNamespace() (code int, err error) {
	return netns.Rerun(context.Background(), 0, namespaceVariable+"=1")
}

// loopbackUp brings up the loopback of a new namespace.
func loopbackUp() error { return netns.LoopbackUp() }

// dieWithParent keeps a server from outliving its test.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
