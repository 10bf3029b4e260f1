package importer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxConfigBytes bounds a configuration; a real one has a few kilobytes.
const maxConfigBytes = 4 << 20

// node is a value of the configuration with the key that it stands under.
type node struct {
	key   string // dotted
	value *yaml.Node
	at    *yaml.Node // the key, or the value where there is none
}

func readConfig(path string) (node, error) {
	// A FIFO would be waited for, and no signal ends that.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return node{}, fmt.Errorf("%s is no regular file; name the configuration's config.yaml", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return node{}, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return node{}, err
	}
	if len(src) > maxConfigBytes {
		return node{}, fmt.Errorf("%s has more than %d bytes; no configuration has", path, maxConfigBytes)
	}
	loader, err := yaml.NewLoader(strings.NewReader(string(src)), yaml.WithUniqueKeys(false))
	if err != nil {
		return node{}, err
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil {
		var le *yaml.LoadError
		if errors.As(err, &le) {
			return node{}, fmt.Errorf("%s:%d:%d: not YAML: %s", path, le.Mark.Line, max(le.Mark.Column, 1), le.Message)
		}
		return node{}, fmt.Errorf("%s: not YAML: %w", path, err)
	}
	n := &doc
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind != yaml.MappingNode {
		return node{}, fmt.Errorf("%s: no configuration of AgentGraph: it has no keys", path)
	}
	return node{"", n, n}, nil
}

// real follows an alias.
func real(n *yaml.Node) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.AliasNode && i < 100; i++ {
		n = n.Alias
	}
	return n
}

// keys lists what stands under a mapping, in its order; nil for another value.
func (n node) keys() []node {
	v := real(n.value)
	if v == nil || v.Kind != yaml.MappingNode {
		return nil
	}
	var list []node
	for i := 0; i+1 < len(v.Content); i += 2 {
		k := v.Content[i]
		key := k.Value
		if n.key != "" {
			key = n.key + "." + k.Value
		}
		list = append(list, node{key, v.Content[i+1], k})
	}
	return list
}

// name is the last part of the key.
func (n node) name() string { return n.at.Value }

func (n node) isNull() bool {
	v := real(n.value)
	return v == nil || v.Kind == yaml.ScalarNode && v.ShortTag() == "!!null"
}

func (n node) isMapping() bool {
	v := real(n.value)
	return v != nil && v.Kind == yaml.MappingNode
}

// text is a scalar as it is written.
func (n node) text() (string, bool) {
	v := real(n.value)
	if v == nil || v.Kind != yaml.ScalarNode || v.ShortTag() == "!!null" {
		return "", false
	}
	return v.Value, true
}

// texts is a list of scalars, or one alone.
func (n node) texts() ([]string, bool) {
	if t, ok := n.text(); ok {
		return []string{t}, true
	}
	v := real(n.value)
	if v == nil || v.Kind != yaml.SequenceNode {
		return nil, n.isNull()
	}
	list := []string{}
	for _, item := range v.Content {
		t, ok := node{n.key, item, item}.text()
		if !ok {
			return nil, false
		}
		list = append(list, t)
	}
	return list, true
}

func (n node) integer() (int, bool) {
	t, ok := n.text()
	i, err := strconv.Atoi(strings.ReplaceAll(t, "_", ""))
	return i, ok && err == nil
}

func (n node) number() (float64, bool) {
	t, ok := n.text()
	f, err := strconv.ParseFloat(t, 64)
	return f, ok && err == nil
}

func (n node) boolean() (value, ok bool) {
	switch t, _ := n.text(); t {
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	}
	return false, false
}
