//go:build unix

package proc

import (
	"os/exec"
	"syscall"
)

// Terminate asks the program's group to end.
func Terminate(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGTERM) }

// Kill ends the program and everything of its group.
func Kill(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }

func signalGroup(cmd *exec.Cmd, s syscall.Signal) {
	if cmd.Process != nil && cmd.Process.Pid > 0 {
		_ = syscall.Kill(-cmd.Process.Pid, s) // the group may be gone
	}
}
