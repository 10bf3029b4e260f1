package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"agentgraph/agents"
	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/runner/internal/ledger"
)

// rebuild fills a new ledger from the records in turns/. A turn that was under
// way when the old ledger was lost has no record and is done again.
func (r *Runner) rebuild() error {
	var wg sync.WaitGroup
	work := make(chan *agents.Agent)
	errs := make([]error, max(2, runtime.GOMAXPROCS(0)))
	for n := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for a := range work {
				if err := r.rebuildAgent(a); err != nil && errs[n] == nil {
					errs[n] = err
				}
			}
		}()
	}
	for _, a := range r.graph.Agents {
		work <- a
	}
	close(work)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("rebuilding the ledger: %w", err)
	}
	return nil
}

// rebuildAgent reads the records of one agent; their ids are in the order of
// the claims.
func (r *Runner) rebuildAgent(a *agents.Agent) error {
	s := store.Open(a.TurnsDir)
	ids, err := s.IDs()
	if err != nil {
		return err
	}
	var batch []ledger.Turn
	for n, id := range ids {
		rec, err := readBrief(s, id)
		if err != nil {
			r.problem(a.Name, err.Error(), "its input may get another turn")
		} else if t, ok := turnOf(a.Name, id, rec); ok {
			t.Seq = r.nextSeq.Add(1)
			batch = append(batch, t)
		}
		if len(batch) > 0 && (len(batch) >= 500 || n == len(ids)-1) {
			if err := r.ledger.Insert(batch).Wait(r.ctx); err != nil {
				return err
			}
			batch = nil
		}
	}
	return nil
}

// readBrief reads what a ledger needs of a record: not the request, which is
// most of it and whose long texts are in files of their own.
func readBrief(s *store.Store, id string) (*record.Record, error) {
	data, err := os.ReadFile(s.Path(id))
	if err != nil {
		return nil, err
	}
	var brief struct {
		Attempt int              `json:"attempt"`
		TraceID *string          `json:"trace_id"`
		Error   *record.Error    `json:"error"`
		Inputs  []record.FileRef `json:"inputs"`
		Outputs []record.FileRef `json:"outputs"`
		Lineage *record.Lineage  `json:"lineage"`
		Sample  *record.Sample   `json:"sample"`
		Origin  string           `json:"origin"`
		Outcome *struct {
			Status record.Status `json:"status"`
		} `json:"outcome"`
	}
	if json.Unmarshal(data, &brief) != nil {
		return s.Read(id) // says what is wrong with it
	}
	rec := &record.Record{Attempt: brief.Attempt, TraceID: brief.TraceID, Error: brief.Error,
		Inputs: brief.Inputs, Outputs: brief.Outputs, Lineage: brief.Lineage, Sample: brief.Sample, Origin: brief.Origin}
	if brief.Outcome != nil {
		rec.Outcome = &record.Outcome{Status: brief.Outcome.Status}
	}
	return rec, nil
}

// turnOf is the ledger's row of a record. What the sample command made is no
// turn of the graph.
func turnOf(agent, id string, rec *record.Record) (ledger.Turn, bool) {
	if len(rec.Inputs) == 0 || rec.Origin == record.OriginSample {
		return ledger.Turn{}, false
	}
	t := ledger.Turn{ID: id, Agent: agent, Key: identity(agent, rec.Inputs), Inputs: rec.Inputs, Attempts: rec.Attempt, Trace: id, Created: time.Now()}
	if n := rec.Sample; n != nil && n.Index >= 0 && n.Index < n.Of {
		t.Key, t.Sample, t.Samples = ledger.SampleKey(t.Key, n.Index), n.Index, n.Of
	}
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
