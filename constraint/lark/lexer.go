package lark

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2/lexer"
)

// The token rules are those of llguidance. Its lexer takes the longest match
// and never steps back; this one takes the first rule that matches, so the
// order below puts the longer first, and the Bad… rules catch what llguidance
// would have begun and not finished. Names in lower case are dropped.
var tokenRules = lexer.MustStateful(lexer.Rules{
	"Root": {
		{Name: "comment", Pattern: `(?:#|//)[^\n]*`},
		{Name: "space", Pattern: `[ \t]+`},
		{Name: "Newline", Pattern: `(?:\r?\n)+[ \t]*`},
		{Name: "RuleName", Pattern: `!?[_?]?[a-z][_a-z0-9\-]*`},
		{Name: "TermName", Pattern: `_?[A-Z][_A-Z0-9\-]*`},
		{Name: "String", Pattern: `"(?:\\(?:["\\/bfnrt]|u[a-fA-F0-9]{4}|x[a-fA-F0-9]{2})|[^"\\\x00-\x1F\x7F])*"i?`},
		{Name: "BadString", Pattern: `"`},
		{Name: "Regexp", Pattern: `/(?:\\.|[^/\\])+/[imslux]*`},
		{Name: "BadRegexp", Pattern: `/`},
		{Name: "SpecialToken", Pattern: `<[^<>\s\x0B\x{85}\p{Z}]+>`},
		{Name: "BadSpecial", Pattern: `<`},
		{Name: "GrammarRef", Pattern: `@[a-zA-Z0-9_\-]+`},
		{Name: "JSON", Pattern: `%json[ \t\r\n]*\{`, Action: lexer.Push("Block")},
		{Name: "AnyJSON", Pattern: `%json[ \t\r\n]*(?:true|false)`},
		{Name: "Regex", Pattern: `%regex[ \t\r\n]*\{`, Action: lexer.Push("Block")},
		{Name: "Options", Pattern: `%llguidance[ \t\r\n]*\{`, Action: lexer.Push("Block")},
		{Name: "Keyword", Pattern: `%(?:ignore|import|override|declare|lark|if)`},
		{Name: "BadKeyword", Pattern: `%[a-zA-Z_]*`},
		{Name: "Hex", Pattern: `0[xX][0-9a-fA-F]+`},
		{Name: "BadHex", Pattern: `0[xX]`},
		{Name: "NumberE", Pattern: `[+-]?[0-9]+(?:\.[0-9]*)?[eE][+-]?[0-9]+`},
		{Name: "BadNumber", Pattern: `[+-]?[0-9]+(?:\.[0-9]*)?[eE][+-]?`},
		{Name: "Number", Pattern: `[+-]?[0-9]+(?:\.[0-9]*)?`},
		{Name: "Op", Pattern: `[+*?]`},
		{Name: "Punct", Pattern: `->|::|\.\.|[:=,.(){}\[\]~|&_]`},
		{Name: "SingleQuote", Pattern: `'`},
		{Name: "Other", Pattern: `(?s:.)`},
	},
	// Block is a JSON value; the push and pop find where it ends, the JSON
	// itself is checked by checkJSON.
	"Block": {
		{Name: "BlockOpen", Pattern: `[{\[]`, Action: lexer.Push("Block")},
		{Name: "BlockClose", Pattern: `[}\]]`, Action: lexer.Pop()},
		{Name: "BlockString", Pattern: `"(?:[^"\\]|\\(?s:.))*"`},
		{Name: "BlockText", Pattern: `[^{}\[\]"]+`},
		{Name: "BlockQuote", Pattern: `"`},
	},
})

var symbols = tokenRules.Symbols()

// tokens is a source split into tokens. bad holds, by index, what is wrong
// with a token that no rule of the syntax takes, so that the parser stops
// there and the error can be told in the order of the source.
type tokens struct {
	list []lexer.Token
	bad  map[int]*Error
	next int
	// mixed holds, by position, words that the token rules split because they
	// mix upper and lower case; only used in hints.
	mixed map[Pos]string
}

// Next makes tokens a lexer.Lexer, without splitting anything twice.
func (t *tokens) Next() (lexer.Token, error) {
	if t.next < len(t.list) {
		t.next++
	}
	return t.list[t.next-1], nil
}

func posOf(p lexer.Position) Pos { return Pos{p.Line, p.Column} }

// split turns src into tokens. It never fails: what is wrong is in bad.
func split(src string) *tokens {
	out := &tokens{bad: map[int]*Error{}, mixed: map[Pos]string{}}
	// llguidance adds a line end too: the last rule needs one.
	lex, err := tokenRules.LexString("", src+"\n")
	if err != nil {
		panic(err) // only on a nil reader
	}
	for {
		tok, err := lex.Next()
		if err != nil {
			// Every state has a rule for every character but the end of the
			// text, so this cannot happen; keep it an error all the same.
			tok = lexer.Token{Type: symbols["Other"], Pos: lexer.Position{Line: 1, Column: 1}}
			out.bad[len(out.list)] = errAt(Pos{1, 1}, cSyntax, "", "cannot be read: %v", err)
			out.list = append(out.list, tok, lexer.EOFToken(tok.Pos))
			return out
		}
		i := len(out.list)
		switch tok.Type {
		case symbols["JSON"], symbols["Regex"], symbols["Options"]:
			tok = out.block(lex, src, tok)
		case symbols["AnyJSON"]:
			tok.Type = symbols["JSON"]
			tok.Value = strings.TrimLeft(tok.Value[len("%json"):], " \t\r\n")
		case symbols["Punct"]:
			if tok.Value == "." && out.splitRange(tok) {
				continue
			}
		case symbols["RuleName"], symbols["TermName"]:
			if i > 0 {
				out.joinWord(src, out.list[i-1], tok)
			}
		case symbols["BadString"], symbols["BadRegexp"], symbols["BadSpecial"], symbols["BadKeyword"],
			symbols["BadHex"], symbols["BadNumber"], symbols["SingleQuote"], symbols["Other"]:
			// The parser cannot get past it: what follows does not matter.
			out.bad[i] = badToken(src, tok)
			out.list = append(out.list, tok, lexer.EOFToken(tok.Pos))
			return out
		}
		out.list = append(out.list, tok)
		if tok.EOF() {
			return out
		}
	}
}

// block reads up to the brace that closes a JSON block and returns one token
// whose value is the JSON text.
func (t *tokens) block(lex lexer.Lexer, src string, open lexer.Token) lexer.Token {
	start := open.Pos.Offset + len(open.Value) - 1
	name := strings.TrimRight(open.Value, " \t\r\n{")
	depth := 1
	for depth > 0 {
		tok, err := lex.Next()
		if err != nil || tok.EOF() || tok.Type == symbols["BlockQuote"] {
			what := "the { after " + name + " is never closed"
			hint := "close it with }"
			if err == nil && tok.Type == symbols["BlockQuote"] {
				what, hint = "a string in the JSON after "+name+" is never closed", `close it with "`
				open.Pos = tok.Pos
			}
			t.bad[len(t.list)] = errAt(posOf(open.Pos), name, hint, "%s", what)
			t.list = append(t.list, lexer.Token{Type: symbols["Other"], Pos: open.Pos})
			return lexer.EOFToken(tok.Pos)
		}
		switch tok.Type {
		case symbols["BlockOpen"]:
			depth++
		case symbols["BlockClose"]:
			if depth--; depth == 0 {
				open.Value = src[start : tok.Pos.Offset+1]
			}
		}
	}
	return open
}

// splitRange undoes "~1..2" being read as "1." and ".": only after a tilde,
// as llguidance has it.
func (t *tokens) splitRange(dot lexer.Token) bool {
	n := len(t.list)
	if n < 2 || t.list[n-1].Type != symbols["Number"] || t.list[n-2].Value != "~" {
		return false
	}
	num := &t.list[n-1]
	digits, ok := strings.CutSuffix(num.Value, ".")
	if !ok || num.Pos.Offset+len(num.Value) != dot.Pos.Offset {
		return false
	}
	num.Value = digits
	dot.Value = ".."
	dot.Pos.Offset--
	dot.Pos.Column--
	t.list = append(t.list, dot)
	return true
}

// joinWord remembers a word like "MyRule" that was split into names.
func (t *tokens) joinWord(src string, prev, tok lexer.Token) {
	if prev.Type != symbols["RuleName"] && prev.Type != symbols["TermName"] ||
		prev.Pos.Offset+len(prev.Value) != tok.Pos.Offset {
		return
	}
	isWord := func(b byte) bool {
		return b == '_' || b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
	}
	from, to := prev.Pos.Offset, tok.Pos.Offset
	for from > 0 && isWord(src[from-1]) && tok.Pos.Offset-from < 40 {
		from--
	}
	for to < len(src) && isWord(src[to]) && to-from < 80 {
		to++
	}
	if strings.ContainsAny(tok.Value[:1], "?!") {
		return
	}
	t.mixed[posOf(prev.Pos)] = src[from:to]
	t.mixed[posOf(tok.Pos)] = src[from:to]
}

// badToken says what is wrong with a token that begins something and does
// not end it, or is nothing at all.
func badToken(src string, tok lexer.Token) *Error {
	p := posOf(tok.Pos)
	rest := src[min(tok.Pos.Offset, len(src)):]
	line, _, _ := strings.Cut(rest, "\n")
	switch tok.Type {
	case symbols["BadString"]:
		return badString(p, line)
	case symbols["BadRegexp"]:
		if strings.Contains(rest[1:], "/") {
			return errAt(p, cRegex, `write \/ for a slash and \\ for a backslash inside it`, "the regular expression is not closed where it seems to be")
		}
		return errAt(p, cRegex, "close it with /", "the regular expression that begins here is never closed")
	case symbols["BadSpecial"]:
		return errAt(p, cSpecial, `write <name> without spaces, or "<" for the character`, "< does not begin a special token")
	case symbols["BadKeyword"]:
		return badKeyword(p, tok.Value)
	case symbols["BadHex"]:
		return errAt(p, cSyntax, "write hexadecimal digits after 0x", "%s is not a number", tok.Value)
	case symbols["BadNumber"]:
		return errAt(p, cSyntax, "write digits after the exponent", "%s is not a number", tok.Value)
	case symbols["SingleQuote"]:
		text := line[1:]
		if i := strings.IndexByte(text, '\''); i >= 0 {
			text = text[:i]
		}
		return errAt(p, cQuote, fmt.Sprintf(`write "%s"`, short(text)), "strings in single quotes are not supported")
	}
	r, _ := utf8.DecodeRuneInString(tok.Value)
	if r < ' ' || r == 0x7f || r == unicode.ReplacementChar || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
		return errAt(p, cSyntax, "remove it", "the character U+%04X has no meaning here", r)
	}
	switch r {
	case '@':
		return errAt(p, cGrammar, "write @name", "@ does not begin a grammar reference")
	case '-':
		return errAt(p, cSyntax, "write -> before an alias, and a digit after a minus sign", "- has no meaning here")
	}
	return errAt(p, cSyntax, "", "the character %q has no meaning here", string(r))
}

func badKeyword(p Pos, word string) *Error {
	switch word {
	case "%json", "%regex", "%llguidance":
		return errAt(p, word, "write "+word+" { … }", "%s takes a JSON object", word)
	case "%":
		return errAt(p, cSyntax, "", "%s has no meaning here", word)
	}
	return errAt(p, cSyntax, "the directives are %ignore, %import, %json, %lark, %llguidance and %regex",
		"%s is not a directive", word)
}

// badString finds why the string that begins line is not one.
func badString(p Pos, line string) *Error {
	line = strings.TrimSuffix(line, "\r")
	at := p
	for i := 1; i < len(line); {
		r, n := utf8.DecodeRuneInString(line[i:])
		at.Col++
		switch {
		case r == '\\' && i+1 == len(line):
			return errAt(at, cString, `write \n for a line end`, "a string ends on its line")
		case r == '\\':
			next, m := utf8.DecodeRuneInString(line[i+1:])
			if !validEscape(line[i+1:]) {
				return errAt(at, cString, `the escapes are \" \\ \/ \b \f \n \r \t \xHH and \uHHHH`, `\%c is not an escape of a string`, next)
			}
			n += m
			at.Col++
		case r < ' ' || r == 0x7f:
			return errAt(at, cString, fmt.Sprintf(`write \u%04x`, r), "the control character U+%04X cannot stand in a string", r)
		}
		i += n
	}
	return errAt(p, cString, `close it with " on the same line`, "the string that begins here is never closed")
}

func validEscape(s string) bool {
	hex := func(n int) bool {
		if len(s) < n+1 {
			return false
		}
		for _, c := range s[1 : n+1] {
			if !strings.ContainsRune("0123456789abcdefABCDEF", c) {
				return false
			}
		}
		return true
	}
	switch s[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		return hex(4)
	case 'x':
		return hex(2)
	}
	return false
}

// clean drops a byte-order mark and refuses what is not a grammar text at
// all.
func clean(src []byte) (string, *Error) {
	src = bytes.TrimPrefix(src, []byte("\uFEFF"))
	if len(src) > MaxSize {
		return "", errAt(Pos{1, 1}, cSize, "make it smaller", "the grammar has %d bytes and the limit is %d", len(src), MaxSize)
	}
	if !utf8.Valid(src) {
		p := Pos{1, 1}
		for i := 0; i < len(src); {
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n == 1 {
				return "", errAt(p, cEncoding, "save the file as UTF-8", "the byte 0x%02X is not UTF-8", src[i])
			}
			if p.Col++; r == '\n' {
				p = Pos{p.Line + 1, 1}
			}
			i += n
		}
	}
	s := string(src)
	trimmed := strings.TrimLeft(s, " \t\r\n")
	if strings.HasPrefix(trimmed, "{") {
		p := Pos{1, 1}
		for _, r := range s[:len(s)-len(trimmed)] {
			if p.Col++; r == '\n' {
				p = Pos{p.Line + 1, 1}
			}
		}
		return "", errAt(p, cJSONText, "name a file that holds a raw llguidance grammar @llg, or start with a rule", "a Lark grammar does not begin with {, JSON does")
	}
	return s, nil
}
