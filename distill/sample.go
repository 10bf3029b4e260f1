package distill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/output"
	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/turn"
)

// Bounds of a sample, those of samples: and parallel: in the settings.
const (
	MaxSamples       = 1000 // answers to each input
	MaxSampledAtOnce = 1024
)

// SampleOptions say what is sampled. The agent's own settings hold for the
// rest; its history is left out.
type SampleOptions struct {
	Graph *agents.Graph
	Agent *agents.Agent
	// Inputs are files in the graph; empty: all that lie in the agent's input
	// folders. Where the agent joins its inputs they are one set.
	Inputs []string
	N      int // answers for each input
	Model  model.Model
	// Seed is the first answer's; further ones count up. Nil draws one.
	Seed *uint64
	// Sampling, where it is set, changes the agent's own.
	Sampling func(*model.Sampling)
	// Parallel is how many answers are generated at once; 0: as many as the
	// model serves.
	Parallel int
	// Audit may be called from many goroutines at once.
	Audit func(turn.Event)
}

// Sampled is one answer of a sample.
type Sampled struct {
	Input  string         `json:"input"` // relative to the graph
	Seed   *uint64        `json:"seed"`
	TurnID string         `json:"turn_id"`
	Output string         `json:"output,omitempty"` // relative to the graph
	Error  *record.Error  `json:"error"`
	Status record.Status  `json:"status,omitempty"` // empty: refused
	Record *record.Record `json:"-"`
}

// SampleReport counts what came of a sample.
type SampleReport struct {
	Inputs    int `json:"inputs"`
	Wanted    int `json:"wanted"` // answers
	Completed int `json:"completed"`
	Failed    int `json:"failed"` // without an answer
}

// Sample generates N answers for each input, each with a seed of its own, and
// publishes them in the agent's output folder, with a record each. The answers
// of one input have numbers that follow each other, in the order of their
// seeds, unless somebody else publishes meanwhile. found is told of each.
//
// When ctx ends, the answers that are whole by then are published, and of the
// others nothing is left. The report counts what was done, also beside an
// error; it is nil when nothing was begun.
func Sample(ctx context.Context, opt SampleOptions, found func(*Sampled) error) (*SampleReport, error) {
	s, err := newSampler(opt)
	if err != nil {
		return nil, err
	}
	sets, err := s.inputs(ctx)
	if err != nil {
		return nil, err
	}
	rep := &SampleReport{Inputs: len(sets), Wanted: len(sets) * s.N}
	for one, err := range mapWith(ctx, s.parallel, s.jobs(ctx, sets), s.run) {
		if err != nil {
			return rep, err
		}
		if ctx.Err() != nil && one.stopped() {
			continue
		}
		if err := s.publish(ctx, one); err != nil {
			return rep, err
		}
		if one.sampled.Output == "" {
			rep.Failed++
		} else {
			rep.Completed++
		}
		if err := found(&one.sampled); err != nil {
			return rep, err
		}
	}
	return rep, ctx.Err()
}

type sampler struct {
	SampleOptions
	parallel int
	seed     uint64
	folder   *output.Folder
	store    *store.Store
	// made are the turns behind answers that are inputs, by folder and path.
	made map[string]map[string]*Answer
}

func newSampler(opt SampleOptions) (*sampler, error) {
	a := opt.Agent
	switch {
	case a.Err != nil:
		return nil, a.Err
	case opt.N < 1:
		return nil, errors.New("a sample has 1 answer or more")
	case opt.N > MaxSamples:
		return nil, fmt.Errorf("a sample has at most %d answers to each input; sample again for more, with another --seed", MaxSamples)
	case opt.Parallel < 0 || opt.Parallel > MaxSampledAtOnce:
		return nil, fmt.Errorf("1 to %d answers are generated at once; set --parallel", MaxSampledAtOnce)
	}
	set := a.Settings.Sampling
	if opt.Sampling != nil {
		opt.Sampling(&set)
	}
	if set.Temperature == 0 && opt.N > 1 {
		return nil, fmt.Errorf("the temperature of agent %s is 0, so all its answers would be the same; set --temperature, for example to 0.8", a.Name)
	}
	if err := canWrite(a.TurnsDir); err != nil {
		return nil, fmt.Errorf("the records of agent %s cannot be written: %w; let this user write there", a.Name, err)
	}
	s := &sampler{SampleOptions: opt, parallel: opt.Parallel, folder: output.Open(a.OutputDir), store: store.Open(a.TurnsDir), made: map[string]map[string]*Answer{}}
	if s.parallel == 0 {
		s.parallel = max(opt.Model.Capabilities().Parallel, 1)
	}
	s.seed = uint64(rand.Uint32())
	if opt.Seed != nil {
		s.seed = *opt.Seed
	}
	return s, nil
}

// canWrite finds out before a token what would leave answers without a record.
func canWrite(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".agentgraph-*.tmp")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// inputs are the sets of files that each get N answers.
func (s *sampler) inputs(ctx context.Context) ([][]string, error) {
	joins := s.Agent.Settings.Join == agents.JoinAll
	if len(s.Inputs) > 0 {
		var files []string
		for _, in := range s.Inputs {
			file, err := s.inGraph(in)
			if err != nil {
				return nil, err
			}
			files = append(files, file)
		}
		if joins {
			return [][]string{files}, nil
		}
		return singly(files), nil
	}
	if joins {
		return nil, fmt.Errorf("agent %s joins its inputs; name the files of one set", s.Agent.Name)
	}
	var files []string
	for _, dir := range s.Agent.Inputs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if _, why, err := agents.Inspect(s.Graph.Root, path); err == nil && why == "" {
				files = append(files, path)
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("agent %s has no inputs; put a file into %s, or name one", s.Agent.Name, s.Graph.Rel(s.Agent.Inputs[0]))
	}
	return singly(files), nil
}

func singly(files []string) [][]string {
	sets := make([][]string, len(files))
	for i, f := range files {
		sets[i] = []string{f}
	}
	return sets
}

// inGraph is the absolute path of a file in the graph; records name files by
// where they lie in it.
func (s *sampler) inGraph(file string) (string, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("the input %s %s", file, plain(err))
	}
	abs = filepath.Join(dir, filepath.Base(abs))
	if rel := s.Graph.Rel(abs); filepath.IsAbs(filepath.FromSlash(rel)) {
		return "", fmt.Errorf("the input %s lies outside the graph %s; copy it into the graph", file, s.Graph.Root)
	}
	_, why, err := agents.Inspect(s.Graph.Root, abs)
	if err != nil {
		return "", fmt.Errorf("the input %s %s", file, plain(err))
	}
	if why != "" {
		return "", fmt.Errorf("%s is no input: %s", file, why)
	}
	return abs, nil
}

// sampleJob is one answer to be generated.
type sampleJob struct {
	req   *turn.Request
	input string
	index int
	err   error // the request cannot be made
}

// jobs are N requests for each set of inputs; a set is read once.
func (s *sampler) jobs(ctx context.Context, sets [][]string) iter.Seq2[*sampleJob, error] {
	return func(yield func(*sampleJob, error) bool) {
		next := s.seed
		for _, files := range sets {
			in, lineage, trace, err := s.read(ctx, files)
			if err != nil {
				yield(nil, err)
				return
			}
			names := make([]string, len(in))
			for i := range in {
				names[i] = in[i].Path
			}
			for index := range s.N {
				req, err := s.Agent.Turn(in)
				seed := next
				next++
				if s.Sampling != nil {
					s.Sampling(&req.Sampling)
				}
				req.Sampling.Seed = &seed
				req.TurnID, req.SessionID, req.Lineage = record.NewID(), s.Agent.Name, &lineage
				if req.TraceID = trace; trace == "" {
					req.TraceID = req.TurnID
				}
				req.Model, req.Audit = s.Model, s.Audit
				if !yield(&sampleJob{req: req, input: strings.Join(names, ", "), index: index, err: err}, nil) {
					return
				}
			}
		}
	}
}

// read reads the files of a set and finds out what they go back to.
func (s *sampler) read(ctx context.Context, files []string) (in []agents.Input, lineage record.Lineage, trace string, err error) {
	for _, file := range files {
		path := s.Graph.Rel(file)
		data, err := readSample(file, int64(s.Agent.Settings.InputBytes))
		own := record.FileRef{Path: path, SHA256: hashOf(data), Bytes: int64(len(data))}
		if errors.Is(err, ErrTooLarge) {
			own, err = hashFile(file, path) // the turn is refused, and says of what
		}
		if err != nil {
			return nil, lineage, "", fmt.Errorf("the input %s %s", path, plain(err))
		}
		in = append(in, agents.Input{Path: path, Data: data, SHA256: own.SHA256, Size: own.Bytes})
		from, err := s.maker(ctx, file, own)
		if err != nil {
			return nil, lineage, "", err
		}
		if from == nil || from.Lineage == nil {
			lineage.Roots = append(lineage.Roots, own)
			continue
		}
		for _, root := range from.Lineage.Roots {
			if !slices.Contains(lineage.Roots, root) {
				lineage.Roots = append(lineage.Roots, root)
			}
		}
		lineage.Hops = max(lineage.Hops, from.Lineage.Hops+1)
		if trace == "" {
			trace = deref(from.TraceID)
		}
	}
	return in, lineage, trace, nil
}

func hashFile(file, path string) (record.FileRef, error) {
	f, err := os.Open(file)
	if err != nil {
		return record.FileRef{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return record.FileRef{Path: path, SHA256: hex.EncodeToString(h.Sum(nil)), Bytes: n}, err
}

func readSample(file string, most int64) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	real, err := filepath.EvalSymlinks(file) // Inspect has seen that it stays inside
	if err != nil {
		return nil, err
	}
	if real != file {
		return readSample(real, most)
	}
	return readIn(root, filepath.Base(file), most, nil)
}

// maker is the turn that made an input, where it is an answer of this graph.
func (s *sampler) maker(ctx context.Context, file string, in record.FileRef) (*record.Record, error) {
	dir := filepath.Dir(file)
	i := slices.IndexFunc(s.Graph.Agents, func(a *agents.Agent) bool { return a.OutputDir == dir })
	if i < 0 {
		return nil, nil
	}
	known, ok := s.made[dir]
	if !ok {
		known = map[string]*Answer{}
		for a, err := range Answers(ctx, s.Graph.Root, Options{Agents: []string{s.Graph.Agents[i].Name}}) {
			var p *Problem
			switch {
			case errors.As(err, &p):
			case err != nil:
				return nil, err
			case a.TurnID != "":
				known[a.Path] = a
			}
		}
		s.made[dir] = known
	}
	a := known[in.Path]
	if a == nil || a.Output.SHA256 != in.SHA256 {
		return nil, nil // somebody else's, or changed since
	}
	return a.Record()
}

// sampledTurn is a turn that has run.
type sampledTurn struct {
	req     *turn.Request
	rec     *record.Record
	sampled Sampled
}

// stopped reports that a turn ended because the sample was, and not by itself.
func (t *sampledTurn) stopped() bool {
	return t.rec.Outcome == nil || t.rec.Outcome.Status == record.Cancelled
}

func (s *sampler) run(ctx context.Context, j *sampleJob) *sampledTurn {
	t := &sampledTurn{req: j.req}
	if j.err != nil {
		e := &record.Error{Code: record.Internal, Message: j.err.Error()}
		var own *agents.Error
		if errors.As(j.err, &own) {
			e = own.Record()
		}
		t.rec = turn.Refuse(j.req, e)
	} else {
		t.rec = turn.Run(ctx, j.req)
	}
	t.rec.Origin = record.OriginSample
	if s.N > 1 {
		t.rec.Sample = &record.Sample{Index: j.index, Of: s.N}
	}
	t.sampled = Sampled{Input: j.input, Seed: j.req.Sampling.Seed, TurnID: j.req.TurnID, Error: t.rec.Error, Record: t.rec}
	if o := t.rec.Outcome; o != nil {
		t.sampled.Status = o.Status
	}
	return t
}

// publish makes an answer a file and writes the record.
func (s *sampler) publish(ctx context.Context, t *sampledTurn) error {
	text, ok := t.rec.FileText()
	if ok {
		pattern := output.Default
		if format, ext, shaped := agents.AnswerName(t.req); shaped {
			var err error
			if pattern, err = output.NewPattern(format, ext); err != nil {
				return err
			}
		}
		started := time.Now()
		if t.rec.Timing != nil {
			started = t.rec.Timing.Started
		}
		// An answer that was paid for is published also when the rest is
		// cancelled.
		path, err := s.folder.Publish(context.WithoutCancel(ctx), pattern, started, []byte(text))
		if path == "" {
			return err
		}
		out := record.FileRef{Path: s.Graph.Rel(path), SHA256: hashOf([]byte(text)), Bytes: int64(len(text))}
		t.rec.Outputs = []record.FileRef{out}
		t.sampled.Output = out.Path
		if s.Audit != nil {
			s.Audit(turn.PublishEvent(t.req, out))
		}
	}
	_, err := s.store.Write(t.req.TurnID, t.rec)
	return err
}
