package watch

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

type fileID struct{ dev, ino uint64 }

// identify returns what tells the folder at dir from another one of the same
// name; ok is false when there is no folder.
func identify(dir string) (id fileID, ok bool) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return fileID{}, false
	}
	return fileID{uint64(st.Dev), st.Ino}, true
}

// The magic numbers of file systems whose changes other machines make.
var networkTypes = map[uint32]string{
	0x6969: "nfs", 0x517B: "smb", 0xFF534D42: "cifs", 0xFE534D42: "smb2",
	0x01021997: "9p", 0x5346414F: "afs", 0x6B414653: "kafs", 0x00C36400: "ceph",
	0x0BD00BD0: "lustre", 0x65735546: "fuse", 0x786F4256: "vboxsf", 0x47504653: "gpfs",
}

// networkFS names the network file system that dir lies on, or "".
func networkFS(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	return networkTypes[uint32(st.Type)]
}

// Writing reports whether some process has the file at path open for writing.
// known is false where the kernel does not tell: a file of another user, a
// file system without leases.
func Writing(path string) (open, known bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return false, false
	}
	// Closing gives the lease back.
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	switch {
	case err == nil:
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		return false, true
	case errors.Is(err, syscall.EAGAIN):
		return true, true
	}
	return false, false
}

// NetworkFS names the network file system that path lies on, or "".
func NetworkFS(path string) string { return networkFS(path) }

// Free is how many bytes may still be written where path lies; ok is false
// when that is not known.
func Free(path string) (bytes uint64, ok bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
