// Package schemafile reads schema files: a file in an agent's system folder
// whose name says how answers are called and which language its text is in,
// and whose text is what every answer conforms to.
//
// # Names
//
//	.schema-<format>.<ext>
//	.schema-<format>.<ext>@<type>
//
// The split is that of ^\.schema-(.+)\.([a-z]+)(?:@([a-z]+))?$. The type is
// one of [JSON], [Regex], [Lark] and [LLG]; without one, only the extension
// json has a meaning. The format may hold {turn} and {timestamp}.
//
// # Refusals
//
// Nothing that looks like a schema file is ever skipped: what cannot be used
// is an [*Error] with the file, the position where there is one, and what to
// change. The one exception is what an editor leaves beside a schema file
// ("x~", "x.swp" …) while that file itself stands there.
//
// # Limits
//
// A source is at most [MaxBytes] long unless the caller says otherwise. The
// package does not compile anything; whether an engine accepts the text is
// decided by the constraint package.
package schemafile

import "strings"

// Prefix begins the name of every schema file.
const Prefix = ".schema-"

// Name is the parsed name of a schema file.
type Name struct {
	Format string // of answers, e.g. "rating" or "out-{timestamp}"
	Ext    string // of answers, without the dot
	Type   Kind   // as spelled after '@'; "" when the name does not say
}

// String prints the name as it stands in the folder.
func (n Name) String() string {
	s := Prefix + n.Format + "." + n.Ext
	if n.Type != "" {
		s += "@" + string(n.Type)
	}
	return s
}

// Kind returns the language of the source: the type where the name says one,
// JSON for the extension json, and "" for a name that Parse refuses.
func (n Name) Kind() Kind {
	if n.Type == "" && n.Ext == string(JSON) {
		return JSON
	}
	return n.Type
}

// Parse reads the name of a schema file (a name, not a path). The error is an
// *Error that names the file and says what to change.
func Parse(name string) (Name, error) {
	n, err := split(name)
	if err != nil {
		return Name{}, err
	}
	if err := checkType(name, n); err != nil {
		return Name{}, err
	}
	if err := checkFormat(name, n); err != nil {
		return Name{}, err
	}
	return n, nil
}

// split cuts a name at its last dot. The extension and the type are letters
// only, so the last dot is the one the pattern of the package comment finds.
func split(name string) (Name, *Error) {
	bad := func(msg, hint string) (Name, *Error) {
		return Name{}, &Error{Rule: RuleName, File: name, Msg: msg, Hint: hint}
	}
	const shape = "name it " + Prefix + "<format>.<ext> or " + Prefix + "<format>.<ext>@<type>"
	rest, ok := strings.CutPrefix(name, Prefix)
	if !ok {
		return bad("the name does not begin with "+Prefix, shape)
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot < 0 {
		return bad("the name has no extension", shape)
	}
	if dot == 0 {
		return bad("the name has no format", shape)
	}
	if strings.Contains(rest[:dot], "\n") {
		// The pattern's dot does not match a line feed.
		return Name{}, &Error{Rule: RuleControl, File: name, Msg: "the name holds a line feed", Hint: "remove it"}
	}
	ext, typ, typed := strings.Cut(rest[dot+1:], "@")
	switch {
	case !lowerLetters(ext):
		return bad("the extension "+quote(ext)+" is not made of the letters a to z", "use a lower-case extension without digits")
	case typed && !lowerLetters(typ):
		return bad("the type "+quote(typ)+" is not made of the letters a to z", "use @json, @regex, @lark or @llg")
	}
	return Name{Format: rest[:dot], Ext: ext, Type: Kind(typ)}, nil
}

func checkType(name string, n Name) error {
	switch n.Type {
	case JSON, Regex, Lark, LLG:
		return nil
	case "":
		if n.Ext == string(JSON) {
			return nil
		}
		return &Error{Rule: RuleNoType, File: name,
			Msg:  "the extension " + quote(n.Ext) + " says no type",
			Hint: "add one of @json, @regex, @lark and @llg, for example " + quote(n.String()+"@regex")}
	}
	return &Error{Rule: RuleType, File: name,
		Msg:  "the type " + quote(string(n.Type)) + " is not known",
		Hint: "use @json, @regex, @lark or @llg"}
}

func lowerLetters(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 'a' || s[i] > 'z' {
			return false
		}
	}
	return s != ""
}
