package lark

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// schema is a JSON Schema of the few constructs that become rules of
// characters without loss: types, closed objects, arrays, lengths, constants.
type schema struct {
	// kinds are the types that are allowed, in the order of allKinds.
	kinds []string
	// values are the JSON texts of const and enum; with them, kinds is unused.
	values []string
	// props are the members of a closed object, in their order; open is an
	// object of any members.
	props []property
	open  bool
	items *schema // nil: any
	// min and max bound the length of a string or an array; max is negative
	// without a bound.
	minLength, maxLength int
	minItems, maxItems   int
}

type property struct {
	key      string // as JSON text
	required bool
	value    *schema
}

var allKinds = []string{"string", "integer", "number", "boolean", "null", "array", "object"}

// schemaError names the construct that has no counterpart.
type schemaError struct{ path, what string }

func (e schemaError) Error() string {
	if e.path == "" {
		return e.what
	}
	return e.what + " at " + e.path
}

// readSchema reads text; the error is a schemaError.
func readSchema(text string) (s *schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(schemaError)
			if !ok {
				panic(r)
			}
			s, err = nil, e
		}
	}()
	return readSchemaAt(json.RawMessage(text), ""), nil
}

// anything is the schema of any value.
func anything() *schema {
	return &schema{kinds: []string{"string", "number", "boolean", "null", "array", "object"}, open: true, maxLength: -1, maxItems: -1}
}

type member struct {
	key   string
	value json.RawMessage
}

// members reads an object with its order.
func members(raw json.RawMessage, path string) []member {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		panic(schemaError{path, "what is not an object"})
	}
	var out []member
	for dec.More() {
		key, _ := dec.Token()
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			panic(schemaError{path, "malformed JSON"})
		}
		out = append(out, member{key.(string), v})
	}
	return out
}

func readSchemaAt(raw json.RawMessage, path string) *schema {
	if string(raw) == "true" {
		return anything()
	}
	s := anything()
	var props, required json.RawMessage
	closed := false
	for _, m := range members(raw, path) {
		at := path + "/" + m.key
		bad := schemaError{at, strconv.Quote(m.key)}
		switch m.key {
		case "title", "description", "$schema", "$comment", "default", "examples", "$id":
		case "type":
			s.kinds = readKinds(m.value, bad)
		case "const":
			s.values = []string{scalar(m.value, bad)}
		case "enum":
			var list []json.RawMessage
			if json.Unmarshal(m.value, &list) != nil {
				panic(bad)
			}
			for _, v := range list {
				s.values = append(s.values, scalar(v, bad))
			}
		case "properties":
			props = m.value
		case "required":
			required = m.value
		case "additionalProperties":
			if closed = string(m.value) == "false"; !closed && string(m.value) != "true" {
				panic(bad)
			}
		case "items":
			s.items = readSchemaAt(m.value, at)
		case "minLength":
			s.minLength = length(m.value, bad)
		case "maxLength":
			s.maxLength = length(m.value, bad)
		case "minItems":
			s.minItems = length(m.value, bad)
		case "maxItems":
			s.maxItems = length(m.value, bad)
		default:
			panic(bad)
		}
	}
	if s.maxLength >= 0 && s.maxLength < s.minLength || s.maxItems >= 0 && s.maxItems < s.minItems {
		panic(schemaError{path, "a length that nothing has"})
	}
	s.object(props, required, closed, path)
	return s
}

// object reads the members of an object. An object with named members must
// be closed: a rule of characters cannot keep further names apart from them.
func (s *schema) object(props, required json.RawMessage, closed bool, path string) {
	var need []string
	if required != nil && json.Unmarshal(required, &need) != nil {
		panic(schemaError{path + "/required", `"required"`})
	}
	s.open = props == nil && !closed
	if s.open {
		if len(need) > 0 {
			panic(schemaError{path + "/required", `"required" without "properties"`})
		}
		return
	}
	if !closed {
		panic(schemaError{path, `an object without "additionalProperties": false`})
	}
	if props == nil {
		props = json.RawMessage("{}")
	}
	left := map[string]bool{}
	for _, n := range need {
		left[n] = true
	}
	seen := map[string]bool{}
	for _, m := range members(props, path+"/properties") {
		if seen[m.key] {
			panic(schemaError{path + "/properties/" + m.key, "a name given twice"})
		}
		seen[m.key] = true
		s.props = append(s.props, property{quoteJSON(m.key), left[m.key], readSchemaAt(m.value, path+"/properties/"+m.key)})
		delete(left, m.key)
	}
	for _, n := range need {
		if left[n] {
			panic(schemaError{path + "/required", "a required name without a property"})
		}
	}
}

func readKinds(raw json.RawMessage, bad schemaError) []string {
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		panic(bad)
	}
	var out []string
	for _, k := range allKinds {
		for _, l := range list {
			if k == l {
				out = append(out, k)
			}
		}
	}
	if len(out) != len(list) {
		panic(bad)
	}
	return out
}

func length(raw json.RawMessage, bad schemaError) int {
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 0 || n > 1<<20 {
		panic(bad)
	}
	return n
}

// scalar is the text of a constant: a string, a whole number, true, false or
// null. What has more than one spelling is refused.
func scalar(raw json.RawMessage, bad schemaError) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		panic(bad)
	}
	switch v := v.(type) {
	case string:
		return quoteJSON(v)
	case bool, nil:
		return string(raw)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return strconv.FormatInt(n, 10)
		}
	}
	panic(bad)
}

// quoteJSON writes s as the engines' JSON rules write strings.
func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
