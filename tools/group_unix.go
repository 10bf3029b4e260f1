//go:build unix

package tools

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a program a process group, so that what it starts ends with
// it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil && cmd.Process.Pid > 0 {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group may be gone
	}
}
