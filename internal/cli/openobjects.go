package cli

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// schemaNode is a JSON value with its place in the source.
type schemaNode struct {
	offset  int64
	keys    []string
	members map[string]*schemaNode
	items   []*schemaNode
}

// openObject is an object schema that lets further members in.
type openObject struct {
	path string // JSON pointer
	line int
	col  int
}

// openObjects lists the object schemas that name properties and do not say
// what holds for others. Answers may then have members nobody asked for.
func openObjects(src []byte) []openObject {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	root, err := readNode(dec, src)
	if err != nil {
		return nil // the compiler words that
	}
	w := openWalk{src: src}
	w.schema(root, "")
	return w.found
}

func readNode(dec *json.Decoder, src []byte) (*schemaNode, error) {
	start := dec.InputOffset()
	for start < int64(len(src)) && strings.IndexByte(" \t\r\n,:", src[start]) >= 0 {
		start++
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	n := &schemaNode{offset: start}
	switch tok {
	case json.Delim('{'):
		n.members = map[string]*schemaNode{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := readNode(dec, src)
			if err != nil {
				return nil, err
			}
			k := key.(string)
			if _, twice := n.members[k]; !twice {
				n.keys = append(n.keys, k)
			}
			n.members[k] = v
		}
	case json.Delim('['):
		for dec.More() {
			v, err := readNode(dec, src)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, v)
		}
	default:
		return n, nil
	}
	_, err = dec.Token()
	return n, err
}

type openWalk struct {
	src   []byte
	found []openObject
}

func (w *openWalk) schema(n *schemaNode, path string) {
	if n == nil || n.members == nil {
		return
	}
	_, named := n.members["properties"]
	_, additional := n.members["additionalProperties"]
	_, unevaluated := n.members["unevaluatedProperties"]
	if named && !additional && !unevaluated {
		before := w.src[:n.offset]
		line := 1 + bytes.Count(before, []byte("\n"))
		col := 1 + len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:])))
		w.found = append(w.found, openObject{path, line, col})
	}
	for _, k := range n.keys {
		v, at := n.members[k], path+"/"+pointerToken(k)
		switch k {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			for _, name := range v.keys {
				w.schema(v.members[name], at+"/"+pointerToken(name))
			}
		case "items", "additionalProperties", "contains", "propertyNames", "unevaluatedItems", "additionalItems":
			w.schema(v, at)
			w.list(v, at)
		case "prefixItems":
			w.list(v, at)
		case "allOf", "anyOf", "oneOf":
			// A schema around them can close all of them at once.
			if !unevaluated {
				w.list(v, at)
			}
		}
	}
}

func (w *openWalk) list(n *schemaNode, path string) {
	for i, v := range n.items {
		w.schema(v, path+"/"+strconv.Itoa(i))
	}
}

func pointerToken(s string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
}
