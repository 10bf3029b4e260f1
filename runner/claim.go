package runner

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentgraph/agents"
	"agentgraph/record"
	"agentgraph/runner/internal/ledger"
)

// part is one input as it was read.
type part struct {
	in      *intake
	cand    *candidate
	path    string // relative to the graph
	data    []byte // nil when there is more than an input may have
	size    int64
	sha     string
	print   int64 // of the open file
	modTime time.Time
}

func (p *part) ref() record.FileRef {
	return record.FileRef{Path: p.path, SHA256: p.sha, Bytes: p.size}
}

var (
	errNotInput = errors.New("it is not an input any more")
	errChanging = errors.New("it changed while it was read")
)

// read reads the file of a candidate; the bytes that are hashed are those that
// are kept.
func (r *Runner) read(st *agentState, c *candidate, limit int) (*part, error) {
	path := filepath.Join(c.in.dir, c.name)
	if _, reason, err := agents.Inspect(r.root, path); err != nil {
		return nil, err
	} else if reason != "" {
		return nil, errNotInput
	}
	// The check and the open are two steps: the open goes through the graph's
	// folder, which no link leads out of.
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(filepath.FromSlash(r.rel(real)), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() || before.Size() == 0 {
		return nil, errNotInput
	}
	h := sha256.New()
	p := &part{in: c.in, cand: c, path: c.in.rel + "/" + c.name, print: printOf(before), modTime: before.ModTime()}
	if before.Size() <= int64(limit) {
		var b bytes.Buffer
		b.Grow(int(before.Size()) + 512)
		p.size, err = io.Copy(io.MultiWriter(h, &b), io.LimitReader(f, int64(limit)+1))
		p.data = b.Bytes()
	} else {
		p.size, err = io.Copy(h, f)
	}
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if printOf(after) != p.print || after.Size() != p.size {
		return nil, errChanging
	}
	p.sha = hex.EncodeToString(h.Sum(nil))
	return p, nil
}

// identity is the hash of what makes a turn the same turn.
func identity(agent string, inputs []record.FileRef) string {
	h := sha256.New()
	put := func(s string) { fmt.Fprintf(h, "%d:%s", len(s), s) }
	put(agent)
	for _, in := range inputs {
		put(in.Path)
		put(in.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Inputs up to this size are kept in the ledger, larger ones in files.
const inlineSnapshot = 64 << 10

// claim fixes what a turn is about. It reports whether there is a turn.
func (r *Runner) claim(st *agentState, j *job) bool {
	var parts []*part
	switch {
	case j.cand.set != nil:
		var ok bool
		if parts, ok = r.readSet(st, j.cand.set); !ok {
			return false
		}
	case st.settings().Join == agents.JoinAll:
		r.join(st, j.cand)
		return false
	default:
		p, ok := r.readOrBlock(st, j.cand)
		if !ok {
			return false
		}
		parts = []*part{p}
	}
	refs := make([]record.FileRef, len(parts))
	for i, p := range parts {
		refs[i] = p.ref()
	}
	key := identity(st.name, refs)

	r.mu.Lock()
	taken := r.openKeys[key]
	r.openKeys[key] = true
	r.mu.Unlock()
	if taken {
		r.settleParts(st, parts)
		return false
	}
	drop := func() {
		r.mu.Lock()
		delete(r.openKeys, key)
		r.mu.Unlock()
	}
	todo, of, first, err := r.missing(st.name, key, j.reserve)
	if err != nil {
		drop()
		r.blockParts(st, parts, err.Error(), "")
		return false
	}
	if len(todo) == 0 {
		drop()
		r.settleParts(st, parts)
		return false
	}
	lineage, trace, err := r.lineage(parts)
	if err != nil {
		drop()
		r.blockParts(st, parts, err.Error(), "")
		return false
	}
	if lineage.Hops > st.settings().MaxHops {
		drop()
		for _, p := range parts {
			if p.in.block(p.cand) {
				r.emit(Event{Kind: HopsReached, Agent: st.name, Inputs: []string{p.path}, Message: fmt.Sprintf("not taken: it has passed %d edges, max_hops is %d", lineage.Hops, st.settings().MaxHops)})
			}
		}
		return false
	}

	if trace == "" {
		trace = first // an earlier claim's
	}
	turns := make([]ledger.Turn, len(todo))
	for i, n := range todo {
		t := ledger.Turn{
			Seq: j.turn.Seq + int64(n), ID: record.NewID(), Agent: st.name, Key: ledger.SampleKey(key, n), State: ledger.Claimed, Created: r.now(),
			Inputs: refs, Lineage: lineage, Trace: trace,
		}
		if n >= j.reserve {
			t.Seq = r.nextSeq.Add(1) // the settings have changed since the first claim
		}
		if of > 1 {
			t.Sample, t.Samples = n, of
		}
		if t.Trace == "" {
			t.Trace, trace = t.ID, t.ID
		}
		turns[i] = t
	}
	inline := make([][]byte, len(parts))
	for i, p := range parts {
		j.data = append(j.data, p.data)
		j.sizes = append(j.sizes, p.size)
		switch {
		case p.data == nil:
		case len(p.data) <= inlineSnapshot:
			inline[i] = p.data
		default:
			if err := r.keepSnapshot(j, p); err != nil {
				drop()
				r.dropSnapshots(j)
				r.blockParts(st, parts, "an input's bytes cannot be kept: "+cause(err), "free disk space, or let this user write to "+agents.StateDir)
				return false
			}
		}
	}
	var files []ledger.File
	for _, p := range parts {
		if f, keep := p.in.dealt(p); keep {
			files = append(files, f)
		}
	}
	if !r.spread(st, j, key, turns, inline, files) {
		r.dropSnapshots(j)
		return false
	}
	j.stage = stageRun
	r.at("claimed")
	return true
}

// readOrBlock reads a candidate's file, or sees to it that it is tried again
// when that may help.
func (r *Runner) readOrBlock(st *agentState, c *candidate) (*part, bool) {
	p, err := r.read(st, c, st.settings().InputBytes)
	switch {
	case err == nil:
		return p, true
	case errors.Is(err, errChanging):
		c.in.release(c)
		r.lookAgain(c)
	case errors.Is(err, errNotInput), errors.Is(err, fs.ErrNotExist):
		c.in.release(c)
	default:
		r.block(st, c, "the input cannot be read: "+cause(err), "let this user read it")
	}
	return nil, false
}

func (r *Runner) lookAgain(c *candidate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.in.mark(c.name)
}

func (r *Runner) block(st *agentState, c *candidate, msg, hint string) {
	if c.in.block(c) {
		r.mu.Lock()
		r.stats.Unreadable++
		r.mu.Unlock()
		r.problem(st.name, c.in.rel+"/"+c.name+": "+msg, hint)
	}
}

func (r *Runner) blockParts(st *agentState, parts []*part, msg, hint string) {
	for _, p := range parts {
		r.block(st, p.cand, msg, hint)
	}
}

// settleParts notes files whose content had its turn before.
func (r *Runner) settleParts(st *agentState, parts []*part) {
	var files []ledger.File
	for _, p := range parts {
		if f, keep := p.in.dealt(p); keep {
			files = append(files, f)
		}
	}
	if len(files) > 0 {
		r.ledger.Seen(files...)
	}
}

// lineage is what inputs go back to. The trace is empty when they go back to
// no turn.
func (r *Runner) lineage(parts []*part) (record.Lineage, string, error) {
	var all record.Lineage
	trace := ""
	for _, p := range parts {
		from, t, err := r.origin(p)
		if err != nil {
			return record.Lineage{}, "", err
		}
		for _, root := range from.Roots {
			if !slices.ContainsFunc(all.Roots, func(x record.FileRef) bool { return x.Path == root.Path && x.SHA256 == root.SHA256 }) {
				all.Roots = append(all.Roots, root)
			}
		}
		all.Hops = max(all.Hops, from.Hops)
		if trace == "" {
			trace = t
		}
	}
	return all, trace, nil
}

// origin is the lineage of one input: that of the turn that wrote it with one
// more hop, or the input itself.
func (r *Runner) origin(p *part) (record.Lineage, string, error) {
	own := record.Lineage{Roots: []record.FileRef{p.ref()}}
	// An answer is visible a moment before its turn is noted as its producer;
	// the lock of the folder's publishes covers that moment.
	unlock := r.publishing(filepath.Dir(p.path))
	defer unlock()
	r.mu.Lock()
	from, ok := r.producers[p.path]
	r.mu.Unlock()
	if !ok {
		t, found, err := r.ledger.ByOutput(p.path)
		if err != nil {
			return own, "", err
		}
		from = producer{sha: t.OutputSHA, trace: t.Trace, lineage: t.Lineage}
		if !found {
			if from, found, err = r.sentBy(p); err != nil || !found {
				return own, "", err
			}
		}
	}
	if from.sha != p.sha {
		return own, "", nil // somebody has put another content there
	}
	l := from.lineage
	l.Hops++
	return l, from.trace, nil
}

// keepSnapshot keeps the bytes of a large input in a file until its turn ends.
func (r *Runner) keepSnapshot(j *job, p *part) error {
	r.mu.Lock()
	r.snapshots[p.sha]++
	r.mu.Unlock()
	j.files = append(j.files, p.sha)
	path := r.snapshotPath(p.sha)
	if info, err := os.Stat(path); err == nil && info.Size() == p.size {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(p.data); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (r *Runner) snapshotPath(sha string) string {
	return filepath.Join(r.root, agents.StateDir, "snapshots", sha)
}

// dropSnapshots removes the files that no other turn needs.
func (r *Runner) dropSnapshots(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sha := range j.files {
		if r.snapshots[sha]--; r.snapshots[sha] <= 0 {
			delete(r.snapshots, sha)
			_ = os.Remove(r.snapshotPath(sha)) // a leftover is swept at the next start
		}
	}
	j.files = nil
}

// load brings back the bytes of a turn that was claimed earlier: from its
// snapshot, or from the file when that still holds them.
func (r *Runner) load(st *agentState, j *job) error {
	if j.data != nil {
		return nil
	}
	snaps, err := r.ledger.Snapshots(j.turn.ID)
	if err != nil {
		return err
	}
	limit := st.settings().InputBytes
	var data [][]byte
	var sizes []int64
	for n, ref := range j.turn.Inputs {
		b, ok := snaps[n]
		if !ok {
			if raw, err := os.ReadFile(r.snapshotPath(ref.SHA256)); err == nil && hashOf(raw) == ref.SHA256 {
				b, ok = raw, true
			}
		}
		if !ok && ref.Bytes > int64(limit) {
			ok = true // refused by its size; its bytes do not matter
		}
		if !ok {
			dir, name := filepath.Split(filepath.FromSlash(ref.Path))
			in := &intake{r: r, st: st, dir: filepath.Join(r.root, dir), rel: strings.TrimSuffix(filepath.ToSlash(dir), "/")}
			p, err := r.read(st, &candidate{in: in, name: name}, limit)
			if err != nil {
				return fmt.Errorf("the input %s cannot be read again: %s", ref.Path, cause(err))
			}
			if p.sha != ref.SHA256 {
				return fmt.Errorf("the input %s has changed since; its new content has a turn of its own", ref.Path)
			}
			b = p.data
		}
		data = append(data, b)
		sizes = append(sizes, ref.Bytes)
	}
	j.data, j.sizes = data, sizes
	return nil
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
