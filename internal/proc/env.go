package proc

import (
	"os"
	"slices"
	"strings"
)

// plain are the variables that every program gets: none of them is a secret.
var plain = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
	"SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
}

// machine are those that say what a model's engine may use of the machine.
var machine = []string{
	"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONPATH", "OMP_NUM_THREADS",
	"CUDA_VISIBLE_DEVICES", "CUDA_HOME", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HF_HOME", "HF_HUB_OFFLINE",
}

// shortestSecret is the length from which the value of a listed variable is
// taken out of texts; shorter ones stand in every text.
const shortestSecret = 6

type secret struct{ name, value string }

// Env is the environment of a program.
type Env struct {
	// Vars is never nil: nil would pass on everything.
	Vars    []string
	secrets []secret
}

// Environment is that of a program: the plain variables, what it needs to
// know of the machine, those whose name begins with prefix (where that is not
// empty) and the listed ones.
func Environment(listed []string, prefix string) Env {
	env := Env{Vars: []string{}}
	add := func(name, value string) {
		env.Vars = append(env.Vars, name+"="+value)
	}
	given := slices.Concat(plain, machine)
	for _, name := range given {
		if v, ok := os.LookupEnv(name); ok && !slices.Contains(listed, name) {
			add(name, v)
		}
	}
	if prefix != "" {
		for _, kv := range os.Environ() {
			name, v, _ := strings.Cut(kv, "=")
			if !strings.HasPrefix(name, prefix) || slices.Contains(listed, name) {
				continue
			}
			add(name, v)
			if soundsSecret(name) {
				env.keepOut(name, v)
			}
		}
	}
	for _, name := range listed {
		v, ok := os.LookupEnv(name)
		if !ok {
			continue
		}
		add(name, v)
		if !slices.Contains(given, name) {
			env.keepOut(name, v)
		}
	}
	// The longest first: one value may be the beginning of another.
	slices.SortFunc(env.secrets, func(a, b secret) int { return len(b.value) - len(a.value) })
	return env
}

func (e *Env) keepOut(name, value string) {
	if len(value) >= shortestSecret {
		e.secrets = append(e.secrets, secret{name, value})
	}
}

func soundsSecret(name string) bool {
	for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// Redact puts the names of listed variables where their values stand.
func (e Env) Redact(text string) string {
	for _, s := range e.secrets {
		text = strings.ReplaceAll(text, s.value, "["+s.name+"]")
	}
	return text
}
