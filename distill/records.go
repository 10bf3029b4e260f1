package distill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"agentgraph/record"
	"agentgraph/record/store"
)

// keptSources bounds the shared texts that a walk keeps in memory.
const keptSources = 32 << 20

// readHead reads the part of a record that the index needs. It reads into
// *buf and makes it larger where it is too small.
func readHead(dir *os.Root, id string, buf *[]byte) (head, error) {
	b, err := readIn(dir, id+".json", store.MaxRecordBytes, *buf)
	if err != nil {
		return head{}, err
	}
	if cap(b) > cap(*buf) && cap(b) <= 1<<20 {
		*buf = b
	}
	return parseHead(b)
}

// record reads a whole record, its shared texts put back.
func (f *Folder) record(id string) (*record.Record, error) {
	r, _, err := f.recordBytes(id)
	return r, err
}

// recordBytes also returns the bytes of the record's file.
func (f *Folder) recordBytes(id string) (*record.Record, []byte, error) {
	file := path.Join(f.turns, id+".json")
	wrong := func(err error) error {
		return &Problem{Kind: BadRecord, Agent: f.Agent, Path: file, Msg: "the record " + plain(err), Err: err}
	}
	if strings.ContainsAny(id, "/\\") {
		return nil, nil, wrong(store.ErrBadID)
	}
	b, err := f.graph.read(file, store.MaxRecordBytes)
	if err != nil {
		return nil, nil, wrong(err)
	}
	r, err := store.Decode(b, f.source)
	if err != nil {
		return nil, nil, wrong(fmt.Errorf("cannot be used: %w", err))
	}
	return r, b, nil
}

// source reads a text that records of the agent share.
func (f *Folder) source(sum string) ([]byte, error) {
	g := f.graph
	g.mu.Lock()
	b, ok := g.sources[sum]
	g.mu.Unlock()
	if ok {
		return b, nil
	}
	b, err := g.read(path.Join(f.turns, "sources", sum), store.MaxSourceBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: sources/%s", store.ErrMissingSource, sum)
	}
	if err != nil {
		return nil, fmt.Errorf("sources/%s %s", sum, plain(err))
	}
	if hashOf(b) != sum {
		return b, nil // Decode refuses it
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held+len(b) > keptSources {
		clear(g.sources)
		g.held = 0
	}
	g.sources[sum] = b
	g.held += len(b)
	return b, nil
}
