package distill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"agentgraph/agents"
)

// maxDepth bounds how deep agents are looked for.
const maxDepth = 16

// ErrTooLarge says that a file has more bytes than are read.
var ErrTooLarge = errors.New("too large")

// graph is where a walk may read: everything below root and nothing else.
type graph struct {
	root  string // absolute, without links
	files *os.Root
	start string // where the walk begins, relative to root

	mu      sync.Mutex
	sources map[string][]byte // texts that records share
	held    int               // bytes of sources
}

// openGraph finds the graph that path is or lies in. A folder of no graph is
// one by itself.
func openGraph(path string, opt Options) (*graph, error) {
	real, err := realDir(path)
	if err != nil {
		return nil, err
	}
	root := real
	if opt.Schema == "" {
		root = graphRoot(real)
	}
	files, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("%s %s", path, plain(err))
	}
	start, err := filepath.Rel(root, real)
	if err != nil {
		return nil, err
	}
	return &graph{root: root, files: files, start: filepath.ToSlash(start), sources: map[string][]byte{}}, nil
}

// graphRoot is the folder that an agent's record counts its paths from: the
// one that holds agents/ with dir below it, or dir itself.
func graphRoot(dir string) string {
	for _, mark := range []string{agents.GraphFile, agents.AgentsDir} {
		if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
			return dir
		}
	}
	for d := dir; d != filepath.Dir(d); d = filepath.Dir(d) {
		if filepath.Base(d) == agents.AgentsDir {
			return filepath.Dir(d)
		}
	}
	return dir
}

// folders walks the graph for agents.
func (g *graph) folders(ctx context.Context, opt Options, yield func(*Folder, error) bool) {
	if opt.Schema != "" {
		f, err := g.answersFolder(opt.Schema)
		yield(f, err)
		return
	}
	found := 0
	wanted := map[string]bool{}
	for _, name := range opt.Agents {
		wanted[name] = true
	}
	seen := map[string]bool{}
	more := g.walk(ctx, g.start, 0, func(f *Folder, err error) bool {
		if f != nil {
			found++
			seen[f.Agent] = true
			if len(wanted) > 0 && !wanted[f.Agent] {
				return true
			}
		}
		return yield(f, err)
	})
	if !more || ctx.Err() != nil {
		return
	}
	if found == 0 {
		yield(nil, fmt.Errorf("no agent is in %s: no folder in it holds system, output, turns or agent.yaml; for a folder of answers by itself give its schema file with --schema", filepath.Join(g.root, filepath.FromSlash(g.start))))
		return
	}
	for _, name := range opt.Agents {
		if !seen[name] && !yield(nil, fmt.Errorf("no agent is called %q", name)) {
			return
		}
	}
}

// parts are the folders of an agent that hold no agents.
var parts = []string{"system", "input", "output", "turns"}

// walk visits dir and what is below it, sorted by name. It does not follow
// links: what they lead to inside the graph is met where it lies.
func (g *graph) walk(ctx context.Context, dir string, depth int, yield func(*Folder, error) bool) bool {
	if err := ctx.Err(); err != nil {
		yield(nil, err)
		return false
	}
	entries, err := g.list(dir)
	if err != nil {
		return yield(nil, &Problem{Kind: Unreadable, Path: dir, Msg: "the folder " + plain(err), Err: err})
	}
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name && !e.Type().IsRegular() })
	}
	isAgent := has("system") || has("output") || has("turns") ||
		slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == agents.AgentFile })
	if isAgent && !yield(g.agentFolder(dir), nil) {
		return false
	}
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() || strings.HasPrefix(name, ".") || isAgent && slices.Contains(parts, name) {
			continue
		}
		if depth == maxDepth {
			return yield(nil, &Problem{Kind: Unreadable, Path: path.Join(dir, name), Msg: fmt.Sprintf("more than %d folders deep; not looked at", maxDepth)})
		}
		if !g.walk(ctx, path.Join(dir, name), depth+1, yield) {
			return false
		}
	}
	return true
}

// maxListed bounds the names of a folder that agents are looked for in.
const maxListed = 1 << 20

// list reads a folder, sorted by name.
func (g *graph) list(dir string) ([]fs.DirEntry, error) {
	d, err := g.files.Open(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxListed)
	if err != nil && err != io.EOF {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// read returns a regular file of at most most bytes.
func (g *graph) read(file string, most int64) ([]byte, error) {
	return readIn(g.files, file, most, nil)
}

// readIn reads a regular file below root, into buf where it has room. It does
// not wait for a named pipe.
func readIn(root *os.Root, file string, most int64, buf []byte) ([]byte, error) {
	f, err := root.OpenFile(filepath.FromSlash(file), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file")
	}
	size := info.Size()
	if size > most {
		return nil, fmt.Errorf("has %d bytes, more than the %d that are read: %w", size, most, ErrTooLarge)
	}
	if int64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	n, err := io.ReadFull(f, buf[:size])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	return buf[:n], nil // shorter when it was cut meanwhile
}

// real follows the links of a path of the graph; ok is false when they lead
// nowhere or out of it.
func (g *graph) real(file string) (real string, ok bool) {
	p, err := filepath.EvalSymlinks(filepath.Join(g.root, filepath.FromSlash(file)))
	if err != nil || agents.LeadsOut(g.root, p) {
		return "", false
	}
	rel := agents.Rel(g.root, p)
	return rel, !filepath.IsAbs(filepath.FromSlash(rel))
}
