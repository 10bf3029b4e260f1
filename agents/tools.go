package agents

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentgraph/record"
	"agentgraph/tools"
	"agentgraph/turn"
)

// toolConfigs is the setting `tools:` with its paths as they are written.
func toolConfigs(list []ToolOptions) []tools.Config {
	var out []tools.Config
	for _, t := range list {
		c := tools.Config{
			Command: t.Command, Only: t.Only, Prefix: or(t.Prefix, ""),
			Policy: tools.Policy(or(t.Policy, "")), Timeout: time.Duration(or(t.Timeout, 0)),
			OutputBytes: or(t.OutputBytes, 0), Dir: or(t.Dir, ""), Env: t.Env,
		}
		for name, p := range t.Policies {
			if c.Policies == nil {
				c.Policies = map[string]tools.Policy{}
			}
			c.Policies[name] = tools.Policy(p)
		}
		if m := t.MCP; m != nil {
			c.MCP = &tools.Server{Command: m.Command, URL: or(m.URL, ""), Headers: m.Headers}
		}
		if t.Tool != nil {
			c = WithTool(c, *t.Tool)
		}
		out = append(out, c)
	}
	return out
}

// WithTool puts the tool that a plain word means into an entry: a built-in,
// or a program.
func WithTool(c tools.Config, word string) tools.Config {
	if slices.Contains(tools.Builtins, word) {
		c.Builtin = word
	} else {
		c.Command = append([]string{word}, c.Command...)
	}
	return c
}

// resolveTools makes the paths of tools absolute; base is the folder of the
// file they stand in.
func resolveTools(list []tools.Config, base string) []tools.Config {
	program := func(cmd []string) []string {
		if len(cmd) == 0 || !strings.ContainsAny(cmd[0], `/\`) {
			return cmd
		}
		return append([]string{absFrom(base, cmd[0])}, cmd[1:]...)
	}
	out := slices.Clone(list)
	for i, c := range out {
		out[i].Command = program(c.Command)
		if c.Dir != "" {
			out[i].Dir = absFrom(base, c.Dir)
		}
		if c.MCP != nil {
			m := *c.MCP
			m.Command = program(m.Command)
			out[i].MCP = &m
		}
	}
	return out
}

// tools resolves and checks the settings of tools and of the folders for their
// results and for unfinished answers.
func (l *loader) tools(a *Agent, stop func(...*Error)) {
	base := func(key string) string {
		if _, own := a.places[key]; own {
			return a.Dir
		}
		return l.g.Root
	}
	s := &a.Settings
	s.Tools = resolveTools(s.Tools, base("tools"))
	for i, c := range s.Tools {
		key := fmt.Sprintf("tools[%d]", i)
		unread := c.Builtin == "" && len(c.Command) == 0 && c.MCP == nil && a.Err != nil
		if err := c.Validate(); err != nil && !unread {
			stop(l.at(a, key, key+": "+err.Error(), "docs/tools.md shows how tools are written"))
		}
		if c.Builtin != "" && c.Dir != "" && !inside(l.g.Root, c.Dir) {
			stop(l.at(a, key, key+": its dir lies outside the graph", "nothing leaves the graph; name a folder in it"))
		}
	}
	for _, f := range []struct {
		key string
		dir *string
	}{{"tool_output", &s.ToolOutput}, {"stream_output", &s.StreamOutput}} {
		if *f.dir == "" {
			continue
		}
		real, err := realPath(absFrom(base(f.key), *f.dir))
		switch {
		case err != nil || !inside(l.g.Root, real) || real == l.g.Root || inside(filepath.Join(l.g.Root, StateDir), real):
			stop(l.at(a, f.key, fmt.Sprintf("%s: %s is no folder for this in the graph", f.key, shorten(*f.dir)), "name a folder of its own inside the graph"))
		case real == a.OutputDir || real == a.TurnsDir || real == a.SystemDir || real == a.Dir:
			stop(l.at(a, f.key, fmt.Sprintf("%s is the agent's own %s", f.key, filepath.Base(real)), "nothing but whole answers is in output; name a folder of its own"))
		case isKept(rel(l.g.Root, real)):
			stop(l.at(a, f.key, fmt.Sprintf("%s lies in %s", f.key, rel(l.g.Root, real)), "nothing but whole answers is in output, and nothing but records in turns; name a folder of its own"))
		}
		*f.dir = real
	}
}

// isKept reports that a path in the graph is, or lies in, the system, output or
// turns folder of any agent.
func isKept(path string) bool {
	parts := strings.Split(filepath.ToSlash(path), "/")
	if len(parts) < 3 || parts[0] != AgentsDir {
		return false
	}
	return parts[2] == "system" || parts[2] == "output" || parts[2] == "turns"
}

// toolPlace says where the tools of a turn are called from.
func (a *Agent) toolPlace(req *turn.Request) {
	if len(req.Tools) > 0 {
		req.Place = tools.Place{Root: a.root, Dir: a.Dir, Notes: filepath.Join(a.Dir, "notes"), Peers: a.peers()}
	}
	dir := a.Settings.ToolOutput
	if dir == "" {
		return
	}
	root, folder := a.root, rel(a.root, dir)
	req.ToolResult = func(c record.ToolCall) error {
		if c.Result == nil {
			return nil
		}
		// The name of a tool that is not offered is whatever a model writes.
		name := strings.Map(func(r rune) rune {
			if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
				return r
			}
			return '_'
		}, c.Name)
		return tools.WriteResult(root, folder, fmt.Sprintf("tool-%.64s-%s-%s.txt", name, req.TurnID, c.ID), *c.Result)
	}
}

// peers are the agents that take messages: those with an input folder that no
// agent writes to.
func (a *Agent) peers() []tools.Peer {
	if a.graph == nil {
		return nil
	}
	written := map[string]bool{}
	for _, other := range a.graph.Agents {
		written[other.OutputDir] = true
	}
	var list []tools.Peer
	for _, other := range a.graph.Agents {
		if other.Name == a.Name || other.Err != nil {
			continue
		}
		if i := slices.IndexFunc(other.Inputs, func(dir string) bool { return !written[dir] }); i >= 0 {
			list = append(list, tools.Peer{Name: other.Name, Input: other.Inputs[i], MaxHops: other.Settings.MaxHops})
		}
	}
	return list
}
