package tools

import (
	"os/exec"
	"syscall"
)

// endWithThread has the kernel kill a program when the thread that starts it
// ends, which it does at the latest with this process.
func endWithThread(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
