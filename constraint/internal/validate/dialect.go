package validate

import "strings"

// draft is a version of JSON Schema; later ones compare greater.
type draft int

const (
	draft4    draft = 4
	draft6    draft = 6
	draft7    draft = 7
	draft2019 draft = 2019
	draft2020 draft = 2020
)

const never = draft(1 << 20) // as `until`: the keyword is still there

// draftOf maps a "$schema" to its draft, 0 when it is none we know.
func draftOf(uri string) draft {
	uri = strings.TrimSuffix(uri, "#")
	rest, ok := strings.CutPrefix(uri, "https://")
	if !ok {
		rest, _ = strings.CutPrefix(uri, "http://")
	}
	switch rest {
	case "json-schema.org/draft/2020-12/schema", "json-schema.org/schema":
		return draft2020
	case "json-schema.org/draft/2019-09/schema":
		return draft2019
	case "json-schema.org/draft-07/schema":
		return draft7
	case "json-schema.org/draft-06/schema":
		return draft6
	case "json-schema.org/draft-04/schema":
		return draft4
	}
	return 0
}

// idKeyword is the member that names a schema.
func (d draft) idKeyword() string {
	if d == draft4 {
		return "id"
	}
	return "$id"
}

// shape is the form a keyword's value must have.
type shape int

const (
	anything      shape = iota
	aSchema             // an object or a boolean (draft 4: an object)
	schemas             // a non-empty array of schemas
	schemaMap           // an object of schemas
	patternMap          // the same, its names regular expressions
	schemaOrBool        // draft 4's additionalProperties and additionalItems
	schemaOrList        // items before 2020-12
	dependencyMap       // an object of schemas or arrays of names
	namesMap            // an object of arrays of names
	aNumber             //
	positive            // a number above zero
	aCount              // an integer of at least zero
	aBool               //
	aString             //
	aReference          // a URI reference
	names               // an array of different strings
	someNames           // the same, not empty
	typeNames           // one of the seven names, or an array of them
	anArray             //
	someValues          // an array of different values, not empty
	aRegex              // a regular expression
	anAnchor            // a plain name
	vocabularyMap       // an object of booleans
)

// keyword says in which drafts [from, until) a member has which form.
type keyword struct {
	from, until draft
	shape       shape
}

// keywords is the metaschema of every draft we know, keyword by keyword.
var keywords = map[string][]keyword{
	"id":                    {{draft4, draft6, aString}},
	"$id":                   {{draft6, never, aReference}},
	"$schema":               {{draft4, never, aString}},
	"$ref":                  {{draft4, never, aReference}},
	"$anchor":               {{draft2019, never, anAnchor}},
	"$dynamicAnchor":        {{draft2020, never, anAnchor}},
	"$dynamicRef":           {{draft2020, never, aReference}},
	"$recursiveRef":         {{draft2019, draft2020, aReference}},
	"$recursiveAnchor":      {{draft2019, draft2020, aBool}},
	"$vocabulary":           {{draft2019, never, vocabularyMap}},
	"$comment":              {{draft7, never, aString}},
	"$defs":                 {{draft2019, never, schemaMap}},
	"definitions":           {{draft4, never, schemaMap}},
	"title":                 {{draft4, never, aString}},
	"description":           {{draft4, never, aString}},
	"default":               {{draft4, never, anything}},
	"examples":              {{draft6, never, anArray}},
	"readOnly":              {{draft7, never, aBool}},
	"writeOnly":             {{draft7, never, aBool}},
	"deprecated":            {{draft2019, never, aBool}},
	"multipleOf":            {{draft4, never, positive}},
	"maximum":               {{draft4, never, aNumber}},
	"minimum":               {{draft4, never, aNumber}},
	"exclusiveMaximum":      {{draft4, draft6, aBool}, {draft6, never, aNumber}},
	"exclusiveMinimum":      {{draft4, draft6, aBool}, {draft6, never, aNumber}},
	"maxLength":             {{draft4, never, aCount}},
	"minLength":             {{draft4, never, aCount}},
	"pattern":               {{draft4, never, aRegex}},
	"format":                {{draft4, never, aString}},
	"contentMediaType":      {{draft7, never, aString}},
	"contentEncoding":       {{draft7, never, aString}},
	"contentSchema":         {{draft2019, never, aSchema}},
	"items":                 {{draft4, draft2020, schemaOrList}, {draft2020, never, aSchema}},
	"prefixItems":           {{draft2020, never, schemas}},
	"additionalItems":       {{draft4, draft6, schemaOrBool}, {draft6, draft2020, aSchema}},
	"unevaluatedItems":      {{draft2019, never, aSchema}},
	"contains":              {{draft6, never, aSchema}},
	"maxContains":           {{draft2019, never, aCount}},
	"minContains":           {{draft2019, never, aCount}},
	"maxItems":              {{draft4, never, aCount}},
	"minItems":              {{draft4, never, aCount}},
	"uniqueItems":           {{draft4, never, aBool}},
	"maxProperties":         {{draft4, never, aCount}},
	"minProperties":         {{draft4, never, aCount}},
	"required":              {{draft4, draft6, someNames}, {draft6, never, names}},
	"properties":            {{draft4, never, schemaMap}},
	"patternProperties":     {{draft4, draft6, patternMap}, {draft6, never, patternMap}},
	"additionalProperties":  {{draft4, draft6, schemaOrBool}, {draft6, never, aSchema}},
	"unevaluatedProperties": {{draft2019, never, aSchema}},
	"propertyNames":         {{draft6, never, aSchema}},
	"dependencies":          {{draft4, never, dependencyMap}},
	"dependentRequired":     {{draft2019, never, namesMap}},
	"dependentSchemas":      {{draft2019, never, schemaMap}},
	"const":                 {{draft6, never, anything}},
	"enum":                  {{draft4, draft6, someValues}, {draft6, never, anArray}},
	"type":                  {{draft4, never, typeNames}},
	"allOf":                 {{draft4, never, schemas}},
	"anyOf":                 {{draft4, never, schemas}},
	"oneOf":                 {{draft4, never, schemas}},
	"not":                   {{draft4, never, aSchema}},
	"if":                    {{draft7, never, aSchema}},
	"then":                  {{draft7, never, aSchema}},
	"else":                  {{draft7, never, aSchema}},
}

// shapeOf returns the form of a keyword in a draft; ok is false for a name
// that the draft does not know.
func shapeOf(name string, d draft) (shape, bool) {
	for _, k := range keywords[name] {
		if d >= k.from && d < k.until {
			return k.shape, true
		}
	}
	return anything, false
}

// has reports whether a draft knows a keyword.
func (d draft) has(name string) bool {
	_, ok := shapeOf(name, d)
	return ok
}

// typeBits are the values of "type". An integer is also a number.
var typeBits = map[string]uint8{
	"null": 1, "boolean": 2, "number": 4, "integer": 8, "string": 16, "array": 32, "object": 64,
}

// kindBits maps a value's kind to the types it has, integers apart.
var kindBits = [...]uint8{kNull: 1, kFalse: 2, kTrue: 2, kNumber: 4, kString: 16, kArray: 32, kObject: 64}
