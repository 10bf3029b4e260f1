//go:build unix

package output

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renamesOpenFiles is true where an open file can be renamed and removed.
const renamesOpenFiles = true

// tryLock locks a temporary file for as long as it is open in this process.
func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
			return true, nil // without locks every file counts as stale
		}
		return err == nil, err
	}
}

// syncDir makes the names in a folder durable, where its file system can.
func syncDir(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

func systemHint(err error) string {
	switch {
	case errors.Is(err, unix.EROFS):
		return "mount the file system for writing, or move the graph"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "free some space"
	case errors.Is(err, unix.EFBIG):
		return "raise the limit on file sizes (ulimit -f)"
	case errors.Is(err, unix.ENOTDIR):
		return "replace the file by a folder"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return "raise the limit on open files (ulimit -n)"
	case errors.Is(err, unix.ENAMETOOLONG):
		return "shorten the format in the schema file's name"
	}
	return "check the disk, then retry the turn"
}
