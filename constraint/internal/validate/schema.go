package validate

import "time"

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	root    *schema
	opt     Options
	timeout time.Duration
	dynamic bool // the dynamic scope matters
}

// schema is one compiled schema object or boolean. Absent bounds are -1.
type schema struct {
	at    *place
	fixed int8 // 1: true, -1: false, 0: an object
	draft draft

	types  uint8
	consts *value
	enum   *enum
	format func(string) bool

	minLength, maxLength int64
	pattern              *pattern
	bounds               []bound
	multipleOf           *value

	minProperties, maxProperties int64
	required                     []string
	props                        map[string]*schema
	propNames                    []string // in the order of the source
	patternProps                 []patternProp
	additional                   *schema
	propertyNames                *schema
	dependents                   map[string]dependent
	dependentNames               []string
	unevaluatedProps             *schema

	minItems, maxItems       int64
	unique                   bool
	prefix                   []*schema
	items                    *schema // for the items after prefix
	contains                 *schema
	minContains, maxContains int64
	unevaluatedItems         *schema

	ref                  *schema
	dynamicRef           *dynamicRef
	allOf, anyOf, oneOf  []*schema
	not                  *schema
	ifs, thens, elses    *schema
	state                uint8 // of the search for cycles
	objectSide, listSide bool  // has keywords for objects, for arrays
}

// bound is one numeric bound.
type bound struct {
	keyword string
	limit   *value
	below   bool // the value may be below the limit
	equal   bool // the value may be the limit
}

type patternProp struct {
	source string
	re     *pattern
	schema *schema
}

// dependent is what a present member asks for: other members and schemas.
type dependent struct {
	required []requirement
	schemas  []*schema
}

// requirement is the list of one keyword, dependentRequired or dependencies.
type requirement struct {
	keyword string
	names   []string
}

// dynamicRef is a reference whose target depends on how it was reached:
// $dynamicRef, and $recursiveRef of 2019-09.
type dynamicRef struct {
	target *schema
	// override is the schema that each resource puts in the target's place;
	// the outermost resource entered so far wins. Nil for a plain reference.
	override map[*resource]*schema
}

// enum is a set of values, found by hash.
type enum struct {
	byHash map[uint64][]*value
}

func newEnum(values []value) *enum {
	e := &enum{make(map[uint64][]*value, len(values))}
	for i := range values {
		h := values[i].sum()
		e.byHash[h] = append(e.byHash[h], &values[i])
	}
	return e
}

func (e *enum) has(v *value, spend func() bool) bool {
	for _, w := range e.byHash[v.sum()] {
		if equal(v, w, spend) {
			return true
		}
	}
	return false
}
