package agents

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentgraph/record"
)

// DefaultStartupTimeout bounds the start of a server that server_command
// starts.
const DefaultStartupTimeout = 5 * time.Minute

// problem says what is wrong with an entry of models: as a whole.
func (s *ModelSpec) problem() (msg, hint string) {
	var kinds []string
	for _, k := range []struct {
		key     string
		written bool
	}{{"gguf", s.GGUF != ""}, {"script", s.Script != ""}, {"server", s.Server != ""}, {"plugin", s.Plugin != nil}} {
		if k.written {
			kinds = append(kinds, k.key)
		}
	}
	switch {
	case len(kinds) == 0:
		return "names no gguf, no script, no server and no plugin", "write gguf: FILE, script: FILE, server: KIND or plugin: NAME"
	case len(kinds) > 1:
		return "names " + strings.Join(kinds, " and "), "a model is one of them; write several entries for several models"
	case s.ServerCommand != nil && s.Server == "":
		return "has a server_command and no server", "write server: KIND and url: for the server it starts, or remove it"
	case s.ServerCommand != nil && (len(s.ServerCommand.Command) == 0 || s.ServerCommand.Command[0] == ""):
		return "has a server_command without a program", "write it as a list: [PROGRAM, ARGUMENT, …]"
	case s.ServerCommand != nil && s.URL == "":
		return "has a server_command and no url", "write url: http://127.0.0.1:PORT/v1 with the port that the command listens on"
	case s.StartupTimeout != nil && s.ServerCommand == nil:
		return "has a startup_timeout and no server_command", "remove it"
	case s.Constraints != nil && s.Server == "" && s.Plugin == nil:
		return "declares constraints, which only a server or plug-in does", "remove the key"
	}
	if msg, hint := s.serverProblem(); msg != "" {
		return msg, hint
	}
	if p := s.Plugin; p != nil {
		switch named, command := or(p.Name, "") != "", len(p.Command) > 0 && p.Command[0] != ""; {
		case named && command:
			return "names a plug-in and a command", "write one of them"
		case !named && !command:
			return "has a plug-in without a name", "write plugin: NAME for the program ag-provider-NAME, or plugin: {command: [PROGRAM]}"
		}
	}
	return "", ""
}

// resolve makes the paths of programs and folders absolute.
func (s *ModelSpec) resolve(base string) {
	program := func(words []string) {
		if len(words) > 0 && strings.ContainsAny(words[0], `/\`) {
			words[0] = absFrom(base, words[0])
		}
	}
	s.resolveServer(base)
	if p := s.Plugin; p != nil {
		if n := or(p.Name, ""); strings.ContainsAny(n, `/\`) {
			n = absFrom(base, n)
			p.Name = &n
		}
		program(p.Command)
	}
	if c := s.ServerCommand; c != nil {
		program(c.Command)
		dir := absFrom(base, or(c.Dir, "."))
		c.Dir = &dir
	}
}

// Startup is how long the server may take to start.
func (s *ModelSpec) Startup() time.Duration {
	return time.Duration(or(s.StartupTimeout, Duration(DefaultStartupTimeout)))
}

// ModelNames are the agent's model and those that stand in for it, in the
// order in which they are tried.
func (s *Settings) ModelNames() []string {
	names := []string{s.ModelSpec.Name}
	for _, f := range s.Fallback {
		names = append(names, f.Name)
	}
	return names
}

// named are models of which no more than the name is known yet.
func named(names []string) []ModelSpec {
	var specs []ModelSpec
	for _, n := range names {
		specs = append(specs, ModelSpec{Name: n})
	}
	return specs
}

// fallback resolves the models that stand in for the agent's own. With --model
// there are none: that model was asked for.
func (l *loader) fallback(a *Agent, stop func(...*Error)) {
	s := &a.Settings
	written := s.Fallback
	if s.Fallback = nil; l.opt.Model != "" {
		return
	}
	_, own := a.places["fallback"]
	if !own {
		// What is wrong with the defaults is among the findings already.
		var errs []*Error
		s.Fallback, errs = l.stands(written, l.g.Root, s.ModelSpec.Name, func(_ int, f Finding) *Error {
			return &Error{Code: record.SettingsInvalid, Finding: f}
		})
		stop(errs...)
		return
	}
	var errs []*Error
	s.Fallback, errs = l.stands(written, a.Dir, s.ModelSpec.Name, func(i int, f Finding) *Error {
		return l.at(a, fmt.Sprintf("fallback[%d]", i), f.Msg, f.Hint)
	})
	stop(errs...)
}

// defaultFallback resolves the fallback: of the defaults.
func (l *loader) defaultFallback() {
	d := &l.g.Defaults
	var first string
	if spec, err := l.g.ModelSpec(d.Model); err == nil {
		first = spec.Name
	}
	d.Fallback, _ = l.stands(d.Fallback, l.g.Root, first, func(i int, f Finding) *Error {
		at := l.g.places[fmt.Sprintf("defaults.fallback[%d]", i)]
		f.File, f.Line, f.Col, f.Severity = GraphFile, at.line, at.col, SeverityError
		return l.add(f)
	})
}

// stands resolves the models that stand in for first; report makes an error
// of what is wrong with one of them.
func (l *loader) stands(written []ModelSpec, base, first string, report func(i int, f Finding) *Error) (specs []ModelSpec, errs []*Error) {
	seen := []string{first}
	for i, f := range written {
		if bad := l.badModels[f.Name]; bad != nil {
			errs = append(errs, bad)
			continue
		}
		spec, err := l.g.modelSpec(f.Name, base)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				e = &Error{Finding: Finding{Msg: err.Error()}}
			}
			errs = append(errs, report(i, e.Finding))
			continue
		}
		if slices.Contains(seen, spec.Name) {
			errs = append(errs, report(i, Finding{Msg: fmt.Sprintf("fallback names the model %q, which is tried before it", f.Name), Hint: "list each model once"}))
			continue
		}
		seen = append(seen, spec.Name)
		specs = append(specs, spec)
	}
	return specs, errs
}
