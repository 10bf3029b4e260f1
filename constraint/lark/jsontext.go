package lark

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode"
)

// maxJSONDepth is the depth at which llguidance's JSON reader gives up.
const maxJSONDepth = 127

// json checks that the text at start is JSON as llguidance reads it.
func (b *builder) json(construct string, start Pos, text string) bool {
	at, what := checkJSON(text)
	if what == "" {
		return true
	}
	b.fail(offsetPos(start, text, at), construct, "", "the JSON after %s is malformed: %s", construct, what)
	return false
}

// checkJSON returns the byte offset of the first fault and its description.
func checkJSON(text string) (int, string) {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		var syntax *json.SyntaxError
		var typ *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			return int(syntax.Offset) - 1, syntax.Error()
		case errors.As(err, &typ):
			return int(typ.Offset) - 1, "a number is too large"
		}
		return 0, err.Error()
	}
	if i := loneSurrogate(text); i >= 0 {
		return i, "half of a surrogate pair is not a character"
	}
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxJSONDepth {
				return i, "it is nested more than " + strconv.Itoa(maxJSONDepth) + " deep"
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return 0, ""
}

// loneSurrogate finds a \uD8xx–\uDFxx escape without its other half, or
// returns −1.
func loneSurrogate(s string) int {
	unit := func(i int) uint64 {
		if i+6 > len(s) || s[i] != '\\' || s[i+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(s[i+2:i+6], 16, 16)
		return n
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		switch u := unit(i); {
		case u >= 0xDC00 && u <= 0xDFFF:
			return i
		case u >= 0xD800 && u <= 0xDBFF:
			if low := unit(i + 6); low < 0xDC00 || low > 0xDFFF {
				return i
			}
			i += 11
		default:
			i++
		}
	}
	return -1
}

// options checks %llguidance { … }: llguidance ignores a key it does not
// know, and a misspelt option is then silently off.
func (b *builder) options(pos Pos, it *pItem) {
	text := *it.Options
	start := b.blockStart(it.Pos, text)
	if !b.json(cOptions, start, text) {
		return
	}
	dec := json.NewDecoder(strings.NewReader(text))
	_, _ = dec.Token() // {
	for dec.More() {
		key, _ := dec.Token()
		name := key.(string)
		end := int(dec.InputOffset())
		at := offsetPos(start, text, strings.LastIndexByte(text[:end-1], '"'))
		var v any
		_ = dec.Decode(&v)
		var s Settings
		if s.set(name, true) == nil {
			b.fail(at, cOptions, "the options are allow_initial_skip, allow_invalid_utf8, ignore_once and no_forcing",
				"%%llguidance has no option %q", short(name))
		} else if _, ok := v.(bool); !ok {
			b.fail(at, cOptions, "write true or false", "the option %s is not a boolean", name)
		}
	}
}

// set sets the named option and returns nil when there is none.
func (s *Settings) set(name string, on bool) *bool {
	var p *bool
	switch name {
	case "no_forcing":
		p = &s.NoForcing
	case "allow_invalid_utf8":
		p = &s.AllowInvalidUTF8
	case "allow_initial_skip":
		p = &s.AllowInitialSkip
	case "ignore_once":
		p = &s.IgnoreOnce
	default:
		return nil
	}
	*p = on
	return p
}

// merge puts the options of one %llguidance line over those before it.
func (s *Settings) merge(source string) {
	var m map[string]bool
	if json.Unmarshal([]byte(source), &m) == nil {
		for name, on := range m {
			s.set(name, on)
		}
	}
}

// extKinds are the fields of %regex.
const extKinds = `"substring_words", "substring_chars" or "substring_chunks"`

// regexExt checks %regex { … }.
func (b *builder) regexExt(pos, start Pos, text string) {
	if !b.json(cRegexExt, start, text) {
		return
	}
	if _, what := readExt(text); what != "" {
		b.fail(pos, cRegexExt, "write one of "+extKinds, "%s", what)
	}
}

// readExt reads %regex { … } and returns the chunks whose rows, from any
// chunk to any chunk, are the texts it stands for.
func readExt(text string) ([]string, string) {
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &m) != nil {
		return nil, "%regex takes a JSON object"
	}
	var chunks []string
	found := ""
	for key, raw := range m {
		switch key {
		case "substring_words", "substring_chars", "substring_chunks":
		default:
			return nil, "%regex has no field " + strconv.Quote(short(key))
		}
		if string(raw) == "null" {
			continue
		}
		if found != "" {
			return nil, "%regex takes one field only"
		}
		found = key
		if key == "substring_chunks" {
			var list []*string
			if json.Unmarshal(raw, &list) != nil {
				return nil, key + " is a list of strings"
			}
			for _, s := range list {
				if s == nil {
					return nil, key + " is a list of strings"
				}
				chunks = append(chunks, *s)
			}
			continue
		}
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil, key + " is a string"
		}
		if key == "substring_chars" {
			for _, r := range s {
				chunks = append(chunks, string(r))
			}
		} else {
			chunks = words(s)
		}
	}
	if found == "" {
		return nil, "%regex has no field"
	}
	return chunks, ""
}

// words splits s where white space, words and other characters meet.
func words(s string) []string {
	kind := func(r rune) int {
		switch {
		case unicode.IsSpace(r):
			return 0
		case r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Other_Alphabetic, r):
			return 1
		}
		return 2
	}
	var out []string
	start, last := 0, -1
	for i, r := range s {
		if k := kind(r); k != last {
			if i > start {
				out = append(out, s[start:i])
			}
			start, last = i, k
		}
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}
