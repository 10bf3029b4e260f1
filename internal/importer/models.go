package importer

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"agentgraph/internal/loopback"
)

// mistralrsURL is where a server of mistral.rs is expected that the user is
// told to start.
const mistralrsURL = "http://127.0.0.1:1234/v1"

// model makes an entry of models: of one of AgentGraph's.
func (im *importing) model(m node) {
	if len(m.keys()) == 0 {
		im.wrong(m, "a model with keys")
		return
	}
	name := m.name()
	var id, path, gguf string
	var provider *node
	out := &settings{}
	var more []func()
	for _, k := range m.keys() {
		text, isText := k.text()
		if k.isNull() {
			continue
		}
		switch k.name() {
		case "id":
			id = text
		case "path":
			path = text
		case "gguf":
			gguf = text
		case "provider":
			p := k
			provider = &p
		case "max_seq_len":
			if n, ok := k.integer(); ok && n > 0 {
				more = append(more, func() {
					if !out.has("context") { // the provider's own wins
						out.set("context", n)
					}
				})
			} else {
				im.wrong(k, "a number of tokens")
			}
		case "max_num_seqs":
			if n, ok := k.integer(); ok && n > 0 && n <= 1024 {
				more = append(more, func() { out.set("parallel", n) })
			} else {
				im.wrong(k, "a number from 1 to 1024")
			}
		case "builder":
			if text != "gguf" && text != "text" {
				im.lost(k, "files are text here; images and sound are not read")
			}
		case "isq":
			im.lost(k, "a GGUF file is quantised already")
		case "dtype", "loader_type", "calibration_enabled":
			im.lost(k, "it is a matter of the program that serves the model")
		case "chat_template":
			im.lost(k, "a GGUF file brings its own template, and a server is told its own")
		case "system_prompt_mode":
			im.systemPromptMode(k)
		default:
			im.unknown(k)
		}
		if !isText && (k.name() == "id" || k.name() == "path" || k.name() == "gguf") {
			im.wrong(k, "text")
		}
	}
	switch {
	case provider != nil:
		if !im.provider(*provider, name, out) {
			return
		}
	case gguf != "" || strings.HasSuffix(strings.ToLower(path), ".gguf"):
		if gguf == "" {
			gguf = path
		}
		out.set("gguf", im.fromTarget(gguf))
		if _, err := os.Stat(im.abs(gguf)); err != nil {
			im.changed(m, "the file %s is not there", gguf)
		}
	default:
		if path == "" {
			path = id
		}
		if path == "" {
			im.lost(m, "it names no id, no path and no provider")
			return
		}
		out.set("server", "mistralrs")
		out.set("url", mistralrsURL)
		out.set("model", path)
		im.changed(m, "AgentGraph loads %s itself; here a server of mistral.rs is expected at %s. Start one, let server_command: start it, or put gguf: FILE in its place", path, mistralrsURL)
	}
	for _, set := range more {
		set()
	}
	im.models.set(name, out)
	im.known[name] = true
}

func (im *importing) systemPromptMode(k node) {
	if text, _ := k.text(); strings.ToLower(text) != "merged" {
		im.lost(k, "the files of system/ always make one system message, which comes first (merged)")
	}
}

// provider makes a server or a plug-in of a provider; name is for the variable
// of its key.
func (im *importing) provider(p node, name string, out *settings) bool {
	values := map[string]node{}
	for _, k := range p.keys() {
		values[k.name()] = k
	}
	take := func(key string) (node, bool) {
		k, ok := values[key]
		delete(values, key)
		return k, ok && !k.isNull()
	}
	text := func(key, otherwise string) string {
		if k, ok := take(key); ok {
			if t, ok := k.text(); ok {
				return t
			}
			im.wrong(k, "text")
		}
		return otherwise
	}
	context := func() {
		if k, ok := take("max_seq_len"); ok {
			if n, ok := k.integer(); ok && n > 0 {
				out.set("context", n)
			} else {
				im.wrong(k, "a number of tokens")
			}
		}
	}
	switch kind := text("type", ""); kind {
	case "plugin":
		plugin := text("name", "")
		if plugin == "" {
			im.lost(p, "the plug-in has no name")
			return false
		}
		out.set("plugin", plugin)
		context()
	case "openai":
		base, _ := take("api_base")
		im.openai(p, base, name, text("model", "default"), out)
		if k, ok := take("api_key"); ok {
			im.key(k, name, out)
		}
		if k, ok := take("server_command"); ok {
			im.command(k, base, out)
		}
		if k, ok := take("startup_timeout_secs"); ok {
			n, isInt := k.integer()
			switch {
			case !isInt || n < 1 || n > 86400:
				im.wrong(k, "a number of seconds from 1 to 86400")
			case out.has("server_command"):
				out.set("startup_timeout", fmt.Sprintf("%ds", n))
			}
		}
		context()
	default:
		im.lost(p, "there is no provider of type %q, only openai and plugin", kind)
		return false
	}
	for _, k := range p.keys() {
		if left, ok := values[k.name()]; ok {
			im.unknown(left)
		}
	}
	return true
}

func (s *settings) has(key string) bool {
	for _, k := range s.keys {
		if k == key {
			return true
		}
	}
	return false
}

// openai writes the address and kind of a server.
func (im *importing) openai(p, base node, name, model string, out *settings) {
	address := "http://127.0.0.1:8338"
	if base.value != nil {
		if t, ok := base.text(); ok {
			address = t
		} else {
			im.wrong(base, "an address")
		}
	}
	command := ""
	for _, k := range p.keys() {
		if k.name() == "server_command" {
			command, _ = k.text()
		}
	}
	kind := serverKind(address, command)
	out.set("server", kind)
	address = strings.TrimRight(address, "/")
	if kind == "ollama" {
		address = strings.TrimSuffix(address, "/v1")
	} else if !strings.HasSuffix(address, "/v1") {
		address += "/v1"
	}
	out.set("url", address)
	out.set("model", model)
	at := p
	if base.value != nil {
		at = base
	}
	if kind == "generic" {
		im.changed(at, "which server this is was not to be seen; write server: vllm, sglang, mistralrs, llamacpp or ollama where it is one, so that schemas are held as it does (agentgraph models shows it)")
	}
}

// serverKind guesses from an address and a command which server it is.
func serverKind(address, command string) string {
	for _, w := range []struct{ word, kind string }{
		{"vllm", "vllm"}, {"sglang", "sglang"}, {"mistralrs", "mistralrs"}, {"mistral.rs", "mistralrs"},
		{"llama-server", "llamacpp"}, {"llama.cpp", "llamacpp"}, {"ollama", "ollama"},
	} {
		if strings.Contains(command, w.word) {
			return w.kind
		}
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
	case u.Hostname() == "api.openai.com":
		return "openai"
	case u.Port() == "11434":
		return "ollama"
	}
	return "generic"
}

// key never copies a key: it goes into the environment.
func (im *importing) key(k node, name string, out *settings) {
	t, ok := k.text()
	if !ok {
		im.wrong(k, "text")
		return
	}
	if t == "" {
		return
	}
	variable := strings.ToUpper(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)) + "_KEY"
	if variable[0] >= '0' && variable[0] <= '9' {
		variable = "_" + variable
	}
	env := &settings{}
	env.set("env", variable)
	out.set("key", env)
	im.changed(k, "keys are not copied; put it into the environment variable %s", variable)
}

// command takes over what starts the server, where it starts on this machine.
func (im *importing) command(k, base node, out *settings) {
	t, ok := k.text()
	if !ok || strings.TrimSpace(t) == "" {
		im.wrong(k, "a command")
		return
	}
	if base.value != nil {
		address, _ := base.text()
		u, err := url.Parse(address)
		host := ""
		if err == nil {
			host = u.Hostname()
		}
		if !loopback.Host(host) {
			im.lost(k, "it starts a server on this machine, and %s is not known to be it", address)
			return
		}
	}
	// exec leaves no shell between, so that the server gets the signals.
	if !strings.ContainsAny(t, "|&;<>()`\n") && !strings.HasPrefix(strings.TrimSpace(t), "exec ") && !strings.Contains(strings.Fields(t)[0], "=") {
		t = "exec " + t
	}
	out.set("server_command", []string{"sh", "-c", t})
	im.changed(k, "the server gets a short list of environment variables; name others with server_command: {command: …, env: [NAME]}")
}

// fromTarget is a path of the configuration as the graph writes it.
func (im *importing) fromTarget(path string) string {
	abs := im.abs(path)
	if rel, ok := im.inTarget(abs); ok {
		return rel
	}
	return filepath.ToSlash(abs)
}

func (im *importing) abs(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(im.base, path)
}

// inGraph is where a folder of the configuration is in the graph: where it
// lies, or in the same place as beside the configuration. ok is false for one
// elsewhere.
func (im *importing) inGraph(abs string) (rel string, ok bool) {
	if rel, ok := im.inTarget(abs); ok {
		return rel, true
	}
	return under(im.base, abs)
}

// inTarget is the path relative to the graph; ok is false for one outside.
func (im *importing) inTarget(abs string) (rel string, ok bool) { return under(im.plan.Dir, abs) }

func under(dir, abs string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, abs)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}
