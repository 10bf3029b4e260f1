package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"agentgraph/constraint"
	"agentgraph/model"
)

// maxFileBytes bounds a script file.
const maxFileBytes = 16 << 20

// FileError is a fault of a script file, with its place.
type FileError struct {
	File         string
	Line, Column int // from 1; 0 is not known
	Msg          string
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Msg)
}

// file is a script file as it is written; docs/script-model.md describes it.
type file struct {
	Name        string  `yaml:"name"`
	Constraints *kinds  `yaml:"constraints"`
	Mask        *bool   `yaml:"mask"`
	Context     int     `yaml:"context"`
	Parallel    int     `yaml:"parallel"`
	TokenBytes  int     `yaml:"token_bytes"`
	Tools       bool    `yaml:"tools"`
	Replies     []reply `yaml:"replies"`
	Default     *reply  `yaml:"default"`
}

type reply struct {
	Match      string   `yaml:"match"`
	Regex      *pattern `yaml:"regex"`
	ToolResult string   `yaml:"tool_result"`
	Request    string   `yaml:"request"`
	Times      int      `yaml:"times"`

	Text          string     `yaml:"text"`
	Reasoning     string     `yaml:"reasoning"`
	ToolCalls     []toolCall `yaml:"tool_calls"`
	Delay         duration   `yaml:"delay"`
	TokenDelay    duration   `yaml:"token_delay"`
	Error         *failure   `yaml:"error"`
	EndFirst      bool       `yaml:"end_first"`
	SpacesForever bool       `yaml:"spaces_forever"`
	Prefer        string     `yaml:"prefer"`
}

type toolCall struct {
	Name      string  `yaml:"name"`
	Arguments rawJSON `yaml:"arguments"`
}

type failure struct {
	Kind    errorKind `yaml:"kind"`
	Message string    `yaml:"message"`
	Retry   bool      `yaml:"retry"`
	// After is how many tokens come first; the call then may have been sent.
	After int `yaml:"after"`
}

// inOrder reports that the reply is taken in turn, not by what was asked.
func (r *reply) inOrder() bool {
	return r.Match == "" && r.Regex == nil && r.ToolResult == "" && r.Request == ""
}

type duration time.Duration

func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration; write it like 50ms or 2s", n.Value)
	}
	*d = duration(v)
	return nil
}

type pattern struct{ *regexp.Regexp }

func (p *pattern) UnmarshalYAML(n *yaml.Node) (err error) {
	if n.Kind != yaml.ScalarNode {
		return errors.New("regex takes one string")
	}
	p.Regexp, err = regexp.Compile(n.Value)
	return err
}

type errorKind model.ErrorKind

func (k *errorKind) UnmarshalYAML(n *yaml.Node) error {
	switch v := model.ErrorKind(n.Value); v {
	case model.Unavailable, model.ContextOverflow, model.Refused, model.Cancelled,
		model.TimedOut, model.Capability, model.Failed:
		*k = errorKind(v)
		return nil
	}
	return fmt.Errorf("%q is no kind of failure; take unavailable, context_overflow, refused, cancelled, timed_out, capability or failed", n.Value)
}

// kinds is the declared capability: all, none or a list.
type kinds []constraint.Kind

var allKinds = kinds{constraint.JSON, constraint.Regex, constraint.Lark, constraint.LLG}

func (k *kinds) UnmarshalYAML(n *yaml.Node) error {
	bad := errors.New("constraints takes all, none, or a list of json, regex, lark and llg")
	if n.Kind == yaml.ScalarNode {
		switch n.Value {
		case "all":
			*k = allKinds
		case "none":
			*k = kinds{}
		default:
			return bad
		}
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return bad
	}
	*k = kinds{}
	for _, item := range n.Content {
		found := false
		for _, kind := range allKinds {
			if item.Kind == yaml.ScalarNode && string(kind) == item.Value {
				*k, found = append(*k, kind), true
			}
		}
		if !found {
			return bad
		}
	}
	return nil
}

// rawJSON is a YAML value as JSON, members in their order and numbers as they
// are written.
type rawJSON json.RawMessage

func (r *rawJSON) UnmarshalYAML(n *yaml.Node) error {
	var b bytes.Buffer
	if err := writeJSON(&b, n, 0); err != nil {
		return err
	}
	*r = rawJSON(b.Bytes())
	return nil
}

func writeJSON(b *bytes.Buffer, n *yaml.Node, depth int) error {
	if depth > 64 {
		return fmt.Errorf("line %d: nested deeper than 64 levels", n.Line)
	}
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" || seen[k.Value] {
				return fmt.Errorf("line %d, column %d: a member's name is one text, and used once", k.Line, k.Column)
			}
			seen[k.Value] = true
			key, err := json.Marshal(k.Value)
			if err != nil {
				return err
			}
			b.Write(append(key, ':'))
			if err := writeJSON(b, n.Content[i+1], depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, item, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!str":
			s, err := json.Marshal(n.Value)
			b.Write(s)
			return err
		case "!!null":
			b.WriteString("null")
			return nil
		case "!!bool", "!!int", "!!float":
			if json.Valid([]byte(n.Value)) {
				b.WriteString(n.Value)
				return nil
			}
		}
	}
	return fmt.Errorf("line %d, column %d: %q has no JSON form; quote it", n.Line, n.Column, n.Value)
}

// parse reads a script file; all faults the reader finds are reported at once.
func parse(name string, src []byte) (*file, error) {
	if len(src) > maxFileBytes {
		return nil, &FileError{File: name, Msg: fmt.Sprintf("has more than %d bytes", maxFileBytes)}
	}
	if len(bytes.TrimSpace(src)) == 0 {
		return nil, &FileError{File: name, Msg: "is empty; it needs replies: or default:"}
	}
	var f file
	if err := yaml.Load(src, &f, yaml.WithKnownFields()); err != nil {
		return nil, loadError(name, err)
	}
	var doc yaml.Node
	if err := yaml.Load(src, &doc); err != nil {
		return nil, loadError(name, err)
	}
	root := &doc
	if root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
		root = root.Content[0]
	}
	var faults []error
	fault := func(n *yaml.Node, format string, args ...any) {
		faults = append(faults, &FileError{File: name, Line: n.Line, Column: n.Column, Msg: fmt.Sprintf(format, args...)})
	}
	if len(f.Replies) == 0 && f.Default == nil {
		fault(root, "no replies: and no default:, so the model could say nothing")
	}
	for _, n := range []struct {
		key      string
		v, bound int
	}{{"context", f.Context, 1 << 30}, {"parallel", f.Parallel, 1 << 20}, {"token_bytes", f.TokenBytes, 1 << 10}} {
		if n.v < 0 || n.v > n.bound {
			fault(child(root, n.key), "%s is %d; it takes 0 to %d", n.key, n.v, n.bound)
		}
	}
	list := child(root, "replies")
	for i := range f.Replies {
		at := list
		if i < len(list.Content) {
			at = list.Content[i]
		}
		checkReply(&f.Replies[i], at, fault)
	}
	if d := f.Default; d != nil {
		at := child(root, "default")
		if !d.inOrder() || d.Times != 0 {
			fault(at, "default is for everything else; it takes no match, regex, tool_result, request or times")
		}
		checkReply(d, at, fault)
	}
	return &f, errors.Join(faults...)
}

func checkReply(r *reply, at *yaml.Node, fault func(*yaml.Node, string, ...any)) {
	ways := 0
	for _, set := range []bool{r.Match != "", r.Regex != nil, r.ToolResult != "", r.Request != ""} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		fault(at, "a reply takes one of match, regex, tool_result and request")
	}
	if len(r.Request) != 0 && (len(r.Request) != 64 || strings.Trim(r.Request, "0123456789abcdef") != "") {
		fault(at, "request takes the sha256 of a conversation, 64 hexadecimal digits")
	}
	does := 0
	for _, set := range []bool{r.EndFirst, r.SpacesForever, r.Prefer != ""} {
		if set {
			does++
		}
	}
	if does > 1 || does == 1 && r.Text != "" {
		fault(at, "a reply takes one of text, end_first, spaces_forever and prefer")
	}
	if r.Times < 0 {
		fault(at, "times is negative")
	}
	if r.Error != nil && r.Error.Kind == "" {
		fault(at, "error needs a kind")
	}
	for _, c := range r.ToolCalls {
		if c.Name == "" {
			fault(at, "a tool call needs a name")
		}
		if len(c.Arguments) > 0 && c.Arguments[0] != '{' {
			fault(at, "the arguments of a tool call are a mapping")
		}
	}
}

// child is the value of key in a mapping, or the mapping itself.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return n
}

// loadError gives each fault that the YAML reader reports its place.
func loadError(name string, err error) error {
	var all *yaml.LoadErrors
	if errors.As(err, &all) {
		var faults []error
		for _, e := range all.Errors {
			faults = append(faults, placed(name, e))
		}
		return errors.Join(faults...)
	}
	var one *yaml.LoadError
	if errors.As(err, &one) {
		return placed(name, one)
	}
	return &FileError{File: name, Msg: err.Error()}
}

func placed(name string, e *yaml.LoadError) error {
	msg := strings.TrimPrefix(e.Message, "yaml: ")
	if field, ok := strings.CutSuffix(msg, " not found in type script.file"); ok {
		msg = "unknown key " + strings.TrimPrefix(field, "field ")
	} else if field, _, ok := strings.Cut(msg, " not found in type script."); ok {
		msg = "unknown key " + strings.TrimPrefix(field, "field ")
	}
	return &FileError{File: name, Line: int(e.Mark.Line), Column: int(e.Mark.Column), Msg: msg}
}
