package serve

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/turn"
)

// earlyRefusal refuses what the schema alone decides, or returns nil. No model
// is loaded for it.
func (s *Service) earlyRefusal(ctx context.Context, req *turn.Request, name string) *record.Record {
	if req.Spec == nil {
		return nil
	}
	if _, err := constraint.Compile(*req.Spec, req.ConstraintOptions); err == nil {
		return nil
	}
	// No model is opened: the turn is refused anyway.
	return turn.Run(ctx, s.unopened(req, name))
}

// unopened is the request with what stands for a model that is not opened.
func (s *Service) unopened(req *turn.Request, name string) *turn.Request {
	id := model.Identity{Name: filepath.Base(name)}
	if spec, err := s.ModelSpec(name); err == nil {
		id.Name = filepath.Base(spec.GGUF + spec.Script)
		if !strings.ContainsAny(spec.Name, `/\`) && !strings.HasPrefix(spec.Name, "script:") {
			id.Alias = spec.Name
		}
	}
	early := *req
	early.Model = model.Absent{Who: id, Why: errors.New("not loaded")}
	return &early
}
