//go:build unix && !linux

package proc

import (
	"os/exec"
	"syscall"
)

// OwnGroup gives a program a process group, so that what it starts ends with
// it.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
