package schemafile

// Kind is the language a promise is written in: the part after '@' in a
// schema file's name.
type Kind string

// The four kinds. JSON is the default of a .json file; the others are always
// spelled out.
const (
	JSON  Kind = "json"
	Regex Kind = "regex"
	Lark  Kind = "lark"
	LLG   Kind = "llg"
)
