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
	id := model.Identity{Name: filepath.Base(name)}
	if spec, err := s.ModelSpec(name); err == nil {
		id.Name = filepath.Base(spec.GGUF + spec.Script)
		if !strings.ContainsAny(spec.Name, `/\`) && !strings.HasPrefix(spec.Name, "script:") {
			id.Alias = spec.Name
		}
	}
	early.Model = unloaded{id}
	return turn.Run(ctx, &early)
}

// unloaded is a model that was not opened because its turn is refused anyway.
type unloaded struct{ identity model.Identity }

func (u unloaded) Generate(context.Context, *model.Request) (*model.Response, error) {
	return nil, &model.Error{Kind: model.Unavailable, Delivery: model.NotSent, Model: u.identity.Name, Err: errors.New("not loaded")}
}

func (u unloaded) Render(context.Context, *model.Request) (model.Rendered, error) {
	return model.Rendered{}, model.ErrNotRendered
}

func (u unloaded) Capabilities() model.Capabilities { return model.Capabilities{Parallel: 1} }
func (u unloaded) Identity() model.Identity         { return u.identity }
func (u unloaded) Close() error                     { return nil }
