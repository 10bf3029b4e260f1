package validate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The tests here hold our compiler and evaluator against the jsonschema
// library, whose judgement is another reading of the same specification.

type oracleRegexp struct{ re *regexp2.Regexp }

func (o oracleRegexp) String() string { return o.re.String() }
func (o oracleRegexp) MatchString(s string) bool {
	ok, err := o.re.MatchString(s)
	return err == nil && ok
}

type refuseAll struct{}

func (refuseAll) Load(string) (any, error) { return nil, errors.New("external") }

func oracle(schema string) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseLoader(refuseAll{})
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		re, err := ecmaPattern(s, time.Second)
		if err != nil {
			return nil, err
		}
		return oracleRegexp{re.re}, nil
	})
	if err := c.AddResource(baseURI, doc); err != nil {
		return nil, err
	}
	return c.Compile(baseURI)
}

// compareWith judges one answer both ways. It reports whether the schema was
// usable.
func compareWith(t *testing.T, schema string, answers ...string) bool {
	t.Helper()
	lib, libErr := oracle(schema)
	ours, err := JSON([]byte(schema), Options{AssertFormats: true})
	if err != nil && strings.Contains(err.Error(), "comes back") {
		return false // the library finds this only when it judges an answer
	}
	if libErr != nil && strings.Contains(libErr.Error(), "duplicate id") {
		return false // refused here only where it is referred to
	}
	if err != nil || libErr != nil {
		if (err == nil) != (libErr == nil) {
			t.Errorf("schema %s\n ours: %v\n library: %v", schema, err, libErr)
		}
		return false
	}
	for _, a := range answers {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(a))
		if err != nil {
			t.Fatal(err)
		}
		libErr := lib.Validate(v)
		found := ours.Validate(context.Background(), a)
		if (libErr == nil) != (found == nil) {
			t.Errorf("schema %s\nanswer %s\n ours: %v\n library: %v", schema, a, found, libErr)
		}
	}
	return true
}

// Schemas and answers made at random over a small alphabet, so that most
// keywords apply and about half of the answers are valid.
func TestAgainstLibrary(t *testing.T) {
	rounds := 4000
	if testing.Short() {
		rounds = 500
	}
	used, valid := 0, 0
	for i := 0; i < rounds && !t.Failed(); i++ {
		g := generator{rand.New(rand.NewPCG(1, uint64(i)))}
		dr := []draft{draft4, draft6, draft7, draft2019, draft2020, draft2020, draft2020}[g.IntN(7)]
		schema := g.document(dr)
		var answers []string
		for range 6 {
			answers = append(answers, g.answer(3))
		}
		if compareWith(t, schema, answers...) {
			used++
			s, _ := JSON([]byte(schema), Options{})
			for _, a := range answers {
				if s.Validate(context.Background(), a) == nil {
					valid++
				}
			}
		}
	}
	t.Logf("%d of %d schemas compiled; %d of %d answers valid", used, rounds, valid, 6*used)
	if !t.Failed() && (used < rounds/2 || valid < used || valid > 5*used) {
		t.Errorf("the generator is lopsided: %d schemas, %d valid answers", used, valid)
	}
}

type generator struct{ *rand.Rand }

var draftURI = map[draft]string{
	draft4: "http://json-schema.org/draft-04/schema#", draft6: "http://json-schema.org/draft-06/schema#",
	draft7: "http://json-schema.org/draft-07/schema#", draft2019: "https://json-schema.org/draft/2019-09/schema",
	draft2020: "https://json-schema.org/draft/2020-12/schema",
}

func (g generator) document(dr draft) string {
	defs := "$defs"
	if dr < draft2019 {
		defs = "definitions"
	}
	return fmt.Sprintf(`{"$schema":%q,%q:{"a":%s,"b":%s},%s}`, draftURI[dr], defs,
		g.schema(dr, 1), g.schema(dr, 1), g.members(dr, 3))
}

func (g generator) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g generator) schema(dr draft, depth int) string {
	if dr >= draft6 && g.IntN(8) == 0 {
		return g.pick("true", "false")
	}
	return "{" + g.members(dr, depth) + "}"
}

// members is what a schema object holds.
func (g generator) members(dr draft, depth int) string {
	members := map[string]string{}
	for range 1 + g.IntN(4) {
		name, val := g.keyword(dr, depth)
		if dr.has(name) {
			members[name] = val
		}
	}
	if ref, ok := members["$ref"]; ok && dr < draft2019 {
		members = map[string]string{"$ref": ref} // the library does not hide const, contains, if …
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(members)) {
		list = append(list, fmt.Sprintf("%q:%s", k, members[k]))
	}
	return strings.Join(list, ",")
}

func (g generator) list(dr draft, depth int) string {
	var out []string
	for range 1 + g.IntN(3) {
		out = append(out, g.schema(dr, depth))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func (g generator) mapOf(dr draft, depth int, names ...string) string {
	var out []string
	for _, n := range names {
		if g.IntN(2) == 0 {
			out = append(out, fmt.Sprintf("%q:%s", n, g.schema(dr, depth)))
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

func (g generator) keyword(dr draft, depth int) (string, string) {
	number := func() string { return g.pick("0", "1", "2", "0.5", "1.0", "3", "-1", "1e1", "9007199254740993") }
	count := func() string { return g.pick("0", "1", "2", "3", "2.0") }
	names := func() string { return g.pick(`["a"]`, `["a","b"]`, `["c"]`) }
	switch k := g.pick("type", "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required",
		"minContains", "maxContains", "dependentRequired", "format"); k {
	case "type":
		if depth > 0 && g.IntN(3) > 0 {
			return g.nested(dr, depth-1)
		}
		return k, g.pick(`"object"`, `"array"`, `"string"`, `"integer"`, `"number"`, `["null","boolean"]`, `["integer","object"]`)
	case "enum":
		return k, g.pick(`[1,"a",null]`, `[[1],{"a":1}]`, `[1.0,true,{"a":1,"b":2}]`)
	case "const":
		return k, g.answer(1)
	case "exclusiveMinimum", "exclusiveMaximum":
		if dr == draft4 {
			return k, g.pick("true", "false")
		}
		return k, number()
	case "minimum", "maximum":
		return k, number()
	case "multipleOf":
		return k, g.pick("0.1", "2", "1.5", "3", "1e-3")
	case "pattern":
		return k, g.pick(`"^a"`, `"b$"`, `"^\\d+$"`, `"[ab]{2}"`)
	case "uniqueItems":
		return k, g.pick("true", "false")
	case "required":
		return k, names()
	case "dependentRequired":
		return k, fmt.Sprintf(`{"a":%s,"b":%s}`, names(), names())
	case "format":
		return k, `"nothing"`
	default:
		return k, count()
	}
}

func (g generator) nested(dr draft, depth int) (string, string) {
	switch k := g.pick("properties", "properties", "patternProperties", "additionalProperties", "propertyNames", "dependencies",
		"dependentSchemas", "items", "items", "prefixItems", "additionalItems", "contains", "allOf", "anyOf", "oneOf", "not", "if",
		"then", "else", "unevaluatedItems", "unevaluatedProperties", "$ref"); k {
	case "properties", "dependentSchemas":
		return k, g.mapOf(dr, depth, "a", "b", "c")
	case "patternProperties":
		return k, g.mapOf(dr, depth, "^a", "b|c")
	case "dependencies":
		return k, fmt.Sprintf(`{"a":["b"],"b":%s}`, g.schema(dr, depth))
	case "items":
		if dr < draft2020 && g.IntN(2) == 0 {
			return k, g.list(dr, depth)
		}
		return k, g.schema(dr, depth)
	case "prefixItems", "allOf", "anyOf", "oneOf":
		return k, g.list(dr, depth)
	case "$ref":
		if dr < draft2019 {
			return k, g.pick(`"#/definitions/a"`, `"#/definitions/b"`)
		}
		return k, g.pick(`"#/$defs/a"`, `"#/$defs/b"`)
	default:
		return k, g.schema(dr, depth)
	}
}

func (g generator) answer(depth int) string {
	if depth > 0 && g.IntN(2) == 0 {
		var out []string
		if g.IntN(2) == 0 {
			for range g.IntN(4) {
				out = append(out, g.answer(depth-1))
			}
			return "[" + strings.Join(out, ",") + "]"
		}
		for _, n := range []string{"a", "b", "c", "ab"} {
			if g.IntN(2) == 0 {
				out = append(out, fmt.Sprintf("%q:%s", n, g.answer(depth-1)))
			}
		}
		return "{" + strings.Join(out, ",") + "}"
	}
	return g.pick("null", "true", "false", "0", "1", "1.0", "2", "3", "10", "0.3", "-1", "1e2", "9007199254740992", "9007199254740993.0",
		`""`, `"a"`, `"ab"`, `"12"`, `"bab"`, `"nothing"`)
}

// Every schema and instance of the MaskBench slice, with formats asserted as
// its flags expect: against the library, and against the flags themselves.
func TestMaskBench(t *testing.T) {
	f, err := os.Open(sharedData(t, "maskbench-dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<26)
	schemas, instances := 0, 0
	for sc.Scan() {
		var row struct {
			Name   string
			Schema json.RawMessage
			Tests  []struct {
				Data  json.RawMessage
				Valid bool
			}
		}
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		schemas++
		s, err := JSON(row.Schema, Options{AssertFormats: true})
		if err != nil {
			t.Errorf("%s: %v", row.Name, err)
			continue
		}
		var answers []string
		for i, c := range row.Tests {
			instances++
			if found := s.Validate(context.Background(), string(c.Data)); (found == nil) != c.Valid {
				t.Errorf("%s, instance %d: the flag says %t, we say %v", row.Name, i, c.Valid, found)
			}
			answers = append(answers, string(c.Data))
		}
		compareWith(t, string(row.Schema), answers...)
	}
	if sc.Err() != nil || schemas < 500 || instances < 1500 {
		t.Errorf("only %d schemas and %d instances, %v", schemas, instances, sc.Err())
	}
}
