package runner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/tools"
	"agentgraph/turn"
)

// equip gives a turn what its tools need: those that are open already, and
// somebody to ask.
func (r *Runner) equip(req *turn.Request) {
	req.Toolbox = &r.tools
	if !r.once { // nobody reaches a run that ends by itself
		req.Approver = r.desk
	}
}

// asked tells people about a call that waits for them.
func (r *Runner) asked(q tools.Question) {
	r.emit(Event{Kind: ApprovalWanted, Agent: q.Agent, Turn: q.TurnID, Approval: &q,
		Message: "the tool " + q.Tool + " waits for approval", Hint: "agentgraph approve " + q.ID})
}

// sentBy is the turn that sent a message: one hop less than the message.
func (r *Runner) sentBy(p *part) (producer, bool, error) {
	id, ok := tools.SentBy(filepath.Base(p.path), p.sha)
	if !ok {
		return producer{}, false, nil
	}
	t, found, err := r.ledger.ByID(id)
	if err == nil && !found {
		// Its claim may not be on disk yet.
		if err = r.ledger.Flush(r.ctx); err == nil {
			t, found, err = r.ledger.ByID(id)
		}
	}
	if err != nil || !found {
		return producer{}, false, err
	}
	return producer{sha: p.sha, trace: t.Trace, lineage: t.Lineage}, true, nil
}

// stream is the file that shows an answer while it is generated. Its name ends
// in .part, which is no input to anybody.
type stream struct {
	r      *Runner
	dir    string
	file   *os.File
	tokens int
	failed bool
}

func (r *Runner) newStream(a *agents.Agent) *stream {
	if a.Settings.StreamOutput == "" {
		return nil
	}
	return &stream{r: r, dir: a.Settings.StreamOutput}
}

func streamName(turn string) string { return turn + ".part" }

// write appends what is new. A count of tokens that goes back is another call
// of the model, and its text begins anew.
func (s *stream) write(turn string, p model.Progress) {
	if s == nil || s.failed {
		return
	}
	again := p.Tokens < s.tokens
	s.tokens = p.Tokens
	err := s.append(turn, p.Text, again)
	if err != nil {
		s.failed = true
		s.r.problem("", "the answer cannot be shown while it grows: "+cause(err), "let this user write to "+s.r.rel(s.dir))
	}
}

func (s *stream) append(turn, text string, again bool) error {
	if s.file == nil {
		root, err := s.root()
		if err != nil {
			return err
		}
		defer root.Close()
		if s.file, err = root.OpenFile(streamName(turn), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666); err != nil {
			return err
		}
	}
	if again {
		if err := s.file.Truncate(0); err != nil {
			return err
		}
		if _, err := s.file.Seek(0, 0); err != nil {
			return err
		}
	}
	_, err := s.file.WriteString(text)
	return err
}

func (s *stream) root() (*os.Root, error) {
	root, err := os.OpenRoot(s.r.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	rel, err := filepath.Rel(s.r.root, s.dir)
	if err != nil {
		return nil, err
	}
	if err := root.MkdirAll(rel, 0o777); err != nil {
		return nil, err
	}
	return root.OpenRoot(rel)
}

func (s *stream) close() {
	if s != nil && s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// endStream is called when a turn is over: the file of a published answer gets
// its name or goes, that of another goes unless it is to stay as it is.
func (r *Runner) endStream(st *agentState, j *job, answer string) {
	s := r.newStream(st.current())
	if s == nil {
		return
	}
	root, err := s.root()
	if err != nil {
		return
	}
	defer root.Close()
	part := streamName(j.turn.ID)
	switch keep := st.settings().KeepStream; {
	case keep && answer != "":
		err = root.Rename(part, filepath.Base(answer))
	case keep:
	default:
		err = root.Remove(part)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.problem(st.name, "the file of a finished stream cannot be put away: "+cause(err), "let this user write to "+r.rel(s.dir))
	}
}

// sweepStreams removes what a runner that died left in the folder of an
// agent's streams: files of turns whose claims were lost with it, so that they
// were never known. Called before the agent's turns begin.
func (r *Runner) sweepStreams(a *agents.Agent) {
	s := r.newStream(a)
	if s == nil {
		return
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) == 0 {
		return // most often it is not there yet
	}
	root, err := s.root()
	if err != nil {
		return
	}
	defer root.Close()
	flushed := false
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".part")
		if _, err := uuid.Parse(id); !ok || err != nil || len(id) != 36 || !e.Type().IsRegular() {
			continue // somebody else's
		}
		if !flushed {
			// Other agents may share the folder, and be at work.
			if r.ledger.Flush(r.ctx) != nil {
				return
			}
			flushed = true
		}
		if _, known, err := r.ledger.ByID(id); err != nil || known {
			continue
		}
		if err := root.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.problem(a.Name, "what a dead runner showed of an answer cannot be removed: "+cause(err), "let this user write to "+r.rel(s.dir))
		}
	}
}

// published is what the file of an answer holds.
func published(rec *record.Record) []byte {
	text, _ := rec.FileText()
	return []byte(text)
}
