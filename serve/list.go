package serve

import (
	"errors"
	"path/filepath"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/runner"
)

// AgentInfo is an agent as callers see it.
type AgentInfo struct {
	Name  string `json:"name"`
	Model string `json:"model"`
	// Inputs are the folders it reads, Output the one it writes, relative to
	// the graph.
	Inputs []string `json:"inputs"`
	Output string   `json:"output"`
	// Schema is what its answers are held to; nil means free text.
	Schema *SchemaInfo `json:"schema"`
	// Error says why it cannot run.
	Error string `json:"error,omitempty"`
	// State and counts are the runner's; State is empty where none works.
	State   string `json:"state,omitempty"`
	Pending int    `json:"pending"`
	Running int    `json:"running"`
	Done    int    `json:"done"`
	Failed  int    `json:"failed"`
	Refused int    `json:"refused"`
}

// SchemaInfo is an agent's schema file.
type SchemaInfo struct {
	Kind   constraint.Kind `json:"kind"`
	File   string          `json:"file"`
	Source string          `json:"source"`
}

// Agents lists the agents of the graph by name, those that cannot run among
// them.
func (s *Service) Agents() ([]AgentInfo, error) {
	g, err := s.Graph()
	if err != nil {
		return nil, err
	}
	status := map[string]runner.AgentStatus{}
	now, err := s.Status()
	if err != nil && !errors.Is(err, runner.ErrNotRunning) {
		s.warn(err)
	}
	for _, st := range now.Agents {
		status[st.Name] = st
	}
	list := []AgentInfo{}
	for _, ag := range g.Agents {
		info := AgentInfo{Name: ag.Name, Model: ag.Settings.Model, Inputs: []string{}, Output: g.Rel(ag.OutputDir)}
		if ag.Settings.ModelSpec.GGUF != "" && info.Model == ag.Settings.ModelSpec.GGUF {
			info.Model = filepath.Base(info.Model) // a path outside is of no use to a caller
		}
		for _, in := range ag.Inputs {
			info.Inputs = append(info.Inputs, g.Rel(in))
		}
		info.Schema, err = schemaOf(ag)
		if err == nil {
			err = ag.Err
		}
		if err != nil {
			info.Error = err.Error()
		}
		if st, ok := status[ag.Name]; ok {
			info.State, info.Pending, info.Running = st.State, st.Pending+st.Settling+st.Retrying, len(st.Running)
			info.Done, info.Failed, info.Refused = st.Done, st.Failed, st.Refused
		}
		list = append(list, info)
	}
	return list, nil
}

// schemaOf reads the agent's schema file by the rules of a turn.
func schemaOf(ag *agents.Agent) (*SchemaInfo, error) {
	if ag.Err != nil {
		return nil, nil
	}
	req, err := ag.Turn([]agents.Input{{Path: "check", Data: []byte("check")}})
	if err != nil || req.Spec == nil {
		return nil, err
	}
	return &SchemaInfo{Kind: req.Spec.Kind, File: req.SchemaFile, Source: string(req.Spec.Source)}, nil
}

// Folders are where an agent's answers and records are; the paths are absolute.
type Folders struct {
	Agent, Output, Turns string
}

// Folders lists the folders of every agent, by name, but for those that lead
// out of the graph.
func (s *Service) Folders() ([]Folders, error) {
	g, err := s.Graph()
	if err != nil {
		return nil, err
	}
	var list []Folders
	for _, ag := range g.Agents {
		if ag.LeadsOut() {
			continue
		}
		list = append(list, Folders{ag.Name, ag.OutputDir, ag.TurnsDir})
	}
	return list, nil
}

// HasAgent reports whether the graph has an agent of this name.
func (s *Service) HasAgent(name string) bool {
	g, err := s.Graph()
	return err == nil && g.Agent(name) != nil
}
