//go:build unix

package external

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a command in a process group of its own, and kills all of it with the command.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// killGroup kills what is left of a group; mostly there is nothing.
func killGroup(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }
