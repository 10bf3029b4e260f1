package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"agentgraph/internal/plainjson"
)

// inlineSchema is output.schema as JSON: text stays as it is written, keys and
// values become JSON with members in their order and numbers in their digits.
func inlineSchema(n *yaml.Node) (string, *Finding) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		if strings.TrimSpace(n.Value) == "" {
			return "", &Finding{Line: n.Line, Col: n.Column, Severity: SeverityError, Msg: "output.schema is empty", Hint: "write a schema or remove the key"}
		}
		return n.Value, nil
	}
	var b bytes.Buffer
	if f := writeJSON(&b, n, 0); f != nil {
		f.Severity = SeverityError
		return "", f
	}
	return b.String(), nil
}

// maxInlineDepth bounds nesting, which aliases could make endless.
const maxInlineDepth = 100

func writeJSON(b *bytes.Buffer, n *yaml.Node, depth int) *Finding {
	bad := func(what string) *Finding {
		return &Finding{Line: n.Line, Col: n.Column, Msg: "output.schema: " + what, Hint: "write the schema as JSON"}
	}
	if depth > maxInlineDepth {
		return bad(fmt.Sprintf("nested more than %d deep", maxInlineDepth))
	}
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				return bad("a key that is no plain word")
			}
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(plainjson.Quote(key.Value))
			b.WriteByte(':')
			if f := writeJSON(b, n.Content[i+1], depth+1); f != nil {
				return f
			}
		}
		b.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, v := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if f := writeJSON(b, v, depth+1); f != nil {
				return f
			}
		}
		b.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!str":
			b.WriteString(plainjson.Quote(n.Value))
			return nil
		case "!!null":
			b.WriteString("null")
			return nil
		case "!!bool", "!!int", "!!float":
			if json.Valid([]byte(n.Value)) {
				b.WriteString(n.Value)
				return nil
			}
		}
		return bad(fmt.Sprintf("%q is no value of JSON", n.Value))
	}
	return bad("an alias is not read in a schema")
}
