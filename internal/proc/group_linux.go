package proc

import (
	"os/exec"
	"syscall"
)

// OwnGroup gives a program a process group, so that what it starts ends with
// it. The program is killed when the thread that starts it ends: call
// runtime.LockOSThread before Start, and keep the goroutine until its end.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
