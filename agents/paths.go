package agents

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// realPath resolves the symbolic links of path; what does not exist yet is
// kept as it is written below the deepest folder that does.
func realPath(path string) (string, error) {
	rest := ""
	for p := filepath.Clean(path); ; {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if _, lerr := os.Lstat(p); lerr == nil {
			return "", err // a link that leads nowhere
		}
		parent := filepath.Dir(p)
		if parent == p {
			return "", err
		}
		rest = filepath.Join(filepath.Base(p), rest)
		p = parent
	}
}

// inside reports whether path, both resolved, is root or lies below it.
func inside(root, path string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+string(filepath.Separator))
}

// LeadsOut reports whether path exists and lies, with all links followed,
// outside root, itself without links.
func LeadsOut(root, path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err == nil && !inside(root, real)
}

// LeadsOut reports whether the folder of the agent, or one that a runner writes
// to, lies outside the graph. Such an agent does not run.
func (a *Agent) LeadsOut() bool {
	return LeadsOut(a.root, a.Dir) || LeadsOut(a.root, a.OutputDir) || LeadsOut(a.root, a.TurnsDir)
}

// Rel is path relative to the graph, with forward slashes; a path outside is
// returned as it is.
func (g *Graph) Rel(path string) string { return rel(g.Root, path) }

// Rel is Graph.Rel for the graph at root.
func Rel(root, path string) string { return rel(root, path) }

func rel(root, path string) string {
	if !inside(root, path) {
		return filepath.ToSlash(path)
	}
	r, err := filepath.Rel(root, path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(r)
}

// nameProblem says why a name cannot be kept in records and messages.
func nameProblem(name string) string {
	if !utf8.ValidString(name) {
		return "its name is not UTF-8"
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return "its name holds a control character"
	}
	return ""
}
