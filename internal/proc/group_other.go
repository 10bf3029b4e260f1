//go:build !unix

package proc

import "os/exec"

// OwnGroup leaves the program where it is: there are no process groups here.
func OwnGroup(*exec.Cmd) {}

// Terminate ends the program.
func Terminate(cmd *exec.Cmd) { Kill(cmd) }

// Kill ends the program.
func Kill(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill()
	}
}
