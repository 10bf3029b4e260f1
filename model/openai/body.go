package openai

import "agentgraph/model"

// Body is what a server of this kind would be sent for a request, without a
// word to any server: the path below its address, and the JSON. name is the
// server's name for the model. A seed is never drawn. weak is the refusal that
// enforce: mask would answer with, for what the server does not hold although
// it takes the constraint.
func Body(server, name string, llguidance bool, req *model.Request) (path string, body []byte, weak, err error) {
	if name == "" {
		name = "default"
	}
	m, err := New(Config{Dialect: server, URL: "http://127.0.0.1/v1", Model: name, LLGuidance: llguidance})
	if err != nil {
		return "", nil, nil, err
	}
	defer m.Close()
	m.noSeed = true
	var w *way
	if req.Constraint != nil {
		found, refusal, mayHold := m.travels(req.Constraint)
		if !mayHold {
			return "", nil, nil, refusal
		}
		if w = found; refusal != nil {
			weak = refusal
		}
	}
	c, e := m.build(req, w)
	if e != nil {
		return "", nil, nil, e.Err
	}
	return c.path, c.body, weak, nil
}
