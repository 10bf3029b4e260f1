package agents

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxSettingsBytes bounds a settings file; a real one has a few kilobytes.
const maxSettingsBytes = 1 << 20

// problem is an error at a place in a settings file.
type problem struct {
	line, col int
	path      string // "sampling.top_k"
	model     string // the entry of models: it is about
	msg, hint string
}

// place is where a value stands.
type place struct{ line, col int }

// strictDecoder fills a struct from a YAML tree and collects everything that
// is wrong at once. It is stricter than the library's own decoding, which
// reads 1 as a string, 017 as 15 and stops at a duplicate key.
type strictDecoder struct {
	problems []problem
	places   map[string]place
	aliases  int
	model    string
}

// decodeStrict decodes src into dst, a pointer to a struct. places holds the
// position of every key that was written, by its dotted path.
func decodeStrict(src []byte, dst any) (places map[string]place, problems []problem) {
	d := &strictDecoder{places: map[string]place{}}
	if len(src) > maxSettingsBytes {
		d.fail(nil, "", fmt.Sprintf("the file has %d bytes, more than settings can have (%d)", len(src), maxSettingsBytes), "")
		return d.places, d.problems
	}
	if !utf8.Valid(src) {
		d.fail(nil, "", "the file is not UTF-8", "save it as UTF-8")
		return d.places, d.problems
	}
	root := d.parse(src)
	if root == nil || len(d.problems) > 0 {
		return d.places, d.problems
	}
	d.value(root, reflect.ValueOf(dst).Elem(), "", "")
	return d.places, d.problems
}

// parse returns the one document of src; nil when the file is empty.
func (d *strictDecoder) parse(src []byte) *yaml.Node {
	loader, err := yaml.NewLoader(strings.NewReader(string(src)), yaml.WithUniqueKeys(false))
	if err != nil {
		d.fail(nil, "", err.Error(), "")
		return nil
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); err != nil {
		if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "no documents") {
			d.syntax(err)
		}
		return nil
	}
	switch err := loader.Load(&second); {
	case err == nil:
		n := &second
		if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
			n = n.Content[0]
		}
		d.fail(n, "", "a second document begins here", "a settings file holds one document; remove the '---' and what follows")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(err)
		return nil
	}
	n := &doc
	if n.Kind == yaml.DocumentNode {
		if len(n.Content) != 1 {
			return nil
		}
		n = n.Content[0]
	}
	if isNull(n) {
		return nil
	}
	return n
}

func (d *strictDecoder) syntax(err error) {
	var le *yaml.LoadError
	if errors.As(err, &le) {
		msg := le.Message
		if le.ContextMsg != "" {
			msg = le.ContextMsg + ": " + msg
		}
		d.problems = append(d.problems, problem{line: le.Mark.Line, col: max(le.Mark.Column, 1), msg: "not YAML: " + msg})
		return
	}
	d.problems = append(d.problems, problem{msg: "not YAML: " + err.Error()})
}

func (d *strictDecoder) fail(n *yaml.Node, path, msg, hint string) {
	p := problem{path: path, model: d.model, msg: msg, hint: hint}
	if n != nil {
		p.line, p.col = n.Line, n.Column
	}
	d.problems = append(d.problems, p)
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

var (
	typeDuration = reflect.TypeFor[Duration]()
	typeNode     = reflect.TypeFor[yaml.Node]()
	plainInt     = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)
	plainFloat   = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	durationText = regexp.MustCompile(`^(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+$`)
)

func (d *strictDecoder) value(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind == yaml.AliasNode {
		if d.aliases++; d.aliases > 1000 || n.Alias == nil {
			d.fail(n, path, "too many aliases", "write the values out")
			return
		}
		n = n.Alias
	}
	if v.Type() == typeNode {
		v.Set(reflect.ValueOf(*n))
		return
	}
	if isNull(n) {
		// A key without a value would look written and be ignored.
		d.fail(n, path, label(path)+" has no value", "write one or remove the key")
		return
	}
	if v.Type() == typeDuration {
		d.duration(n, v, path, tag)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		before := len(d.problems)
		d.value(n, p.Elem(), path, tag)
		if v.Type().Elem().Kind() == reflect.Struct || len(d.problems) == before {
			v.Set(p)
		}
	case reflect.Struct:
		if tag.Get("secret") != "" && n.Kind != yaml.MappingNode {
			// What stands here may be the secret itself: it is not quoted.
			d.fail(n, path, label(path)+" says where a secret comes from and does not hold it", "write {env: NAME} or {file: PATH}, and take the secret out of the file")
			return
		}
		d.structure(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			d.wrong(n, path, "a list")
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, len(n.Content))) // [] is written, too
		for i, item := range n.Content {
			e := reflect.New(v.Type().Elem()).Elem()
			p := fmt.Sprintf("%s[%d]", path, i)
			d.places[p] = place{item.Line, item.Column}
			d.value(item, e, p, reflect.StructTag(itemTag(tag)))
			v.Set(reflect.Append(v, e))
		}
	default:
		d.scalar(n, v, path, tag)
	}
}

// itemTag is what of a list's tag holds for its items.
func itemTag(tag reflect.StructTag) string {
	if enum := tag.Get("enum"); enum != "" {
		return "enum:" + strconv.Quote(enum)
	}
	return ""
}

func (d *strictDecoder) structure(n *yaml.Node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type())
	if n.Kind != yaml.MappingNode {
		for _, f := range fields {
			if n.Kind == yaml.ScalarNode && f.tag.Get("short") != "" || n.Kind == yaml.SequenceNode && f.tag.Get("list") != "" {
				d.value(n, v.FieldByIndex(f.index), path, f.tag)
				return
			}
		}
	}
	if n.Kind != yaml.MappingNode {
		d.wrong(n, path, "keys with values")
		return
	}
	d.keys(n, path, func(key string, kn, vn *yaml.Node, full string) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == key })
		if i < 0 {
			names := make([]string, len(fields))
			for j, f := range fields {
				names[j] = f.name
			}
			hint := "known here: " + strings.Join(names, ", ")
			if near := nearest(key, names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			d.fail(kn, full, fmt.Sprintf("unknown key %q", full), hint)
			return
		}
		f := fields[i]
		if f.tag.Get("later") != "" {
			d.fail(kn, full, fmt.Sprintf("%q is not supported yet", full), "remove the key")
			return
		}
		d.value(vn, v.FieldByIndex(f.index), full, f.tag)
	})
}

func (d *strictDecoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, path, "names with values")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	d.keys(n, path, func(key string, kn, vn *yaml.Node, full string) {
		e := reflect.New(v.Type().Elem()).Elem()
		if path == "models" {
			d.model = key
			defer func() { d.model = "" }()
		}
		d.value(vn, e, full, "")
		if e.Kind() == reflect.Pointer && e.IsNil() {
			return
		}
		v.SetMapIndex(reflect.ValueOf(key), e)
	})
}

// keys calls each for every key of a mapping that is written once.
func (d *strictDecoder) keys(n *yaml.Node, path string, each func(key string, kn, vn *yaml.Node, full string)) {
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		kn, vn := n.Content[i], n.Content[i+1]
		if kn.Kind != yaml.ScalarNode {
			d.fail(kn, path, "a key must be a plain word", "")
			continue
		}
		full := kn.Value
		if path != "" {
			full = path + "." + kn.Value
		}
		if kn.ShortTag() == "!!merge" {
			d.fail(kn, full, "merge keys (<<) are not read in settings", "write the keys out, or put them under defaults:")
			continue
		}
		if first := seen[kn.Value]; first != nil {
			d.fail(kn, full, fmt.Sprintf("%q is written twice, first at line %d", full, first.Line), "keep one of them")
			continue
		}
		seen[kn.Value] = kn
		d.places[full] = place{kn.Line, kn.Column}
		each(kn.Value, kn, vn, full)
	}
}

func (d *strictDecoder) wrong(n *yaml.Node, path, want string) {
	d.fail(n, path, fmt.Sprintf("%s must be %s, not %s", label(path), want, describe(n)), "")
}

func (d *strictDecoder) scalar(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.ScalarNode {
		d.wrong(n, path, scalarName(v.Kind()))
		return
	}
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch v.Kind() {
	case reflect.String:
		if n.ShortTag() != "!!str" {
			d.fail(n, path, fmt.Sprintf("%s must be text, not %s", label(path), describe(n)), "put it in quotes")
			return
		}
		v.SetString(n.Value)
		if enum := tag.Get("enum"); enum != "" && !slices.Contains(strings.Split(enum, ","), n.Value) {
			d.fail(n, path, fmt.Sprintf("%s is %q", label(path), n.Value), "write one of "+strings.ReplaceAll(enum, ",", ", "))
		}
	case reflect.Bool:
		if !plain || (n.Value != "true" && n.Value != "false") {
			d.fail(n, path, fmt.Sprintf("%s must be true or false, not %s", label(path), describe(n)), "")
			return
		}
		v.SetBool(n.Value == "true")
	case reflect.Int:
		i, err := strconv.ParseInt(strings.TrimPrefix(n.Value, "+"), 10, 64)
		if !plain || !plainInt.MatchString(n.Value) || err != nil || int64(int(i)) != i {
			d.wrong(n, path, "a whole number")
			return
		}
		v.SetInt(i)
		d.bounds(n, path, tag, float64(i))
	case reflect.Uint64:
		u, err := strconv.ParseUint(n.Value, 10, 64)
		if !plain || !plainInt.MatchString(n.Value) || err != nil {
			d.wrong(n, path, "a whole number from 0 to 18446744073709551615")
			return
		}
		v.SetUint(u)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if !plain || !plainFloat.MatchString(n.Value) || err != nil || math.IsInf(f, 0) {
			d.wrong(n, path, "a number")
			return
		}
		v.SetFloat(f)
		d.bounds(n, path, tag, f)
	default:
		panic("agents: settings field of kind " + v.Kind().String())
	}
}

func (d *strictDecoder) duration(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	text := strings.ReplaceAll(strings.ReplaceAll(n.Value, " ", ""), "min", "m")
	if n.Kind == yaml.ScalarNode && text == "0" {
		text = "0s"
	}
	if n.Kind != yaml.ScalarNode || !durationText.MatchString(text) {
		hint := "write a number and a unit, such as 200ms, 30s, 10m"
		d.fail(n, path, fmt.Sprintf("%s must be a duration, not %s", label(path), describe(n)), hint)
		return
	}
	dur, err := time.ParseDuration(text)
	if err != nil {
		d.fail(n, path, fmt.Sprintf("%s: %v", label(path), err), "")
		return
	}
	if low, err := time.ParseDuration(tag.Get("min")); err == nil && dur < low {
		d.fail(n, path, fmt.Sprintf("%s is %v, less than %v", label(path), dur, low), "")
	}
	if high, err := time.ParseDuration(tag.Get("max")); err == nil && dur > high {
		d.fail(n, path, fmt.Sprintf("%s is %v, more than %v", label(path), dur, high), "")
	}
	v.SetInt(int64(dur))
}

func (d *strictDecoder) bounds(n *yaml.Node, path string, tag reflect.StructTag, x float64) {
	if low, err := strconv.ParseFloat(tag.Get("min"), 64); err == nil && x < low {
		d.fail(n, path, fmt.Sprintf("%s is %s, less than %s", label(path), n.Value, tag.Get("min")), "")
	}
	if high, err := strconv.ParseFloat(tag.Get("max"), 64); err == nil && x > high {
		d.fail(n, path, fmt.Sprintf("%s is %s, more than %s", label(path), n.Value, tag.Get("max")), "")
	}
}

func label(path string) string {
	if path == "" {
		return "the file"
	}
	return fmt.Sprintf("%q", path)
}

func scalarName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	default:
		return "a number"
	}
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	}
	s := n.Value
	if len(s) > 40 {
		cut := 40
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	if n.ShortTag() == "!!str" {
		return fmt.Sprintf("the text %q", s)
	}
	return s
}
