package tools

import (
	"os"
	"slices"
	"strings"
)

// plainVariables are what every program gets: none of them is a secret.
var plainVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
	"SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
}

// shortestSecret is the length from which the value of a listed variable is
// taken out of results; shorter ones stand in every text.
const shortestSecret = 6

type secret struct{ name, value string }

type programEnv struct {
	vars    []string
	secrets []secret
}

// environment is that of a program: the plain variables and the listed ones.
func environment(listed []string) programEnv {
	env := programEnv{vars: []string{}} // not nil: nil would pass on everything
	for _, name := range plainVariables {
		if v, ok := os.LookupEnv(name); ok && !slices.Contains(listed, name) {
			env.vars = append(env.vars, name+"="+v)
		}
	}
	for _, name := range listed {
		v, ok := os.LookupEnv(name)
		if !ok {
			continue
		}
		env.vars = append(env.vars, name+"="+v)
		if len(v) >= shortestSecret && !slices.Contains(plainVariables, name) {
			env.secrets = append(env.secrets, secret{name, v})
		}
	}
	// The longest first: one value may be the beginning of another.
	slices.SortFunc(env.secrets, func(a, b secret) int { return len(b.value) - len(a.value) })
	return env
}

// redact puts the names of variables where their values stand. A text that was
// cut at its beginning or end loses what may be a part of a value there.
func redact(secrets []secret, text string, cutBefore, cutAfter bool) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s.value, "["+s.name+"]")
	}
	for _, s := range secrets {
		for k := min(len(s.value)-1, len(text)); cutAfter && k > 0; k-- {
			if strings.HasSuffix(text, s.value[:k]) {
				text = text[:len(text)-k]
				break
			}
		}
		for k := min(len(s.value)-1, len(text)); cutBefore && k > 0; k-- {
			if strings.HasPrefix(text, s.value[len(s.value)-k:]) {
				text = text[k:]
				break
			}
		}
	}
	return text
}

// longest is the length of the longest value.
func longest(secrets []secret) int {
	if len(secrets) == 0 {
		return 0
	}
	return len(secrets[0].value)
}

// plainURL is an address without what may be secret in it.
func plainURL(u string) string {
	u, _, _ = strings.Cut(u, "?")
	if i := strings.Index(u, "://"); i >= 0 {
		if at := strings.LastIndex(u, "@"); at > i {
			u = u[:i+3] + u[at+1:]
		}
	}
	return u
}
