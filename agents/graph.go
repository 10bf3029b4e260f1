package agents

import (
	"cmp"
	"slices"
	"strings"
)

// Graph is what Load found.
type Graph struct {
	// Root is the graph's folder, absolute and without links.
	Root     string
	Settings GraphSettings
	// Models are the usable entries of models:, by name.
	Models map[string]ModelSpec
	// Defaults hold for a call that no agent makes; ModelSpec resolves their
	// Model.
	Defaults Settings
	// Agents are sorted by name, those that cannot run among them.
	Agents   []*Agent
	Findings []Finding

	places map[string]place // of the keys of agentgraph.yaml
	room   map[string]int   // answers at once that agents want of local models
}

// Agent is one agent folder. Its paths are absolute and, where they exist,
// without links.
type Agent struct {
	Name      string
	Dir       string
	Inputs    []string
	OutputDir string
	TurnsDir  string
	SystemDir string
	Settings  Settings
	// Err says why this agent cannot run; nil when it can.
	Err error

	root   string
	graph  *Graph
	places map[string]place
	// modelText is model: as the settings have it; empty with --model.
	modelText string
}

// Agent returns the agent of that name, or nil.
func (g *Graph) Agent(name string) *Agent {
	i, ok := slices.BinarySearchFunc(g.Agents, name, func(a *Agent, n string) int { return strings.Compare(a.Name, n) })
	if !ok {
		return nil
	}
	return g.Agents[i]
}

// Edge says that To reads what From writes.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Edges are sorted by From, then To.
func (g *Graph) Edges() []Edge {
	writer := map[string]string{}
	for _, a := range g.Agents {
		writer[a.OutputDir] = a.Name
	}
	var edges []Edge
	for _, a := range g.Agents {
		for _, in := range a.Inputs {
			if from, ok := writer[in]; ok {
				edges = append(edges, Edge{from, a.Name})
			}
		}
	}
	slices.SortFunc(edges, func(a, b Edge) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
	return slices.Compact(edges)
}

// loops returns the sets of agents that feed each other when the agents for
// which cut is true are taken out, each set in the order of the edges.
func loops(edges []Edge, cut func(string) bool) [][]string {
	next := map[string][]string{}
	for _, e := range edges {
		if !cut(e.From) && !cut(e.To) {
			next[e.From] = append(next[e.From], e.To)
		}
	}
	// Tarjan's algorithm, with a stack of its own: a chain may be long.
	type frame struct {
		node string
		edge int
	}
	index, low := map[string]int{}, map[string]int{}
	onStack := map[string]bool{}
	var stack []string
	var found [][]string
	starts := make([]string, 0, len(next))
	for n := range next {
		starts = append(starts, n)
	}
	slices.Sort(starts)
	push := func(n string) frame {
		index[n] = len(index) + 1
		low[n] = index[n]
		stack = append(stack, n)
		onStack[n] = true
		return frame{node: n}
	}
	for _, s := range starts {
		if index[s] != 0 {
			continue
		}
		work := []frame{push(s)}
		for len(work) > 0 {
			f := &work[len(work)-1]
			if f.edge < len(next[f.node]) {
				to := next[f.node][f.edge]
				f.edge++
				if index[to] == 0 {
					work = append(work, push(to))
				} else if onStack[to] {
					low[f.node] = min(low[f.node], index[to])
				}
				continue
			}
			n := f.node
			work = work[:len(work)-1]
			if len(work) > 0 {
				up := work[len(work)-1].node
				low[up] = min(low[up], low[n])
			}
			if low[n] != index[n] {
				continue
			}
			at := slices.Index(stack, n)
			set := slices.Clone(stack[at:])
			stack = stack[:at]
			for _, m := range set {
				onStack[m] = false
			}
			if len(set) > 1 || slices.Contains(next[n], n) {
				found = append(found, set)
			}
		}
	}
	return found
}
