package importer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"agentgraph/internal/plainjson"
)

// settings are keys with values in the order they are written.
type settings struct {
	keys   []string
	values []any // string, int, float64, bool, []string, *settings
}

func (s *settings) set(key string, value any) {
	s.keys = append(s.keys, key)
	s.values = append(s.values, value)
}

func (s *settings) empty() bool { return len(s.keys) == 0 }

// yaml writes the settings with this much space before each line.
func (s *settings) yaml(indent string) string {
	var b strings.Builder
	for i, key := range s.keys {
		b.WriteString(indent + quoted(key) + ":")
		switch v := s.values[i].(type) {
		case *settings:
			if v.empty() {
				b.WriteString(" {}\n")
				continue
			}
			b.WriteString("\n" + v.yaml(indent+"  "))
		default:
			b.WriteString(" " + scalar(v) + "\n")
		}
	}
	return b.String()
}

func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return quoted(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []string:
		words := make([]string, len(v))
		for i, w := range v {
			words[i] = quoted(w)
		}
		return "[" + strings.Join(words, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// plainWord is text that YAML reads as such without quotes.
var plainWord = regexp.MustCompile(`^[A-Za-z./][A-Za-z0-9_./-]*$`)

// quoted is a text as YAML; JSON's strings are YAML's too.
func quoted(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n", ".inf", ".nan":
	default:
		if plainWord.MatchString(s) {
			return s
		}
	}
	return plainjson.Quote(s)
}
