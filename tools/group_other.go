//go:build !unix

package tools

import "os/exec"

// ownGroup leaves the program where it is: there are no process groups here.
func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill()
	}
}
