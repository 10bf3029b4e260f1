package validate

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// check holds one keyword against its form and scans the schemas in it.
func (d *document) check(p *place, name string, s shape, dr draft) *SchemaError {
	bad := func(what string) *SchemaError {
		return d.fail(p, p.key, name, "'"+name+"' has to be "+what)
	}
	v := p.v
	switch s {
	case aSchema:
		return d.subschema(p, name, dr)
	case schemaOrBool:
		if v.kind == kTrue || v.kind == kFalse {
			return d.scan(p)
		}
		return d.subschema(p, name, dr)
	case schemaOrList:
		if v.kind != kArray {
			return d.subschema(p, name, dr)
		}
		if len(v.items) == 0 && dr == draft4 {
			return bad("a schema or a non-empty array of schemas")
		}
		return d.list(p, name, dr)
	case schemas:
		if v.kind != kArray || len(v.items) == 0 {
			return bad("a non-empty array of schemas")
		}
		return d.list(p, name, dr)
	case schemaMap, patternMap, dependencyMap, namesMap:
		return d.object(p, name, s, dr)
	case aNumber:
		if v.kind != kNumber {
			return bad("a number")
		}
	case positive:
		if v.kind != kNumber || v.sign() <= 0 {
			return bad("a number above zero")
		}
	case aCount:
		if v.kind != kNumber || !v.integer() || v.sign() < 0 {
			return bad("an integer of at least zero")
		}
	case aBool:
		if v.kind != kTrue && v.kind != kFalse {
			if dr == draft4 && v.kind == kNumber {
				return bad("true or false in draft-04; a number needs a later '$schema'")
			}
			return bad("true or false")
		}
		if base := strings.TrimPrefix(name, "exclusive"); base != name {
			base = strings.ToLower(base[:1]) + base[1:]
			if p.parent.v.find(base) < 0 {
				return d.fail(p, p.key, name, "'"+name+"' needs '"+base+"' beside it in draft-04")
			}
		}
	case aString:
		if v.kind != kString {
			return bad("a string")
		}
	case aReference:
		if v.kind != kString {
			return bad("a string")
		}
		if u, err := url.Parse(v.text); err != nil {
			return bad("a URI reference")
		} else if name == "$id" && dr >= draft2019 && u.Fragment != "" {
			return bad("a URI reference without a fragment; '$anchor' names a place")
		}
	case anAnchor:
		if v.kind != kString || !plainName(v.text) {
			return bad("a name that starts with a letter or '_' and goes on with letters, digits, '-', '_' and '.'")
		}
	case names, someNames:
		if !stringList(v) || s == someNames && len(v.items) == 0 {
			return bad("an array of different strings")
		}
	case typeNames:
		return d.types(p)
	case anArray:
		if v.kind != kArray {
			return bad("an array")
		}
	case someValues:
		if v.kind != kArray || len(v.items) == 0 || v.duplicate(always) >= 0 {
			return bad("a non-empty array of different values")
		}
	case aRegex:
		if v.kind != kString {
			return bad("a string")
		}
		return d.regex(p, name, v.text)
	case vocabularyMap:
		if v.kind != kObject {
			return bad("an object of booleans")
		}
		for i := range v.items {
			if k := v.items[i].kind; k != kTrue && k != kFalse {
				return bad("an object of booleans")
			}
		}
	}
	return nil
}

func always() bool { return true }

func (d *document) subschema(p *place, name string, dr draft) *SchemaError {
	switch p.v.kind {
	case kObject:
		return d.scan(p)
	case kTrue, kFalse:
		if dr >= draft6 {
			return d.scan(p)
		}
	}
	what := "an object or a boolean"
	if dr == draft4 {
		what = "an object"
	}
	if name == "items" && p.v.kind == kArray {
		return d.fail(p, p.key, name, "'items' has to be a schema since 2020-12; an array of schemas is 'prefixItems' now, or give an older '$schema'")
	}
	return d.fail(p, p.key, name, "a schema has to be "+what)
}

func (d *document) list(p *place, name string, dr draft) *SchemaError {
	for i := range p.v.items {
		if err := d.subschema(p.item(i), name, dr); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) object(p *place, name string, s shape, dr draft) *SchemaError {
	if p.v.kind != kObject {
		what := "an object whose members are schemas"
		if s == namesMap {
			what = "an object whose members are arrays of strings"
		}
		return d.fail(p, p.key, name, "'"+name+"' has to be "+what)
	}
	for i, member := range p.v.obj.names {
		m := p.member(i)
		isList := m.v.kind == kArray && (s == namesMap || s == dependencyMap)
		switch {
		case s == namesMap && !stringList(m.v), isList && !stringList(m.v),
			isList && dr == draft4 && len(m.v.items) == 0:
			return d.fail(m, m.key, name, "the members of '"+name+"' have to be arrays of different strings")
		case isList:
			continue
		}
		if s == patternMap {
			if err := d.regex(m, name, member); err != nil {
				return err
			}
		}
		if err := d.subschema(m, name, dr); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) types(p *place) *SchemaError {
	known := func(v *value) bool { return v.kind == kString && typeBits[v.text] != 0 }
	if p.v.kind == kArray && len(p.v.items) > 0 {
		for i := range p.v.items {
			if !known(&p.v.items[i]) {
				m := p.item(i)
				return d.fail(m, m.key, "type", "'type' may be null, boolean, integer, number, string, array or object")
			}
		}
		if p.v.duplicate(always) >= 0 {
			return d.fail(p, p.key, "type", "'type' names a type twice")
		}
		return nil
	}
	if !known(p.v) {
		return d.fail(p, p.key, "type", "'type' may be null, boolean, integer, number, string, array or object, or an array of these")
	}
	return nil
}

func (d *document) regex(p *place, name, source string) *SchemaError {
	if _, err := d.pattern(source); err != nil {
		return d.fail(p, p.key, name, "the regular expression of '"+name+"' cannot be used: "+err.Error())
	}
	return nil
}

// pattern compiles an expression once per document.
func (d *document) pattern(source string) (*pattern, error) {
	if re := d.patterns[source]; re != nil {
		return re, nil
	}
	if depth, err := nesting(source); err != nil {
		return nil, err
	} else if d.patternCost += patternCost(source, depth); d.patternCost > maxPatternCost {
		return nil, errors.New("with the others of this schema it is too much; a schema may have about 1,500 different ones")
	}
	re, err := ecmaPattern(source, d.timeout)
	if err != nil {
		return nil, err
	}
	d.patterns[source] = re
	return re, nil
}

func stringList(v *value) bool {
	if v.kind != kArray {
		return false
	}
	for i := range v.items {
		if v.items[i].kind != kString {
			return false
		}
	}
	return v.duplicate(always) < 0
}

func plainName(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c != '-' && c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}

// ordinal is a small number as a pointer token.
func ordinal(i int) string { return strconv.Itoa(i) }
