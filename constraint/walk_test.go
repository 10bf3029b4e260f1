package constraint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomSchema writes a schema of the keywords a mask holds, mostly.
type randomSchema struct{ r *rand.Rand }

func (g randomSchema) pick(list ...string) string { return list[g.r.IntN(len(list))] }

func (g randomSchema) schema(depth int) string {
	if depth <= 0 || g.r.IntN(3) == 0 {
		return g.leaf()
	}
	switch g.r.IntN(6) {
	case 0:
		return g.array(depth)
	case 1:
		return `{"anyOf":[` + g.schema(depth-1) + `,` + g.schema(depth-1) + `]}`
	case 2:
		return `{"oneOf":[{"type":"string"},{"type":"integer"},` + g.object(depth-1) + `]}`
	case 3:
		return `{"allOf":[` + g.object(depth-1) + `,{"type":"object"}]}`
	}
	return g.object(depth)
}

func (g randomSchema) leaf() string {
	switch g.r.IntN(9) {
	case 0:
		return fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":%d}`, g.r.IntN(50)-60, g.r.IntN(1000))
	case 1:
		return g.pick(`{"type":"number"}`, `{"type":"number","minimum":0}`, `{"type":"number","exclusiveMinimum":-1.5,"maximum":7.25}`, `{"type":"number","multipleOf":0.5,"minimum":0,"maximum":9}`)
	case 2:
		return fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":%d}`, g.r.IntN(3), 3+g.r.IntN(9))
	case 3:
		return g.pick(`{"type":"string","pattern":"^[a-c]{1,4}$"}`, `{"type":"string","pattern":"^\\d{2}-\\w$"}`, `{"type":"string","pattern":"x.y","maxLength":9}`, `{"type":"string","pattern":"^[^\\s\"]{2}$"}`)
	case 4:
		return g.pick(`{"enum":["a","b",null,3]}`, `{"const":{"k":[1,"é"]}}`, `{"enum":[1.5,-2,"x\ny"]}`, `{"const":"\u0001\u007f"}`)
	case 5:
		return g.pick(`{"type":"boolean"}`, `{"type":["null","integer"]}`, `{"type":"null"}`)
	case 6:
		return g.pick(`{"format":"date","type":"string"}`, `{"format":"uuid","type":"string"}`, `{"format":"ipv4","type":"string"}`)
	case 7:
		return g.pick(`{"$ref":"#/$defs/short"}`, `{"$ref":"#/$defs/tree"}`)
	}
	return `{"type":"string","maxLength":6}`
}

func (g randomSchema) array(depth int) string {
	lo := g.r.IntN(3)
	s := fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d,"maxItems":%d`, g.schema(depth-1), lo, lo+g.r.IntN(3))
	if g.r.IntN(3) == 0 {
		s += `,"prefixItems":[` + g.schema(depth-1) + `]`
	}
	return s + "}"
}

func (g randomSchema) object(depth int) string {
	var props, required []string
	for i := range 1 + g.r.IntN(4) {
		name := fmt.Sprintf(`"%c"`, 'a'+i)
		props = append(props, name+":"+g.schema(depth-1))
		if g.r.IntN(2) == 0 {
			required = append(required, name)
		}
	}
	s := `{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(required, ",") + `]`
	switch g.r.IntN(5) {
	case 0:
		s += `,"additionalProperties":{"type":"integer"}`
	case 1:
		s += `,"patternProperties":{"^x[0-9]$":{"type":"boolean"}},"additionalProperties":false`
	default:
		s += `,"additionalProperties":false`
	}
	return s + "}"
}

func (g randomSchema) root() string {
	s := g.schema(4)
	return strings.TrimSuffix(s, "}") + `,"$defs":{"short":{"type":"string","maxLength":3},
		"tree":{"type":"object","properties":{"v":{"type":"integer"},"l":{"$ref":"#/$defs/tree"}},"required":["v"],"additionalProperties":false}}}`
}

// walk writes a random answer that the mask allows. It prefers to end, so
// that most walks do; "" and false means cut off.
func walk(m *Matcher, r *rand.Rand, max int) (string, bool, error) {
	mask := make([]uint32, m.v.MaskWords())
	var text []byte
	var may []uint32
	for len(text) < max {
		if m.Stopped() {
			return string(text), true, nil
		}
		if err := m.Mask(mask); err != nil {
			return string(text), false, err
		}
		if has(mask, 256) && r.IntN(2) == 0 {
			return string(text), true, nil
		}
		may = may[:0]
		for i := range uint32(256) {
			if has(mask, i) {
				may = append(may, i)
			}
		}
		if len(may) == 0 {
			return string(text), has(mask, 256), nil
		}
		next := may[r.IntN(len(may))]
		for _, end := range []byte(`"}]`) { // leave what is open, half of the time
			if has(mask, uint32(end)) && r.IntN(2) == 0 {
				next = uint32(end)
			}
		}
		text = append(text, byte(next))
		if err := m.Accept(next); err != nil {
			return string(text), false, err
		}
	}
	return string(text), false, nil
}

// allowedFault says that a masked answer broke its promise only in the way a
// mask cannot see: a member twice, or a listed name spelled with an escape,
// on an open object.
func allowedFault(v Verdict, text, schema string) bool {
	if strings.Contains(schema, `"additionalProperties":false`) && !strings.Contains(schema, `"additionalProperties":{`) &&
		!strings.Contains(schema, "patternProperties") {
		return false
	}
	for _, d := range v.Diagnostics {
		if d.Code == JSONStructure {
			return true
		}
	}
	return strings.Contains(text, `\u`)
}

func checkWalks(t *testing.T, seed uint64, walks int) {
	r := rand.New(rand.NewPCG(seed, 1))
	schema := randomSchema{r}.root()
	con, err := Compile(Spec{Kind: JSON, Source: []byte(schema)}, Options{})
	if err != nil {
		var ref *Refusal
		if errors.As(err, &ref) && strings.Contains(ref.Reason, "no answer ") {
			return
		}
		t.Fatalf("seed %d: %s: %v", seed, schema, err)
	}
	if by, err := con.Admit(LocalEngine("")); by != ByMask {
		t.Logf("seed %d: %s: %v", seed, schema, err)
		return
	}
	for range walks {
		m := byteMatcher(t, con)
		text, ended, err := walk(m, r, 4000)
		m.Close()
		if err != nil {
			t.Fatalf("seed %d: %s: after %q: %v", seed, schema, text, err)
		}
		if !ended {
			continue // cut off: a model would be told so
		}
		if v := con.Validate(context.Background(), text); !v.Valid && !allowedFault(v, text, schema) {
			t.Fatalf("seed %d: the masked answer is invalid\nschema %s\nanswer %s\n%+v", seed, schema, text, v.Diagnostics)
		}
	}
}

// TestRandomWalks: whatever a mask lets through to the end is valid.
func TestRandomWalks(t *testing.T) {
	needNative(t)
	n := uint64(150)
	if testing.Short() {
		n = 20
	}
	for seed := range n {
		checkWalks(t, seed, 4)
	}
}

func FuzzWalks(f *testing.F) {
	needNative(f)
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { checkWalks(t, seed, 3) })
}

// FuzzAdmission: no source makes Compile crash or take long, and what it
// admits under validate accepts nothing by the mask that is not JSON.
func FuzzAdmission(f *testing.F) {
	needNative(f)
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"enum":[1,"x"]}}}`,
		`{"oneOf":[{"const":1},{"type":"string","pattern":"^a+(b|c)$"}],"not":{"const":2}}`,
		`{"allOf":[{"minProperties":1},{"patternProperties":{"^a":{},"a$":{}}}],"unevaluatedProperties":false}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","items":[{"maximum":3,"exclusiveMaximum":true}],"additionalItems":false}`,
		`{"if":{},"then":false}`, `{"multipleOf":1e-300,"maximum":1e308}`, `true`, `{"type":["string","null"],"minLength":1.0}`,
	} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, src []byte, loose bool) {
		opt := Options{Limits: Strict}
		if loose {
			opt.Enforce = EnforceValidate
		}
		con, err := Compile(Spec{Kind: JSON, Source: src}, opt)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an empty refusal")
			}
			return
		}
		if _, err := con.Admit(LocalEngine("")); err != nil {
			return
		}
		m := byteMatcher(t, con)
		defer m.Close()
		text, ended, err := walk(m, rand.New(rand.NewPCG(uint64(len(src)), 7)), 300)
		if err != nil && !errors.Is(err, ErrTooCostly) {
			t.Fatalf("%s: after %q: %v", src, text, err)
		}
		if ended && err == nil {
			for _, d := range con.Validate(context.Background(), text).Diagnostics {
				if d.Code == MalformedJSON {
					t.Fatalf("%s: the mask lets through %q", src, text)
				}
			}
		}
	})
}

func FuzzGrammars(f *testing.F) {
	needNative(f)
	f.Add([]byte("start: \"a\" b+\nb: /x|y/\n"), byte(0))
	f.Add([]byte(`[a-z]{2,}(\d|é)*`), byte(1))
	f.Add([]byte(`{"grammars":[{"lark_grammar":"start: @j"},{"name":"j","json_schema":{"type":"integer"}}]}`), byte(2))
	kinds := []Kind{Lark, Regex, LLG}
	f.Fuzz(func(t *testing.T, src []byte, kind byte) {
		con, err := Compile(Spec{Kind: kinds[int(kind)%3], Source: src}, Options{Limits: Strict})
		if err != nil {
			return
		}
		m := byteMatcher(t, con)
		defer m.Close()
		text, ended, err := walk(m, rand.New(rand.NewPCG(uint64(len(src)), 7)), 200)
		if err == nil && ended && !con.Validate(context.Background(), text).Valid {
			t.Fatalf("%s %q: the masked answer %q is invalid", con.Spec().Kind, src, text)
		}
	})
}
