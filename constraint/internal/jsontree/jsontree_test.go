package jsontree

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		src    string
		offset int
	}{
		{``, 0}, {`{`, 1}, {`{"a":1,}`, 7}, {`[1,]`, 3}, {`[1 2]`, 3}, {`01`, 0}, {`-`, 1}, {`1.`, 2}, {`1e`, 2},
		{`{"a":1,"a":2}`, 7}, {`{"a":1,"\u0061":2}`, 7}, {`"\ud800"`, 1}, {`"\ud800\u0041"`, 1}, {`"\x"`, 1},
		{"\"a\nb\"", 2}, {"\"\xff\"", 1}, {`nul`, 0}, {`{} {}`, 3}, {`{'a':1}`, 1}, {`"abc`, 4}, {`{"a" 1}`, 5},
	} {
		_, err := Parse([]byte(c.src), Bounds{})
		var e *Error
		if !errors.As(err, &e) || e.Offset != c.offset {
			t.Errorf("%s: %v, want offset %d", c.src, err, c.offset)
		}
	}
}

func TestBounds(t *testing.T) {
	var e *BoundError
	if _, err := Parse([]byte(`[[[[1]]]]`), Bounds{Depth: 4}); !errors.As(err, &e) || e.What != "depth" || e.Offset != 4 {
		t.Errorf("depth: %v", err)
	}
	if _, err := Parse([]byte(`[1,2,3]`), Bounds{Nodes: 3}); !errors.As(err, &e) || e.What != "nodes" || e.Offset != 5 {
		t.Errorf("nodes: %v", err)
	}
}

func TestEditKeepsTheRest(t *testing.T) {
	n, err := Parse([]byte(`{ "b" : 1.50, "oneOf":[{"x":  "\u00e9"}], "gone":[1], "a": {"c":2} }`), Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	c := n.Clone()
	c.Drop("gone")
	c.Rename("oneOf", "anyOf")
	c.Set("new", Raw(`{"k":false}`))
	c.At("/a/c").Replace(Raw(`true`))
	c.Move("a", "b")
	const want = `{"a":{"c":true},"b":1.50,"anyOf":[{"x":  "\u00e9"}],"new":{"k":false}}`
	if got := string(c.Bytes()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n.dirty() || !n.Has("gone") {
		t.Error("changing the copy changed the original")
	}
	if n.At("/oneOf/0/x").Str != "é" || n.At("/oneOf/1") != nil || n.At("/oneOf/00") != nil {
		t.Error("pointers")
	}
}

func TestPosition(t *testing.T) {
	src := []byte("{\n \"é\": x}")
	if l, c := Position(src, 8); l != 2 || c != 6 {
		t.Errorf("%d:%d", l, c)
	}
}

// FuzzParse: what this package takes, encoding/json takes too, and writing an
// unchanged tree gives the same bytes.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\n",null,true]}`, `"\ud83d\ude00"`, ` [ ] `, `{"a":{"a":{}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		n, err := Parse(src, Bounds{Depth: 100})
		if err != nil {
			return
		}
		if !json.Valid(src) {
			t.Fatalf("%q is taken and is not JSON", src)
		}
		if got := n.Bytes(); string(got) != string(src[n.Start:n.End]) {
			t.Fatalf("%q is written back as %q", src, got)
		}
	})
}
