package constraint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"agentgraph/constraint/internal/jsontree"
	"agentgraph/constraint/internal/relax"
)

// looseSchema writes schemas of every keyword over a tiny world of values, so
// that random instances meet them from both sides.
type looseSchema struct{ r *rand.Rand }

func (g looseSchema) pick(list ...string) string { return list[g.r.IntN(len(list))] }

func (g looseSchema) schema(depth int) string {
	if depth <= 0 {
		return g.pick(`true`, `{"type":"integer"}`, `{"type":"string"}`, `{"enum":[1,"a",null]}`, `{"const":"ab"}`, `{"minimum":1}`,
			`{"maxLength":1}`, `{"type":["object","array"]}`, `{"multipleOf":2}`, `{"pattern":"^a"}`, `{"pattern":"b$"}`, `{"type":"number","exclusiveMaximum":2}`)
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	sub := func() string { return g.schema(depth - 1) }
	for range 1 + g.r.IntN(3) {
		switch g.r.IntN(22) {
		case 0:
			add(`"type":%s`, g.pick(`"object"`, `"array"`, `["object","string"]`, `["array","null","integer"]`))
		case 1, 2:
			add(`"properties":{"a":%s,"b":%s}`, sub(), sub())
		case 3:
			add(`"required":["%s"]`, g.pick("a", "b", "c"))
		case 4:
			add(`"additionalProperties":%s`, g.pick("false", sub()))
		case 5:
			add(`"patternProperties":{"^a":%s,"b":%s}`, sub(), sub())
		case 6:
			add(`"patternProperties":{"^[cd]$":%s}`, sub())
		case 7:
			add(`"minProperties":%d`, g.r.IntN(3))
		case 8:
			add(`"maxProperties":%d`, g.r.IntN(3))
		case 9:
			add(`"items":%s`, sub())
		case 10:
			add(`"prefixItems":[%s,%s]`, sub(), sub())
		case 11:
			add(`"uniqueItems":true`)
		case 12:
			add(`"contains":%s`, sub())
		case 13:
			add(`"minItems":%d`, g.r.IntN(2))
		case 14:
			add(`"allOf":[%s,%s]`, sub(), sub())
		case 15:
			add(`"anyOf":[%s,%s]`, sub(), sub())
		case 16:
			add(`"oneOf":[%s,%s]`, sub(), sub())
		case 17:
			add(`"not":%s`, sub())
		case 18:
			add(`"if":%s,"then":%s`, sub(), sub())
		case 19:
			add(`"dependentRequired":{"a":["%s"]}`, g.pick("b", "c"))
		case 20:
			add(`%s`, g.pick(`"unevaluatedProperties":false`, `"unevaluatedItems":false`, `"propertyNames":{"maxLength":1}`))
		case 21:
			add(`"$ref":"#/$defs/x"`)
		}
	}
	// A keyword may come twice; the last one stays.
	last := map[string]int{}
	for i, p := range parts {
		last[p[:strings.IndexByte(p, ':')]] = i
	}
	var out []string
	for i, p := range parts {
		if last[p[:strings.IndexByte(p, ':')]] == i {
			out = append(out, p)
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

func (g looseSchema) value(depth int) string {
	switch n := g.r.IntN(9); {
	case depth > 0 && n < 3:
		var m []string
		for _, k := range []string{"a", "b", "c", "ab", "d"} {
			if g.r.IntN(3) == 0 {
				m = append(m, fmt.Sprintf(`%q:%s`, k, g.value(depth-1)))
			}
		}
		return "{" + strings.Join(m, ",") + "}"
	case depth > 0 && n < 5:
		var m []string
		for range g.r.IntN(4) {
			m = append(m, g.value(depth-1))
		}
		return "[" + strings.Join(m, ",") + "]"
	}
	return g.pick("1", "2", "0.5", "-3", `"a"`, `"ab"`, `""`, `"b"`, "null", "true")
}

// checkSound: what is valid, the mask takes.
func checkSound(t *testing.T, seed uint64, instances int) (checked int) {
	g := looseSchema{rand.New(rand.NewPCG(seed, 3))}
	schema := strings.TrimSuffix(g.schema(3), "}") + `,"$defs":{"x":` + g.schema(1) + `},"$schema":"` +
		g.pick("https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema",
			"http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-06/schema#") + `"}`
	con, err := Compile(Spec{Kind: JSON, Source: []byte(schema)}, Options{Enforce: EnforceValidate})
	var refusal *Refusal
	unsat := false
	if err != nil {
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, "no answer ") && !strings.Contains(refusal.Reason, "forbidden") &&
			!strings.Contains(refusal.Reason, "consumes nothing") && !strings.Contains(refusal.Reason, "contain itself") {
			t.Fatalf("seed %d: %s: %v", seed, schema, err)
		}
		unsat = true
	}
	if unsat {
		return 0
	}
	tree, err := jsontree.Parse([]byte(schema), jsontree.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	for range instances {
		text := g.value(3)
		took := maskTakes(t, con, text)
		ok := valid(con, text)
		if took && !ok && len(con.Unmasked()) == 0 {
			t.Fatalf("seed %d: the mask takes an invalid answer and lists nothing\nschema %s\nanswer %s\n%+v", seed, schema, text, con.Validate(context.Background(), text))
		}
		if !ok {
			continue
		}
		checked++
		if took {
			continue
		}
		v := jsontree.Raw(text)
		relax.Reorder(tree, v)
		if again := string(v.Compact()); !maskTakes(t, con, again) && !takesSomeOrder(t, con, v) {
			t.Fatalf("seed %d: the mask rejects a valid answer\nschema %s\nengine %s\nanswer %s", seed, schema, con.grammar.text, again)
		}
	}
	return checked
}

// takesSomeOrder tries every order of members of the outer objects.
func takesSomeOrder(t *testing.T, con *Constraint, v *jsontree.Node) bool {
	var objects []*jsontree.Node
	var collect func(n *jsontree.Node)
	collect = func(n *jsontree.Node) {
		if n.Kind == jsontree.Object && len(n.Members) > 1 {
			objects = append(objects, n)
		}
		for _, e := range n.Items {
			collect(e)
		}
		for _, m := range n.Members {
			collect(m.Value)
		}
	}
	collect(v)
	budget := 3000
	var try func(i int) bool
	try = func(i int) bool {
		if budget--; budget < 0 {
			return true // too many orders to tell
		}
		if i == len(objects) {
			return maskTakes(t, con, string(v.Compact()))
		}
		o := objects[i]
		found := false
		permute(len(o.Members), func(order []int) bool {
			saved := append([]jsontree.Member(nil), o.Members...)
			for k, j := range order {
				o.Members[k] = saved[j]
			}
			found = try(i + 1)
			copy(o.Members, saved)
			return found
		})
		return found
	}
	return try(0)
}

// permute calls f with every order of n things until it returns true.
func permute(n int, f func([]int) bool) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var rec func(k int) bool
	rec = func(k int) bool {
		if k == n {
			return f(order)
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			if rec(k + 1) {
				return true
			}
			order[k], order[i] = order[i], order[k]
		}
		return false
	}
	rec(0)
}

// TestMaskTakesWhatIsValid holds the one rule of the mask on random schemas
// of every keyword.
func TestMaskTakesWhatIsValid(t *testing.T) {
	needNative(t)
	n, checked := uint64(300), 0
	if testing.Short() {
		n = 40
	}
	for seed := range n {
		checked += checkSound(t, seed, 40)
	}
	if checked < int(n) {
		t.Errorf("only %d valid instances in %d schemas: the generators do not meet", checked, n)
	}
}

func FuzzSound(f *testing.F) {
	needNative(f)
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkSound(t, seed, 30) })
}
