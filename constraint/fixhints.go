package constraint

// FixHint is the smallest change that lets a mask hold this part, in words.
func (u Unmasked) FixHint() string {
	if u.Reason == reasonWide || u.Reason == reasonDear {
		return "split the schema, or shorten it: the engine takes about 600 objects, or 200 numbers with bounds, in one"
	}
	if h := fixHints[u.Construct]; h != "" {
		return h
	}
	return "remove '" + u.Construct + "'"
}

// Reasons of relax that are about size and not about the construct.
const (
	reasonWide = "more members than the engine takes"
	reasonDear = "more than the engine takes in one schema"
)

const digitsHint = "write at most 15 digits"

// fixHints are by keyword. Each has a schema before and after in the tests.
var fixHints = map[string]string{
	"oneOf":                 "write anyOf, or give every branch a required member with a const of its own",
	"not":                   "list what is allowed with enum or type, in place of 'not'",
	"if":                    "write anyOf with one branch for each case; the member that decides is a const in each",
	"uniqueItems":           "remove 'uniqueItems', or for a fixed set of values make each a required boolean member",
	"contains":              "remove 'contains', or place the item that must be there with prefixItems and minItems",
	"unevaluatedItems":      "write prefixItems and items in this schema itself, in place of 'unevaluatedItems'",
	"unevaluatedProperties": "write all members under properties of this schema itself, with additionalProperties: false",
	"dependentRequired":     "make the members required, or write anyOf with and without them",
	"dependencies":          "make the members required, or write anyOf with and without them",
	"dependentSchemas":      "write anyOf with one branch where the member is required and one where it is false",
	"propertyNames":         "name the members under properties or patternProperties, with additionalProperties: false",
	"patternProperties":     "write expressions of which no name matches two, without lookaround",
	"minProperties":         "list the members in required, in place of 'minProperties'",
	"maxProperties":         "make every listed member required, or remove 'maxProperties'",
	"pattern":               "write the expression without lookaround, \\b and backreferences",
	"format":                "remove 'format', or write what it means as a pattern",
	"minimum":               digitsHint, "maximum": digitsHint, "exclusiveMinimum": digitsHint, "exclusiveMaximum": digitsHint,
	"multipleOf":  "write a step that is a whole number or a binary fraction such as 0.25, or remove 'multipleOf'",
	"const":       digitsHint,
	"enum":        digitsHint,
	"$dynamicRef": "write $ref to the schema that is meant",
}
