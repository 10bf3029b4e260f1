//go:build unix && !linux

package watch

import (
	"fmt"
	"os"
	"syscall"
)

func identity(info os.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(st.Dev, ":", st.Ino)
	}
	return "?"
}
