package agents

import (
	"fmt"
	"path/filepath"
)

// sampledParallel is how many answers a local model generates at once for an
// agent with several answers per input, when nothing else is said. Memory
// grows with it.
const sampledParallel = 8

// samples warns about answers that would all be equal, and gives local models
// room for several at once.
func (l *loader) samples() {
	room := map[string]int{}
	for _, a := range l.g.Agents {
		n := a.Settings.Samples
		if n <= 1 {
			continue
		}
		if a.Settings.Sampling.Temperature == 0 {
			f := Finding{File: rel(l.g.Root, filepath.Join(a.Dir, AgentFile)), Severity: SeverityWarning, Agent: a.Name,
				Msg:  fmt.Sprintf("samples: %d with temperature 0: all answers to an input would be the same", n),
				Hint: "set sampling: {temperature: 0.8}, or samples: 1"}
			if p, ok := a.places["samples"]; ok {
				f.Line, f.Col = p.line, p.col
			} else if p, ok := l.g.places["defaults.samples"]; ok {
				f.File, f.Line, f.Col = GraphFile, p.line, p.col
			}
			l.add(f)
		}
		if spec := a.Settings.ModelSpec; spec.GGUF != "" && spec.Parallel == 0 {
			room[spec.Name] = max(room[spec.Name], min(n, sampledParallel))
		}
	}
	if len(room) == 0 {
		return
	}
	l.g.room = room
	for name, spec := range l.g.Models {
		l.g.Models[name] = l.g.roomy(spec)
	}
	for _, a := range l.g.Agents {
		a.Settings.ModelSpec = l.g.roomy(a.Settings.ModelSpec)
		for i, spec := range a.Settings.Fallback {
			a.Settings.Fallback[i] = l.g.roomy(spec)
		}
	}
}

// roomy is a model with room for the answers that its agents want at once.
func (g *Graph) roomy(spec ModelSpec) ModelSpec {
	if n := g.room[spec.Name]; n > 0 && spec.Parallel == 0 && spec.GGUF != "" {
		spec.Parallel = n
	}
	return spec
}
