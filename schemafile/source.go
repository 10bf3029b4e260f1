package schemafile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Root says which JSON values a JSON source may be.
type Root int

const (
	// Object is what a schema file holds.
	Object Root = iota
	// ObjectOrTrue also takes true, as a schema given on a command line may be.
	ObjectOrTrue
)

var bom = []byte("\xEF\xBB\xBF")

// Source returns the text that a file of this kind stands for: without a
// byte-order mark and, for a regular expression, without one trailing newline
// (LF or CRLF); every other byte as it is. It refuses what is empty, not text
// or, for [JSON] and [LLG], no JSON object. The error is an *Error; file is
// only used in it.
func Source(kind Kind, file string, raw []byte, root Root) ([]byte, error) {
	src := bytes.TrimPrefix(raw, bom)
	if err := checkText(file, src); err != nil {
		return nil, err
	}
	if kind == Regex {
		src = trimNewline(src)
	}
	blank := len(src) == 0 || kind != Regex && len(bytes.TrimSpace(src)) == 0
	if blank {
		return nil, &Error{Rule: RuleEmpty, File: file, Msg: "the file is empty", Hint: "write " + wanted(kind) + ", or remove the file to leave answers free"}
	}
	switch kind {
	case LLG:
		root = Object // a grammar is never true
		fallthrough
	case JSON:
		if err := CheckJSON(file, src, root); err != nil {
			return nil, err
		}
	}
	return src, nil
}

func wanted(kind Kind) string {
	switch kind {
	case Regex:
		return "one regular expression"
	case Lark:
		return "a Lark grammar"
	case LLG:
		return "a TopLevelGrammar object"
	}
	return "a JSON Schema object"
}

func trimNewline(src []byte) []byte {
	if s, ok := bytes.CutSuffix(src, []byte("\r\n")); ok {
		return s
	}
	return bytes.TrimSuffix(src, []byte("\n"))
}

// checkText refuses what is not UTF-8. A NUL byte is refused too: engines
// written in C would read the text only up to it.
func checkText(file string, src []byte) error {
	const hint = "save it as UTF-8 text"
	if bytes.HasPrefix(src, []byte{0xFF, 0xFE}) || bytes.HasPrefix(src, []byte{0xFE, 0xFF}) {
		return &Error{Rule: RuleText, File: file, Line: 1, Col: 1, Msg: "the file is UTF-16", Hint: hint}
	}
	bad := func(at int, what string) error {
		line, col := position(src, at)
		return &Error{Rule: RuleText, File: file, Line: line, Col: col, Msg: what, Hint: hint}
	}
	for i := 0; i < len(src); {
		if src[i] < utf8.RuneSelf {
			if src[i] == 0 {
				return bad(i, "the file holds a NUL byte")
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n == 1 {
			return bad(i, fmt.Sprintf("the file is not UTF-8: unexpected byte 0x%02X", src[i]))
		}
		i += n
	}
	return nil
}

// CheckJSON refuses a source that is not one JSON text, or whose root is not
// what root allows; false is refused as unsatisfiable where true is allowed.
// Positions count from the start of source. The error is an *Error.
func CheckJSON(file string, source []byte, root Root) error {
	var text json.RawMessage
	if err := json.Unmarshal(source, &text); err != nil {
		at, msg := len(source), err.Error()
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			msg, at = syntax.Error(), int(syntax.Offset)
			if at == len(source) && strings.HasPrefix(msg, "invalid character ' '") && !bytes.HasSuffix(source, []byte(" ")) {
				msg = "unexpected end of JSON input" // in a literal: the decoder adds a space
			}
			if at > 0 && !strings.HasPrefix(msg, "unexpected end") {
				at-- // Offset counts the byte that is wrong
			}
		}
		line, col := position(source, at)
		return &Error{Rule: RuleJSON, File: file, Line: line, Col: col, Msg: "the JSON does not parse: " + msg, Hint: "correct it there"}
	}
	at := len(source) - len(bytes.TrimLeft(source, " \t\r\n"))
	line, col := position(source, at)
	what := rootName(source[at])
	if source[at] == '{' || root == ObjectOrTrue && what == "true" {
		return nil
	}
	if root == ObjectOrTrue && what == "false" {
		return &Error{Rule: RuleFalse, File: file, Line: line, Col: col, Msg: "the schema false is unsatisfiable: no answer conforms to it", Hint: "write a JSON Schema object, or true"}
	}
	return &Error{Rule: RuleObject, File: file, Line: line, Col: col, Msg: "the JSON is not an object but " + what, Hint: "write an object: { … }"}
}

func rootName(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't':
		return "true"
	case 'f':
		return "false"
	case 'n':
		return "null"
	}
	return "a number"
}

// position turns a byte offset into a line and a column in characters.
func position(src []byte, at int) (line, col int) {
	at = min(at, len(src))
	line = 1 + bytes.Count(src[:at], []byte("\n"))
	start := bytes.LastIndexByte(src[:at], '\n') + 1
	return line, 1 + utf8.RuneCount(src[start:at])
}
