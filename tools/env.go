package tools

import (
	"net/url"
	"os"
	"path/filepath"
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
	env.sort()
	return env
}

// sort puts the longest first: one value may be the beginning of another.
func (e *programEnv) sort() {
	slices.SortStableFunc(e.secrets, func(a, b secret) int { return len(b.value) - len(a.value) })
}

// give adds what comes with its values: variables, and of a server its headers
// and the address, which may hold a key as well.
func (e *programEnv) give(c Config) {
	for _, v := range c.Given {
		e.vars = slices.DeleteFunc(e.vars, func(kv string) bool { return strings.HasPrefix(kv, v.Name+"=") })
		e.vars = append(e.vars, v.Name+"="+v.Value)
		if !slices.Contains(plainVariables, v.Name) && !isPlace(v.Value) {
			e.keepOut(v.Name, v.Value)
		}
	}
	if c.MCP != nil {
		for _, h := range c.MCP.Given {
			e.keepOut(h.Name, h.Value)
			if _, credentials, ok := strings.Cut(h.Value, " "); ok { // Bearer …
				e.keepOut(h.Name, credentials)
			}
		}
		if u, err := url.Parse(c.MCP.URL); err == nil && c.MCP.Name != "" && c.MCP.URL != "" {
			e.keepOut("address", c.MCP.URL)
			e.keepOut("address", plainURL(c.MCP.URL))
			if len(u.RequestURI()) >= shortestAddress {
				e.keepOut("address", u.RequestURI())
			}
			for _, values := range u.Query() {
				for _, v := range values {
					e.keepOut("address", v)
				}
			}
		}
	}
	e.sort()
}

func (e *programEnv) keepOut(name, value string) {
	if len(value) >= shortestSecret {
		e.secrets = append(e.secrets, secret{name, value})
	}
}

// shortestAddress is the length from which the path of an address is kept out
// of texts: shorter ones hold no key, and stand in other texts as well.
const shortestAddress = 16

// isPlace reports that a value is the path of something that is there. It is
// no secret, and a tool's results would be of no use without it.
func isPlace(value string) bool {
	if !filepath.IsAbs(value) {
		return false
	}
	_, err := os.Stat(value)
	return err == nil
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
