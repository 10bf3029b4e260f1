package server

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes what the server leaves behind a child of this process.
func adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // only a help
}

// killRest ends what the server started and took out of its group. The server
// itself has ended; what it left behind is a child of this process now.
func killRest(server int) {
	for range 100 {
		pids := children(server)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// children are the child processes of this one but for that one, which is
// waited for elsewhere.
func children(but int) []int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var pids []int
	for _, t := range tasks {
		data, err := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(word); err == nil && pid != but {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
