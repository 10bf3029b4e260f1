package serve

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentgraph/agents"
	"agentgraph/output"
	"agentgraph/record"
	"agentgraph/record/store"
)

// Answer is a published answer and the turn that made it.
type Answer struct {
	Agent    string                  `json:"agent"`
	Turn     string                  `json:"turn"`
	Inputs   []string                `json:"inputs"`
	File     string                  `json:"file"` // relative to the graph
	Finished time.Time               `json:"finished"`
	Status   record.ValidationStatus `json:"validation"`
	Text     string                  `json:"text"`
}

// Bounds of a list of answers.
const (
	DefaultAnswers = 20
	MaxAnswers     = 200
	// maxRecords bounds the records that are read for one list.
	maxRecords = 2000
)

// Answers lists the latest answers that are still there, newest first: at most
// limit of them (0: DefaultAnswers), of one agent or, with an empty name, of
// all. before is a turn of an earlier list to go on from; empty is the newest.
func (s *Service) Answers(agent string, limit int, before string) ([]Answer, error) {
	g, err := s.Graph()
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = DefaultAnswers
	}
	if limit < 0 || limit > MaxAnswers {
		return nil, argument("limit", "give a number from 1 to %d", MaxAnswers)
	}
	from := g.Agents
	if agent != "" {
		ag, err := agentOf(g, agent)
		if err != nil {
			return nil, err
		}
		from = []*agents.Agent{ag}
	}
	type ref struct {
		ag *agents.Agent
		id string
	}
	var refs []ref
	for _, ag := range from {
		if ag.LeadsOut() {
			continue
		}
		ids, err := store.Open(ag.TurnsDir).IDs()
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if before == "" || id < before {
				refs = append(refs, ref{ag, id})
			}
		}
	}
	// The names of turns begin with their time.
	slices.SortFunc(refs, func(a, b ref) int { return strings.Compare(b.id, a.id) })
	list := []Answer{}
	for i, r := range refs {
		if len(list) == limit || i == maxRecords {
			break
		}
		path := store.Open(r.ag.TurnsDir).Path(r.id)
		written := modTime(path)
		if s.without(path, written) {
			continue
		}
		rec, err := readRecord(g, r.ag, r.id)
		if err != nil {
			continue // doctor's business
		}
		if a, ok := answerOf(g, r.ag, r.id, rec); ok {
			list = append(list, a)
		} else if _, ok := rec.Answer(); !ok {
			s.note(path, written)
		}
	}
	return list, nil
}

// maxWithout bounds the turns that are remembered as without an answer.
const maxWithout = 100_000

// without reports that the record at path, as it was written then, is known to
// hold no answer: a list would otherwise read every failed turn each time.
func (s *Service) without(path string, written time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.failed[path]
	return ok && at.Equal(written)
}

func (s *Service) note(path string, written time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failed) >= maxWithout {
		clear(s.failed)
	}
	s.failed[path] = written
}

func modTime(path string) time.Time {
	info, err := os.Lstat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// answerOf is the answer that a turn published, when its file is still there.
func answerOf(g *agents.Graph, ag *agents.Agent, id string, rec *record.Record) (Answer, bool) {
	text, ok := rec.FileText()
	if !ok || len(rec.Outputs) == 0 || rec.Timing == nil {
		return Answer{}, false
	}
	file := rec.Outputs[0].Path
	if info, err := os.Lstat(filepath.Join(g.Root, filepath.FromSlash(file))); err != nil || !info.Mode().IsRegular() {
		return Answer{}, false
	}
	a := Answer{
		Agent: ag.Name, Turn: id, Inputs: []string{}, File: file,
		Finished: rec.Timing.Finished, Status: rec.OutputValidation.Status, Text: text,
	}
	for _, in := range rec.Inputs {
		a.Inputs = append(a.Inputs, in.Path)
	}
	return a, true
}

// Record reads the record of one turn of an agent. The error wraps
// fs.ErrNotExist when there is none.
func (s *Service) Record(agent, id string) (*record.Record, error) {
	g, err := s.Graph()
	if err != nil {
		return nil, err
	}
	ag, err := agentOf(g, agent)
	if err != nil {
		return nil, err
	}
	return readRecord(g, ag, id)
}

func readRecord(g *agents.Graph, ag *agents.Agent, id string) (*record.Record, error) {
	turns := store.Open(ag.TurnsDir)
	if agents.LeadsOut(g.Root, turns.Path(id)) {
		return nil, argument("turn", "%q is a link that leads out of the graph", id)
	}
	return turns.Read(id)
}

// AnswerFile reads a file of an agent's output folder as it stands there, at
// most limit bytes of it; more is an error. The error wraps fs.ErrNotExist when
// there is none.
func (s *Service) AnswerFile(agent, name string, limit int64) ([]byte, error) {
	g, err := s.Graph()
	if err != nil {
		return nil, err
	}
	ag, err := agentOf(g, agent)
	if err != nil {
		return nil, err
	}
	if filepath.Base(name) != name || strings.HasPrefix(name, ".") || strings.ContainsAny(name, `/\`) || output.IsTemp(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	// The root keeps a link from leading out, also one that appears now.
	root, err := os.OpenRoot(g.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readIn(root, g.Rel(filepath.Join(ag.OutputDir, name)), limit)
}

// Structured is the value of a completed answer that was held to a promise and
// is JSON, in the bytes of the answer; nil for every other record.
func Structured(rec *record.Record) json.RawMessage {
	text, ok := rec.Answer()
	if !ok || rec.OutputValidation.Status != record.Valid || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

// NotFound reports an error for something that is not there.
func NotFound(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrBadID)
}

// Turn is one turn of an agent: its answer, nil when it published none that is
// still there, and its record.
func (s *Service) Turn(agent, id string) (*Answer, *record.Record, error) {
	g, err := s.Graph()
	if err != nil {
		return nil, nil, err
	}
	ag, err := agentOf(g, agent)
	if err != nil {
		return nil, nil, err
	}
	rec, err := readRecord(g, ag, id)
	if NotFound(err) {
		return nil, nil, argument("turn", "%s has no turn %q", ag.Name, id)
	}
	if err != nil {
		return nil, nil, err
	}
	if a, ok := answerOf(g, ag, id, rec); ok {
		return &a, rec, nil
	}
	return nil, rec, nil
}
