package output

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// noRenameat2 makes tests use the way of other systems.
var noRenameat2 = false

// rename gives temp its name unless that is taken.
func (d *openFolder) rename(temp, name string, info fs.FileInfo) error {
	if noRenameat2 {
		return d.linkNew(temp, name, info)
	}
	fd := int(d.self.Fd())
	for {
		err := unix.Renameat2(fd, temp, fd, name, unix.RENAME_NOREPLACE)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPERM):
			// The file system, an old kernel or a sandbox does not have it.
			return d.linkNew(temp, name, info)
		}
		return err
	}
}

func changeTime(info fs.FileInfo) syscall.Timespec {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim
	}
	return syscall.Timespec{}
}
