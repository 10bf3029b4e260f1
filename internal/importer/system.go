package importer

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentgraph/schemafile"
	"agentgraph/turn"
)

// Bounds of what is copied from system folders: of one file, and of all.
const (
	maxSystemBytes = 4 << 20
	maxCopiedBytes = 64 << 20
)

// promise is a schema file and what is in it.
type promise struct {
	name, from string
	data       []byte
}

// system copies the files of the system folders into the one of the agent.
func (im *importing) system(a *agent, k node) {
	list, ok := k.texts()
	if !ok {
		im.wrong(k, "a list of folders")
		return
	}
	var promises []promise
	for i, p := range list {
		prefix := ""
		switch {
		case im.abs(p) == im.plan.path(a.dir()+"/system"):
			// Its files are in their place.
			if len(list) > 1 {
				im.changed(k, "the files of %s stay where they are; those of the other folders come before or after them by their names", p)
			}
		case len(list) > 1:
			prefix = fmt.Sprintf("%02d-", i+1) // the folders in their order
		}
		promises = append(promises, im.systemFolder(a, k, p, prefix)...)
	}
	if len(promises) == 0 {
		return
	}
	// AgentGraph takes the last, whatever "last" is; here two are an error.
	last := promises[len(promises)-1]
	for _, other := range promises[:len(promises)-1] {
		remove := ""
		if im.abs(other.from) == im.plan.path(a.dir()+"/system/"+other.name) {
			remove = "; remove it, two are an error"
		}
		im.lost(k, "the schema file %s: an agent has one, and %s was taken%s", other.from, last.name, remove)
	}
	if _, err := schemafile.Parse(last.name); err != nil {
		im.lost(k, "the schema file %s, with which AgentGraph promises nothing: %v", last.from, err)
		return
	}
	im.copied(a, last.name, last.from, last.data)
}

// systemFolder plans the copies of one folder and returns its schema files.
func (im *importing) systemFolder(a *agent, k node, dir, prefix string) (promises []promise) {
	abs := im.abs(dir)
	entries, err := os.ReadDir(abs)
	if err != nil {
		im.lost(k, "the folder %s cannot be read: %v", dir, cause(err))
		return nil
	}
	for _, e := range entries {
		from := filepath.ToSlash(filepath.Join(dir, e.Name()))
		info, err := os.Stat(filepath.Join(abs, e.Name()))
		switch {
		case err != nil:
			im.lost(k, "%s cannot be read: %v", from, cause(err))
			continue
		case info.IsDir():
			im.lost(k, "the folder %s: only the files of a system folder itself are read here", from)
			continue
		case !info.Mode().IsRegular() || info.Size() > maxSystemBytes:
			im.lost(k, "%s is no file of at most %d bytes", from, maxSystemBytes)
			continue
		case im.read+info.Size() > maxCopiedBytes:
			im.lost(k, "%s: with it the system folders hold more than the %d bytes that are copied; copy it by hand", from, maxCopiedBytes)
			continue
		}
		data, err := readUpTo(filepath.Join(abs, e.Name()), info.Size())
		if err != nil {
			im.lost(k, "%s cannot be read: %v", from, cause(err))
			continue
		}
		im.read += info.Size()
		switch why, _ := turn.NotText("it", data); {
		case strings.HasPrefix(e.Name(), ".schema-"):
			promises = append(promises, promise{e.Name(), from, data})
		case strings.HasPrefix(e.Name(), "."):
			im.lost(k, "%s: files whose names begin with a dot are no part of the prompt", from)
		case why != "":
			im.lost(k, "%s: %s", from, why)
		default:
			im.copied(a, prefix+e.Name(), from, data)
		}
	}
	return promises
}

// copied plans one copy, unless the file is where it is to be.
func (im *importing) copied(a *agent, name, from string, data []byte) {
	path := a.dir() + "/system/" + name
	if im.abs(from) == im.plan.path(path) {
		return
	}
	im.file(path, from, data)
}

// readUpTo reads a file as long as it was when it was looked at.
func readUpTo(path string, size int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, size))
}

func cause(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err
	}
	return err
}
