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
	early := *req
	// No model is opened: the turn is refused anyway.
	early.Model = s.absent(name)
	return turn.Run(ctx, &early)
}

// ended is the record of a call that was over before its model was asked.
func (s *Service) ended(ctx context.Context, req *turn.Request, name string) *record.Record {
	early := *req
	early.Model = s.absent(name)
	return turn.Ended(ctx, &early)
}

// absent stands for a model that is not opened.
func (s *Service) absent(name string) model.Model {
	id := model.Identity{Name: filepath.Base(name)}
	if spec, err := s.ModelSpec(name); err == nil {
		id.Name = filepath.Base(spec.GGUF + spec.Script)
		if !strings.ContainsAny(spec.Name, `/\`) && !strings.HasPrefix(spec.Name, "script:") {
			id.Alias = spec.Name
		}
	}
	return model.Absent{Who: id, Why: errors.New("not loaded")}
}
