package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// checkBounds holds findings against what is promised about them.
func checkBounds(t testing.TB, findings []Finding) {
	t.Helper()
	if len(findings) > 8 {
		t.Errorf("%d findings", len(findings))
	}
	type plain struct {
		Code     string `json:"code"`
		Instance string `json:"instance"`
		Schema   string `json:"schema"`
	}
	var list []plain
	for _, f := range findings {
		if len(f.Instance) > 256 || len(f.Schema) > 256 {
			t.Errorf("pointers of %d and %d bytes", len(f.Instance), len(f.Schema))
		}
		for _, p := range []string{f.Instance, f.Schema} {
			if _, ok := splitPointer(p); !ok {
				t.Errorf("%q is not a JSON pointer", p)
			}
		}
		switch f.Code {
		case MalformedJSON, JSONBytes, JSONStructure, ValidationWork, SchemaViolation, GrammarViolation:
		default:
			t.Errorf("unknown code %q", f.Code)
		}
		list = append(list, plain(f))
	}
	if data, _ := json.Marshal(list); len(data) > 2048 {
		t.Errorf("%d bytes of findings", len(data))
	}
}

func TestFindingBounds(t *testing.T) {
	long := strings.Repeat("n", 300)
	for _, c := range []struct {
		name, schema, answer string
		count                int
		instance             string
	}{
		{"long name", `{"additionalProperties":{"additionalProperties":false}}`, `{"a":{"` + long + `":1}}`, 1, "/a"},
		{"name that just fits", `{"additionalProperties":false}`, `{"` + long[:255] + `":1}`, 1, "/" + long[:255]},
		{"name that just does not", `{"additionalProperties":false}`, `{"` + long[:256] + `":1}`, 1, ""},
		{"slashes grow", `{"additionalProperties":false}`, `{"` + strings.Repeat("/", 200) + `":1}`, 1, ""},
		{"control characters", `{"additionalProperties":false}`, `{"` + strings.Repeat(`\u0001`, 200) + `":1}`, 1, ""},
		{"control characters that fit", `{"additionalProperties":false}`, `{"` + strings.Repeat(`\u0001`, 100) + `":1}`, 1, "/" + strings.Repeat("\x01", 100)},
		{"markup", `{"additionalProperties":false}`, `{"` + strings.Repeat(`<`, 149) + `":1}`, 1, "/" + strings.Repeat("<", 149)},
	} {
		f := mustJSON(t, c.schema, Options{}).Validate(context.Background(), c.answer)
		checkBounds(t, f)
		if len(f) != c.count || f[0].Instance != c.instance {
			t.Errorf("%s: %q", c.name, f)
		}
	}
	// Eight findings with pointers of 250 bytes do not fit.
	var answer []string
	for i := range 8 {
		answer = append(answer, fmt.Sprintf(`"%s%d":1`, long[:240], i))
	}
	f := judge(t, `{"additionalProperties":{"type":"null"}}`, "{"+strings.Join(answer, ",")+"}")
	checkBounds(t, f)
	if len(f) < 5 || len(f) > 7 {
		t.Errorf("%d findings of 300 bytes", len(f))
	}
	// The same on the schema's side, and no value of either side.
	schema := fmt.Sprintf(`{"properties":{%q:{"const":"SECRET"},"b":{"enum":["SECRET"]},"c":{"pattern":"SECRET"}}}`, long)
	f = judge(t, schema, fmt.Sprintf(`{%q:"PRIVATE","b":"PRIVATE","c":"PRIVATE"}`, long))
	checkBounds(t, f)
	if len(f) != 3 || f[0].Schema != "/properties" || strings.Contains(fmt.Sprint(f), "SECRET") || strings.Contains(fmt.Sprint(f), "PRIVATE") {
		t.Errorf("%v", f)
	}
}

func TestPositions(t *testing.T) {
	src := "{\n  \"a\": [1, {\"é~/\": \"ü\"}],\r\n  \"日本\": {\"\": null}, \"b\": -1.5e3\n}\n"
	ix, err := Positions([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pointer                    string
		line, col, keyLine, keyCol int
	}{
		{"", 1, 1, 1, 1},
		{"/a", 2, 8, 2, 3},
		{"/a/0", 2, 9, 2, 9},
		{"/a/1", 2, 12, 2, 12},
		{"/a/1/é~0~1", 2, 20, 2, 13},
		{"/日本", 3, 9, 3, 3},
		{"/日本/", 3, 14, 3, 10},
		{"/b", 3, 26, 3, 21},
	} {
		if line, col, ok := ix.Of(c.pointer); !ok || line != c.line || col != c.col {
			t.Errorf("Of(%q) = %d, %d, %t; want %d, %d", c.pointer, line, col, ok, c.line, c.col)
		}
		if line, col, ok := ix.OfKey(c.pointer); !ok || line != c.keyLine || col != c.keyCol {
			t.Errorf("OfKey(%q) = %d, %d, %t; want %d, %d", c.pointer, line, col, ok, c.keyLine, c.keyCol)
		}
	}
	for _, p := range []string{"a", "/c", "/a/2", "/a/-1", "/a/01", "/a/+1", "/b/0", "/a/1/é~", "/a/99999999999999999999", "/a/"} {
		if _, _, ok := ix.Of(p); ok {
			t.Errorf("Of(%q) finds something", p)
		}
	}
	for _, c := range []struct {
		src       string
		line, col int
	}{
		{"{\n \"ü\" 1}", 2, 6}, {"", 1, 1}, {"[1,\n\n", 3, 1}, {`{"a":1,"a":2}`, 1, 8},
		{strings.Repeat("[", 5000), 1, 4097}, {"\"\xff\"", 1, 2},
	} {
		_, err := Positions([]byte(c.src))
		e, ok := err.(*SyntaxError)
		if !ok || e.Line != c.line || e.Column != c.col || e.Reason == "" {
			t.Errorf("Positions(%.20q): %v, want %d:%d", c.src, err, c.line, c.col)
		}
	}
}
