package runner

import (
	"fmt"
	"time"

	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/runner/internal/ledger"
)

// rebuild fills a new ledger from the records in turns/. A turn that was under
// way when the old ledger was lost has no record and is done again.
func (r *Runner) rebuild() error {
	for _, a := range r.graph.Agents {
		var batch []ledger.Turn
		flush := func() error {
			if len(batch) == 0 {
				return nil
			}
			err := r.ledger.Insert(batch).Wait(r.ctx)
			batch = nil
			return err
		}
		s := store.Open(a.TurnsDir)
		ids, err := s.IDs()
		if err != nil {
			return fmt.Errorf("rebuilding the ledger: %w", err)
		}
		for _, id := range ids {
			rec, err := s.Read(id)
			if err != nil {
				r.problem(a.Name, err.Error(), "its input may get another turn")
				continue
			}
			t, ok := turnOf(a.Name, id, rec)
			if !ok {
				continue
			}
			t.Seq = r.nextSeq.Add(1)
			if batch = append(batch, t); len(batch) >= 500 {
				if err := flush(); err != nil {
					return fmt.Errorf("rebuilding the ledger: %w", err)
				}
			}
		}
		if err := flush(); err != nil {
			return fmt.Errorf("rebuilding the ledger: %w", err)
		}
	}
	return nil
}

// turnOf is the ledger's row of a record.
func turnOf(agent, id string, rec *record.Record) (ledger.Turn, bool) {
	if len(rec.Inputs) == 0 {
		return ledger.Turn{}, false
	}
	t := ledger.Turn{ID: id, Agent: agent, Key: identity(agent, rec.Inputs), Inputs: rec.Inputs, Attempts: rec.Attempt, Trace: id, Created: time.Now()}
	if rec.Lineage != nil {
		t.Lineage = *rec.Lineage
	}
	if rec.TraceID != nil {
		t.Trace = *rec.TraceID
	}
	if rec.Error != nil {
		t.Code, t.Message = string(rec.Error.Code), rec.Error.Message
	}
	switch {
	case rec.Outcome == nil:
		t.State = ledger.Refused
	case rec.Outcome.Status == record.Completed:
		t.State = ledger.Done
		if len(rec.Outputs) > 0 {
			t.Output, t.OutputSHA = rec.Outputs[0].Path, rec.Outputs[0].SHA256
		}
	default:
		t.State = ledger.Failed
	}
	return t, true
}
