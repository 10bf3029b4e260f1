package serve

import (
	"path/filepath"

	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/turn"
)

// Exchanges are the questions and answers of a thread, oldest first; the last
// n of them, or all when n is 0. A thread that is not there has none.
func (s *Service) Exchanges(thread string, n int) ([]store.Exchange, error) {
	t, err := s.thread(thread)
	if err != nil {
		return nil, err
	}
	return t.Exchanges(n)
}

// ThreadInfo is a thread in a list.
type ThreadInfo struct {
	store.ThreadInfo
	First   string // its first question
	Session store.Session
}

// Threads calls f with the threads that come after that one, in the order of
// store.ListThreads, until it returns false. The zero value is the first.
func (s *Service) Threads(after store.ThreadInfo, f func(ThreadInfo) bool) error {
	list, err := store.ListThreads(s.threads())
	if err != nil {
		return err
	}
	for _, t := range list {
		if c := t.Changed.Compare(after.Changed); after.Name != "" && (c > 0 || c == 0 && t.Name <= after.Name) {
			continue
		}
		thread, err := s.thread(t.Name)
		if err != nil {
			continue // ListThreads knows which names are none
		}
		if !f(ThreadInfo{t, thread.First(), thread.Session()}) {
			break
		}
	}
	return nil
}

// Session is what is kept of the session that a thread is; the zero value where
// that is nothing.
func (s *Service) Session(thread string) store.Session {
	t, err := s.thread(thread)
	if err != nil {
		return store.Session{}
	}
	return t.Session()
}

// KeepSession keeps it beside the thread, which has to be there.
func (s *Service) KeepSession(thread string, kept store.Session) error {
	t, err := s.thread(thread)
	if err != nil {
		return err
	}
	return t.KeepSession(kept)
}

func (s *Service) threads() string { return filepath.Join(s.cfg.StateDir, "threads") }

func (s *Service) thread(name string) (*store.Thread, error) {
	t, err := store.OpenThread(s.threads(), name)
	if err != nil {
		return nil, argument("thread", "%v", err)
	}
	return t, nil
}

// converse puts the thread's exchanges into the request and returns what adds
// the new one.
func converse(req *turn.Request, thread *store.Thread, last int) (func(*record.Record) error, error) {
	past, err := thread.Exchanges(last)
	if err != nil {
		return nil, err
	}
	for _, e := range past {
		req.History = append(req.History, turn.Exchange{User: e.User, Answer: e.Answer})
	}
	return func(rec *record.Record) error {
		answer, ok := rec.Answer()
		if !ok {
			return nil
		}
		return thread.Append(store.Exchange{Time: rec.Timing.Finished, TurnID: req.TurnID, User: req.User, Answer: answer})
	}, nil
}
