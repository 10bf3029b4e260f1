package distill

import (
	"strings"
	"testing"
)

func TestExpr(t *testing.T) {
	answers := map[string]string{
		"":        `{"n":3,"s":"b","list":[10,{"x":true}],"o":{"a b":1},"nil":null,"zero":0,"empty":"","big":1e400}`,
		"rater":   `{"rating":4}`,
		"my-rate": `"good"`,
		"free":    `not JSON`,
	}
	tests := map[string]bool{
		"rater.rating >= 4":                    true,
		"rater.rating > 4":                     false,
		"answer.n == 3.0":                      true,
		"answer.n != 3":                        false,
		"answer.n < -1e3":                      false,
		"answer.s >= 'a' and answer.s < \"c\"": true,
		"answer.list.0 == 10":                  true,
		"answer.list[1].x":                     true,
		`answer.o["a b"] == 1`:                 true,
		"answer.list.2":                        false,
		"answer.list.x":                        false,
		"answer.missing == null":               false,
		"answer.missing != 1":                  false,
		"1 != answer.missing":                  false,
		"answer.nil == null":                   true,
		"answer.nil":                           false,
		"answer.zero":                          false,
		"answer.empty":                         false,
		"answer.o":                             true,
		"answer.o == answer.o":                 false,
		"answer.n == '3'":                      false,
		"answer.n != '3'":                      true,
		"answer.s != 1":                        true,
		"answer.big == 1":                      false,
		"my-rate == 'good'":                    true,
		`"rater".rating == 4`:                  true,
		"free == 'not JSON'":                   true,
		`"rater" == "rater"`:                   true,
		"nobody.x":                             false,
		"not nobody.x":                         true,
		"!(answer.n == 3) || rater.rating":     true,
		"answer.n == 3 and not answer.n == 4":  true,
		"false or true and false":              false,
		"(true or false) and true":             true,
		"answer.n == 3 && answer.n == 4":       false,
		"true == true":                         true,
		"true != false":                        true,
		"true < false":                         false,
		`answer.s == "\u0062"`:                 true,
		`'it\'s' == "it's"`:                    true,
		"not not true":                         true,
		"answer.list.1.x == true":              true,
		strings.Repeat("(", 60) + "true" + strings.Repeat(")", 60): true,
	}
	for src, want := range tests {
		e, err := ParseExpr(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		got := e.Eval(func(i int) (any, bool) {
			r := e.Refs()[i]
			text, ok := answers[r.Agent]
			if !ok {
				return nil, false
			}
			return valueAt(text, r.Path)
		})
		if got != want {
			t.Errorf("%s is %v", src, got)
		}
	}
}

func TestExprErrors(t *testing.T) {
	tests := map[string]string{
		"":            "column 1",
		"a >":         "column 4",
		"a > > 1":     "column 5",
		"(a":          "a ) is missing",
		"a)":          `")" is not expected`,
		"a.":          "a member's name",
		"a[1":         "a ] is missing",
		"a['x]":       "has no end",
		"a = 1":       "column 3",
		"é ?":         "column 3",
		"a and":       "a value is expected",
		"and":         "a value is expected",
		"1.2.3":       "not a number",
		"a b":         `"b" is not expected`,
		`"\q" == a`:   "JSON string",
		"a == 1 == 2": "not expected",
		strings.Repeat("(", 200) + "a" + strings.Repeat(")", 200): "deeper than",
		strings.Repeat("not ", 200) + "a":                         "deeper than",
		strings.Repeat("a", 5000):                                 "at most 4096",
	}
	for src, want := range tests {
		if _, err := ParseExpr(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", src, err, want)
		}
	}
	for _, bad := range []string{"1", "a > 2", "not a", "'x'"} {
		if r, err := ParseRef(bad); err == nil {
			t.Errorf("%s: %v", bad, r)
		}
	}
}

func TestRefString(t *testing.T) {
	for _, src := range []string{"answer.a.b", `rater["a b"]`, `"my agent".x`, "answer.list[\"0\"].y"} {
		r, err := ParseRef(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if r.String() != src {
			t.Errorf("%s prints as %s", src, r)
		}
	}
}

func FuzzExpr(f *testing.F) {
	f.Add("rater.rating >= 4 and not (answer.x[\"y\"] == 'z')")
	f.Add("a.0.1 != -1e5 || !b")
	f.Fuzz(func(t *testing.T, src string) {
		e, err := ParseExpr(src)
		if err != nil {
			return
		}
		e.Eval(func(int) (any, bool) { return 1.0, true })
		for _, r := range e.Refs() {
			if again, err := ParseRef(r.String()); err != nil || !again.is(r) {
				t.Errorf("%q: %s is read as %v (%v)", src, r, again, err)
			}
		}
	})
}
