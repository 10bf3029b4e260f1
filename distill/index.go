package distill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"agentgraph/agents"
	"agentgraph/output"
	"agentgraph/record"
	"agentgraph/schemafile"
)

// Values of named.schemaIndex and entry.schema below the indexes.
const (
	freeText = -1
	noRecord = -2
)

// index is what an agent's records say about its output folder.
type index struct {
	byName map[string]*entry
	// schemas and patterns are those of the records; the first is free text.
	schemas  []*Schema
	patterns []output.Pattern
	at       map[Schema]int32
	records  int
	statuses map[record.Status]int // "" is refused before admission
}

// entry is one answer that a record names.
type entry struct {
	turnID string
	sum    [sha256.Size]byte
	bytes  int64
	schema int32
	met    bool
}

func (e *entry) ref(path string) record.FileRef {
	return record.FileRef{Path: path, SHA256: hex.EncodeToString(e.sum[:]), Bytes: e.bytes}
}

// headOf is one record file as a worker has read it.
type headOf struct {
	id   string
	head head
	err  error
}

// readIndex reads the heads of all records of the agent.
func (f *Folder) readIndex(ctx context.Context) (*index, []*Problem, error) {
	ix := &index{
		byName: map[string]*entry{}, at: map[Schema]int32{}, statuses: map[record.Status]int{},
		schemas: []*Schema{nil}, patterns: []output.Pattern{output.Default},
	}
	if f.turns == "" {
		return ix, nil, nil
	}
	dir, err := f.graph.files.OpenRoot(filepath.FromSlash(f.turns))
	if err != nil {
		return ix, []*Problem{f.unreadable(f.turns, err)}, nil
	}
	defer dir.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ids, heads := make(chan []string, 4), make(chan []headOf, 4)
	var problems []*Problem
	var listErr error
	go func() {
		defer close(ids)
		listErr = listRecords(ctx, dir, ids)
	}()
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			buf := make([]byte, 16<<10)
			for batch := range ids {
				out := make([]headOf, len(batch))
				for i, id := range batch {
					if ctx.Err() != nil {
						break
					}
					out[i].id = id
					out[i].head, out[i].err = readHead(dir, id, &buf)
				}
				heads <- out
			}
		})
	}
	go func() {
		workers.Wait()
		close(heads)
	}()
	prefixes := f.outputPrefixes()
	for batch := range heads {
		for _, h := range batch {
			if h.id != "" {
				problems = append(problems, f.add(ix, h, prefixes)...)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if listErr != nil {
		problems = append(problems, f.unreadable(f.turns, listErr))
	}
	slices.SortFunc(problems, func(a, b *Problem) int { return strings.Compare(a.Path, b.Path) })
	return ix, problems, nil
}

func (f *Folder) unreadable(dir string, err error) *Problem {
	return &Problem{Kind: Unreadable, Agent: f.Agent, Path: dir, Msg: "the folder " + plain(err), Err: err}
}

// listRecords sends the ids of the records of a turns/ folder in batches.
func listRecords(ctx context.Context, dir *os.Root, ids chan<- []string) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(256)
		batch := make([]string, 0, len(entries))
		for _, e := range entries {
			if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && id != "" && id[0] != '.' && !e.IsDir() {
				batch = append(batch, id)
			}
		}
		select {
		case ids <- batch:
		case <-ctx.Done():
			return nil
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// add puts one record into the index.
func (f *Folder) add(ix *index, h headOf, prefixes []string) (problems []*Problem) {
	file := path.Join(f.turns, h.id+".json")
	problem := func(err error, format string, args ...any) {
		problems = append(problems, &Problem{Kind: BadRecord, Agent: f.Agent, Path: file, Msg: fmt.Sprintf(format, args...), Err: err})
	}
	switch {
	case errors.Is(h.err, fs.ErrNotExist):
		return nil // removed in the meantime
	case h.err != nil:
		problem(h.err, "the record %s", plain(h.err))
		return problems
	}
	ix.records++
	ix.statuses[h.head.Status]++
	schema := int32(freeText)
	if s := h.head.Schema; s != nil {
		schema = ix.schema(*s)
	}
	for _, out := range h.head.Outputs {
		name, ok := inOutput(out.Path, prefixes)
		if !ok {
			problem(nil, "the record names %s, which is no file of the agent's output folder; not read", out.Path)
			continue
		}
		e := &entry{turnID: h.id, bytes: out.Bytes, schema: schema}
		if b, err := hex.DecodeString(out.SHA256); err != nil || len(b) != len(e.sum) {
			problem(err, "the sha256 of %s is none", out.Path)
			continue
		} else {
			copy(e.sum[:], b)
		}
		if old := ix.byName[name]; old != nil {
			// The order of a folder is nobody's decision: the first id counts.
			problem(nil, "the record names %s, as does %s.json", out.Path, max(old.turnID, e.turnID))
			if old.turnID < e.turnID {
				continue
			}
		}
		ix.byName[name] = e
	}
	return problems
}

// schema is the index of a promise that a record names.
func (ix *index) schema(s Schema) int32 {
	if i, ok := ix.at[s]; ok {
		return i
	}
	i := int32(len(ix.schemas) - 1)
	ix.at[s] = i
	ix.schemas = append(ix.schemas, &s)
	pattern := output.Default
	if n, err := schemafile.Parse(s.File); err == nil {
		if p, ok := patternOf(n.Format, n.Ext); ok {
			pattern = p
		}
	}
	ix.patterns = append(ix.patterns, pattern)
	return i
}

// outputPrefixes are what paths of the agent's answers begin with in its
// records; nil for an agent that lies in no agents/ folder, whose records may
// have been made anywhere.
func (f *Folder) outputPrefixes() []string {
	if f.answers == "" {
		return []string{}
	}
	own := "/" + f.answers + "/"
	at := strings.LastIndex("/"+f.Path+"/", "/"+agents.AgentsDir+"/")
	if at < 0 {
		return nil
	}
	// Counted from the folder that was walked, and from the nearest graph.
	prefixes := []string{own[1:]}
	if graph := ("/" + f.Path + "/")[:at+1]; len(graph) > 1 {
		if rest, ok := strings.CutPrefix(own, graph); ok {
			prefixes = append(prefixes, rest)
		}
	}
	return prefixes
}

// inOutput is the name of the answer that a record's path means.
func inOutput(p string, prefixes []string) (name string, ok bool) {
	dir, name := path.Split(p)
	if name == "" || name == "." || name == ".." {
		return "", false
	}
	if prefixes == nil {
		return name, path.Base(dir) == "output" && !strings.Contains("/"+dir, "/../")
	}
	return name, slices.Contains(prefixes, dir)
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
