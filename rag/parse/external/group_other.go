//go:build !unix

package external

import "os/exec"

// There are no process groups: the command alone is killed.
func ownGroup(*exec.Cmd) {}

func killGroup(int) {}
