//go:build unix

package server

import (
	"os/exec"
	"syscall"
)

// ownSession keeps the terminal's signals from the supervisor: the first
// Ctrl-C lets running turns finish, and they need the server.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// killGroup ends what is left of a group whose supervisor was killed.
func killGroup(pid int) {
	if pid > 1 {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // mostly there is none
	}
}
