package agents

import (
	"reflect"
	"strings"
)

// field is one settings key of a struct.
type field struct {
	name  string
	index []int
	tag   reflect.StructTag
	typ   reflect.Type
}

// fieldsOf lists the keys of a settings struct, those of inlined structs with
// them, in the order they are declared.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, opt, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case opt == "inline":
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		case name != "" && name != "-":
			fields = append(fields, field{name: name, index: []int{i}, tag: f.Tag, typ: f.Type})
		}
	}
	return fields
}

// merge copies every field that over has written onto base; structs behind
// pointers are merged key by key.
func merge(base, over reflect.Value) {
	for _, f := range fieldsOf(base.Type()) {
		b, o := base.FieldByIndex(f.index), over.FieldByIndex(f.index)
		switch o.Kind() {
		case reflect.Pointer:
			if o.IsNil() {
				continue
			}
			if o.Type().Elem().Kind() == reflect.Struct && o.Type().Elem() != typeNode && !b.IsNil() {
				// A copy, because several agents share the defaults.
				c := reflect.New(o.Type().Elem())
				c.Elem().Set(b.Elem())
				merge(c.Elem(), o.Elem())
				b.Set(c)
				continue
			}
			b.Set(o)
		case reflect.Slice:
			if !o.IsNil() {
				b.Set(o)
			}
		}
	}
}

// nearest returns the name that a misspelt key most likely means, or "".
func nearest(key string, names []string) string {
	best, bestDist := "", 3
	for _, n := range names {
		if d := editDistance(strings.ToLower(key), n); d < bestDist && d < len(n) {
			best, bestDist = n, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	if len(a) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diag, row[j] = row[j], min(row[j]+1, row[j-1]+1, diag+cost)
		}
	}
	return row[len(b)]
}
