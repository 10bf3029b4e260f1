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

func (s *Service) thread(name string) (*store.Thread, error) {
	t, err := store.OpenThread(filepath.Join(s.cfg.StateDir, "threads"), name)
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
