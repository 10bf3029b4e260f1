//go:build unix

package runner

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// openFlags keep an open from waiting on a FIFO that took a file's place.
const openFlags = syscall.O_NONBLOCK

func inodeNumber(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// fileIdentity tells a file from every other one on this machine; empty where
// that cannot be had.
func fileIdentity(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// bootID names the time since the machine was started; empty where that is
// not known.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
