package importer

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"agentgraph/agents"
)

// agent is one agent of the configuration.
type agent struct {
	name     string
	at       node
	settings settings
	inputs   []string // as agent.yaml has them
	outputs  []string // AgentGraph's, absolute
}

// dir is the agent's folder, relative to the graph.
func (a *agent) dir() string { return agents.AgentsDir + "/" + a.name }

// from is a path of the graph as agent.yaml writes it.
func (a *agent) from(rel string) string {
	out, err := filepath.Rel(filepath.FromSlash(a.dir()), filepath.FromSlash(rel))
	if err != nil {
		return rel
	}
	return filepath.ToSlash(out)
}

// newAgent gives an agent its folder and finds out where AgentGraph's writes.
func (im *importing) newAgent(n node) {
	if len(n.keys()) == 0 {
		im.wrong(n, "an agent with keys")
		return
	}
	a := &agent{name: folderName(n.name()), at: n}
	if slices.ContainsFunc(im.agents, func(b *agent) bool { return b.name == a.name }) {
		im.lost(n, "there is an agent of that name already")
		return
	}
	if a.name != n.name() {
		im.changed(n, "its folder is %s: the name cannot be one", a.dir())
	}
	for _, k := range n.keys() {
		if k.name() == "output" {
			list, ok := k.texts()
			if !ok {
				im.wrong(k, "a folder or a list of folders")
			}
			for _, p := range list {
				a.outputs = append(a.outputs, im.abs(p))
			}
		}
	}
	im.agents = append(im.agents, a)
}

// folderName is a name as that of a folder.
func folderName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '-'
		}
		return r
	}, name)
	plain = strings.TrimLeft(plain, ".-")
	if plain == "" {
		plain = "agent"
	}
	if len(plain) > 200 {
		plain = strings.ToValidUTF8(plain[:200], "")
	}
	return plain
}

// agent carries the keys of one agent.
func (im *importing) agent(a *agent) {
	sampling := &settings{}
	for _, k := range a.at.keys() {
		if k.isNull() {
			continue
		}
		switch k.name() {
		case "inputs":
			im.inputs(a, k)
		case "output":
			im.output(a, k)
		case "system":
			im.system(a, k)
		case "stream_output":
			im.folder(a, k, "stream")
		case "tool_output":
			im.folder(a, k, "tool-results")
		case "model":
			im.agentModel(a, k)
		case "provider":
			im.agentProvider(a, k)
		case "prompt":
			if t, ok := k.text(); ok && t != "" {
				a.settings.set("prompt", t)
			} else if !ok {
				im.wrong(k, "text")
			}
		case "sampling":
			im.sampling(k, sampling)
		case "enable_thinking":
			if b, ok := k.boolean(); ok {
				a.settings.set("thinking", b)
			} else {
				im.wrong(k, "true or false")
			}
		case "history_limit":
			im.history(a, k)
		case "inference_retries":
			if n, ok := k.integer(); ok && n >= 0 && n <= 1000 {
				a.settings.set("retries", n)
			} else {
				im.wrong(k, "a number from 0 to 1000")
			}
		case "inference_retry_delay_ms":
			if n, ok := k.integer(); !ok || n != 500 {
				im.lost(k, "the pause before the second attempt is half a second, and doubles")
			}
		case "tools":
			im.tools(a, k)
		case "system_prompt_mode":
			im.systemPromptMode(k)
		default:
			im.agentKey(k)
		}
	}
	if !sampling.empty() {
		a.settings.set("sampling", sampling)
	}
	if !slices.ContainsFunc(a.at.keys(), func(k node) bool { return k.name() == "history_limit" }) {
		im.changed(a.at, "without history_limit AgentGraph shows an agent its whole past, and here it is shown none; set history:")
	}
	if len(a.inputs) == 0 {
		a.inputs = []string{"input"}
	}
	if !slices.Equal(a.inputs, []string{"input"}) {
		a.settings.set("inputs", a.inputs)
	}
}

// asksNothing reports a key that is written and switched off.
func asksNothing(k node) bool {
	if b, ok := k.boolean(); ok {
		return !b
	}
	list, ok := k.texts()
	t, isText := k.text()
	return ok && len(list) == 0 || isText && (t == "0" || t == "")
}

// agentKey is a key that has no counterpart.
func (im *importing) agentKey(k node) {
	why, known := map[string]string{
		"compression":              "earlier turns stand in the prompt whole (history:), or not at all",
		"context_checkpoint_limit": "earlier turns are not summed up",
		"compression_db_path":      "earlier turns are not summed up",
		"excluded_from_summary":    "earlier turns are not summed up",
		"prepend_file_metadata":    "the user message is the file's text and nothing else; the record has path and hash",
		"heavy_tools":              "tools run beside the model",
		"consume_tool_calls":       "without a schema a turn's tool calls stand after its answer; with one they never do",
		"enable_oom_recovery":      "a prompt that is too long is refused by name",
		"realtime_audio":           "files are text here",
		"allowed_extensions":       "every file of an input folder that is text is an input",
		"tools_enabled":            "",
	}[k.name()]
	switch {
	case !known:
		im.unknown(k)
	case k.name() == "tools_enabled" && !asksNothing(k), k.name() != "tools_enabled" && asksNothing(k):
		// It asks for what holds here anyway.
	case k.name() == "tools_enabled":
		// The list of tools is left out.
	default:
		im.lost(k, "%s", why)
	}
}

// inputs maps the folders an agent reads.
func (im *importing) inputs(a *agent, k node) {
	list, ok := k.texts()
	if !ok {
		im.wrong(k, "a list of folders")
		return
	}
	add := func(in string) {
		if !slices.Contains(a.inputs, in) {
			a.inputs = append(a.inputs, in)
		}
	}
	for _, p := range list {
		abs := im.abs(p)
		written := false
		for _, other := range im.agents {
			if slices.Contains(other.outputs, abs) {
				add(a.from(other.dir() + "/output"))
				written = true
			}
		}
		if written {
			continue
		}
		rel, inside := im.inGraph(abs)
		own := strings.HasPrefix(rel, a.dir()+"/") && rel != a.dir()+"/input"
		if !inside || rel == "." || rel == agents.AgentsDir || rel == a.dir() || strings.HasPrefix(rel, agents.StateDir) ||
			own && slices.Contains([]string{"system", "turns", "output"}, path.Base(rel)) {
			add("input")
			im.changed(k, "%s cannot be an input folder of the graph; drop its files into %s/input", p, a.dir())
			continue
		}
		add(a.from(rel))
		n := countInputs(abs)
		if _, there := im.inTarget(abs); n > 0 && there {
			im.changed(k, "files in %s: %d; each gets a turn when the graph runs, and AgentGraph passes over files that are there at its start", p, n)
		} else if n > 0 {
			im.changed(k, "files in %s: %d; they are not copied, and drop those that are to have a turn into the new folder", p, n)
		}
	}
}

// countInputs counts the files that would start turns.
func countInputs(dir string) int {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		if e.Type().IsRegular() && agents.IgnoredName(e.Name()) == "" {
			n++
		}
	}
	return n
}

func (im *importing) output(a *agent, k node) {
	if len(a.outputs) == 0 {
		return // found already, or none
	}
	if rel, ok := im.inGraph(a.outputs[0]); !ok || rel != a.dir()+"/output" {
		list, _ := k.texts()
		im.changed(k, "answers go to %s/output, not to %s", a.dir(), list[0])
	}
	if len(a.outputs) > 1 {
		im.lost(k, "answers go to one folder; what the others hold is not read as past answers (history: reads this agent's turns)")
	}
}

// folder carries stream_output and tool_output.
func (im *importing) folder(a *agent, k node, instead string) {
	t, ok := k.text()
	if !ok || t == "" {
		im.wrong(k, "a folder")
		return
	}
	abs := im.abs(t)
	rel, inside := im.inGraph(abs)
	special := rel == "." || rel == a.dir() || rel == agents.AgentsDir || strings.HasPrefix(rel, agents.StateDir) ||
		slices.Contains([]string{a.dir() + "/output", a.dir() + "/system", a.dir() + "/turns", a.dir() + "/input"}, rel)
	if !inside || special || slices.Contains(a.outputs, abs) {
		a.settings.set(k.name(), instead)
		im.changed(k, "it goes to %s/%s: %s is not for that here", a.dir(), instead, t)
		return
	}
	a.settings.set(k.name(), a.from(rel))
}

func (im *importing) agentModel(a *agent, k node) {
	t, ok := k.text()
	own := slices.ContainsFunc(a.at.keys(), func(p node) bool { return p.name() == "provider" && !p.isNull() })
	switch {
	case !ok:
		im.wrong(k, "the name of a model")
	case own:
		// The provider answers.
	case !im.known[t]:
		im.lost(k, "no model %q was carried over", t)
	default:
		a.settings.set("model", t)
	}
}

// agentProvider makes an agent's own provider a model.
func (im *importing) agentProvider(a *agent, k node) {
	name := a.name
	for im.known[name] {
		name += "-provider"
	}
	out := &settings{}
	if !im.provider(k, name, out) {
		return
	}
	im.models.set(name, out)
	im.known[name] = true
	a.settings.set("model", name)
}

func (im *importing) sampling(s node, out *settings) {
	for _, k := range s.keys() {
		if k.isNull() {
			continue
		}
		within := func(low, high float64) (float64, bool) {
			f, ok := k.number()
			if !ok || f < low || f > high {
				im.wrong(k, fmt.Sprintf("a number from %v to %v", low, high))
				return 0, false
			}
			return f, true
		}
		switch k.name() {
		case "temperature":
			if f, ok := within(0, 100); ok {
				out.set("temperature", f)
			}
		case "top_p", "min_p":
			if f, ok := within(0, 1); ok {
				out.set(k.name(), f)
			}
		case "top_k", "max_len":
			n, ok := k.integer()
			switch {
			case !ok || n < 0:
				im.wrong(k, "a whole number")
			case n == 0:
			case k.name() == "top_k":
				out.set("top_k", n)
			default:
				out.set("max_tokens", n)
			}
		case "repetition_penalty", "frequency_penalty", "presence_penalty":
			im.lost(k, "there are no penalties here; a schema with bounds keeps a small model from repeating itself")
		default:
			im.unknown(k)
		}
	}
}

// history counts files in AgentGraph and turns here.
func (im *importing) history(a *agent, k node) {
	n, ok := k.integer()
	switch {
	case !ok || n < 0:
		im.wrong(k, "a number of files")
	case n == 0:
		im.changed(k, "0 shows an agent its whole past in AgentGraph, and none here; set history:")
	default:
		turns := min(n/2, 10000)
		a.settings.set("history", turns)
		im.changed(k, "history: %d, in turns of a question and an answer, stands for %d files", turns, n)
	}
}

func (im *importing) tools(a *agent, k node) {
	list, ok := k.texts()
	if !ok {
		im.wrong(k, "a list of programs")
		return
	}
	off := slices.ContainsFunc(a.at.keys(), func(p node) bool {
		b, ok := p.boolean()
		return p.name() == "tools_enabled" && ok && !b
	})
	if off || len(list) == 0 {
		return
	}
	tools := []string{}
	for _, t := range list {
		if strings.ContainsAny(t, `/\`) {
			t = filepath.ToSlash(im.abs(t))
		} else if _, err := exec.LookPath(t); err != nil {
			im.changed(k, "the tool %s is not on PATH; a turn that lists it fails until it is", t)
		}
		tools = append(tools, t)
	}
	a.settings.set("tools", tools)
	im.changed(k, "tools get a short list of environment variables; name others with tools: [{tool: NAME, env: [VARIABLE]}]")
}
