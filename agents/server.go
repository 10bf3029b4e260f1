package agents

import (
	"net/url"
	"regexp"
	"strings"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// serverProblem says what is wrong with the keys of a server. What may hold a
// secret is never quoted.
func (s *ModelSpec) serverProblem() (msg, hint string) {
	if s.Server == "" {
		for _, k := range []struct {
			key     string
			written bool
		}{{"url", s.URL != ""}, {"model", s.Model != "" && s.Plugin == nil}, {"key", s.Key != nil}, {"tls_ca", s.TLSCA != ""}, {"proxy", s.Proxy != ""}, {"backend", s.Backend != ""}} {
			if k.written {
				return "has a " + k.key + " and no server", "write server: KIND, or remove it"
			}
		}
		return "", ""
	}
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		return "names a server and no url", "write url: http://HOST:PORT/v1"
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "has a url that is no address of a server", "write url: http://HOST:PORT/v1"
	case s.Model == "" && s.Server != "llamacpp":
		return "names a server and none of its models", "write model: with the server's name for it"
	}
	if k := s.Key; k != nil {
		env, file := or(k.Env, ""), or(k.File, "")
		switch {
		case (env == "") == (file == ""):
			return "has a key that does not say where it comes from", "write key: {env: NAME} or key: {file: PATH}"
		case env != "" && !envName.MatchString(env):
			return "has a key: env that is no name of an environment variable", "write the variable's name; the key itself does not belong in settings"
		case u.User != nil:
			return "has a key and user information in its url", "remove one of them"
		}
	}
	return "", ""
}

// resolveServer makes the paths of a server's files absolute.
func (s *ModelSpec) resolveServer(base string) {
	if s.TLSCA != "" {
		s.TLSCA = absFrom(base, s.TLSCA)
	}
	if k := s.Key; k != nil && or(k.File, "") != "" {
		file := absFrom(base, *k.File)
		k.File = &file
	}
	s.URL = strings.TrimSpace(s.URL)
}
