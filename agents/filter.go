package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// leftoverSuffixes end the names of files that an editor, a download or a
// copy has not finished or has left behind; compared in lower case.
var leftoverSuffixes = []struct{ suffix, reason string }{
	{"~", "an editor's backup"},
	{".swp", "an editor's swap file"}, {".swo", "an editor's swap file"},
	{".swn", "an editor's swap file"}, {".swx", "an editor's swap file"},
	{".tmp", "a temporary file"}, {".temp", "a temporary file"},
	{".part", "an unfinished file"}, {".partial", "an unfinished file"},
	{".filepart", "an unfinished file"}, {".crdownload", "an unfinished download"},
	{".download", "an unfinished download"}, {".opdownload", "an unfinished download"},
	{".bak", "a backup"}, {".backup", "a backup"}, {".old", "a backup"}, {".orig", "a backup"},
	{".rej", "what a patch left behind"},
	{"___jb_tmp___", "an editor's temporary file"}, {"___jb_old___", "an editor's backup"},
}

// leftoverNames are whole names, in lower case.
var leftoverNames = map[string]string{
	"4913":        "an editor's probe file",
	"thumbs.db":   "a file manager's cache",
	"desktop.ini": "a file manager's settings",
}

// IgnoredName says why a file of this name is not an input; "" when it may be
// one.
func IgnoredName(name string) string {
	if strings.HasPrefix(name, ".") {
		return "its name begins with a dot"
	}
	lower := strings.ToLower(name)
	if reason := leftoverNames[lower]; reason != "" {
		return "it is " + reason
	}
	for _, s := range leftoverSuffixes {
		if strings.HasSuffix(lower, s.suffix) {
			return fmt.Sprintf("it is %s (%s)", s.reason, s.suffix)
		}
	}
	if strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") && len(name) > 1 {
		return "it is an editor's autosave"
	}
	if strings.HasPrefix(name, "~$") {
		return "it is an office program's lock file"
	}
	return nameProblem(name)
}

// Surprising reports whether a person may have meant a file of this name as an
// input, where Inspect gives this reason that it is none: not dotfiles and
// what programs leave beside a file while they work, and not empty files,
// which somebody may be about to write.
func Surprising(name, reason string) bool {
	if reason == "" || reason == isEmpty || strings.HasPrefix(name, ".") {
		return false
	}
	for _, kept := range []string{".bak", ".backup", ".old", ".orig", ".rej"} {
		if strings.HasSuffix(strings.ToLower(name), kept) {
			return true
		}
	}
	why := IgnoredName(name)
	return why == "" || why == nameProblem(name)
}

const isEmpty = "it is empty"

// Inspect looks at one file of an input folder: its metadata when it is an
// input (of the file a link leads to), or the reason why it is none. err is
// set when the file system cannot say; the file may be gone.
func Inspect(root, path string) (info fs.FileInfo, reason string, err error) {
	if reason := IgnoredName(filepath.Base(path)); reason != "" {
		return nil, reason, nil
	}
	info, err = os.Lstat(path)
	if err != nil {
		return nil, "", err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, "it is a link that leads nowhere", nil
		}
		if err != nil {
			return nil, "it is a link that cannot be followed: " + err.Error(), nil
		}
		if !inside(root, real) {
			return nil, "it is a link that leads out of the graph", nil
		}
		if inside(filepath.Join(root, ".agentgraph"), real) {
			return nil, "it is a link into .agentgraph", nil
		}
		if info, err = os.Stat(real); err != nil {
			return nil, "", err
		}
	}
	switch m := info.Mode(); {
	case m.IsDir():
		return nil, "it is a folder", nil
	case m&fs.ModeNamedPipe != 0:
		return nil, "it is a FIFO", nil
	case m&fs.ModeSocket != 0:
		return nil, "it is a socket", nil
	case m&fs.ModeDevice != 0:
		return nil, "it is a device", nil
	case !m.IsRegular():
		return nil, "it is not a regular file", nil
	case info.Size() == 0:
		return nil, isEmpty, nil
	}
	return info, "", nil
}
