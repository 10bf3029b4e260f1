package schemafile

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The most a file name may have on every file system we meet.
const maxName = 255

// Digits that a name is measured with: every plain format that itself fits
// into a schema file's name then fits too, up to ten million answers.
const (
	turnDigits      = 7
	timestampDigits = 13 // epoch milliseconds until the year 2286
)

const (
	turnVar      = "{turn}"
	timestampVar = "{timestamp}"
)

// checkFormat refuses formats whose answers could not be stored everywhere,
// or would be hidden.
func checkFormat(name string, n Name) error {
	refuse := func(rule Rule, hint, msg string, args ...any) error {
		return &Error{Rule: rule, File: name, Msg: fmt.Sprintf(msg, args...), Hint: hint}
	}
	f := n.Format
	if !utf8.ValidString(f) {
		return refuse(RuleName, "rename the file", "the name is not UTF-8")
	}
	for _, r := range f {
		switch {
		case unicode.IsControl(r):
			return refuse(RuleControl, "remove it", "the format holds the control character %U", r)
		case r == '/' || r == '\\':
			return refuse(RuleSlash, "answers always go to the agent's output folder; use '-' or '_'", "the format holds the path separator '%c'", r)
		}
	}
	if v, ok := unknownVariable(f); ok {
		return refuse(RuleVariable, "use "+turnVar+" or "+timestampVar+", and no other braces", "the format holds %s, which is no variable", quote(v))
	}
	if f[0] == '.' {
		return refuse(RuleDotfile, "begin the format with something other than a dot", "answers would be dotfiles, which are hidden and are not inputs of other agents")
	}
	if stem, ok := reserved(f); ok {
		return refuse(RuleReserved, "choose another format", "Windows reserves the name %s for a device", quote(stem))
	}
	if l := nameLength(n); l > maxName {
		return refuse(RuleLong, "shorten the format", "answers would have names of %d bytes; file systems take %d", l, maxName)
	}
	return nil
}

// nameLength is the length of an answer's name with numbers of usual size.
func nameLength(n Name) int {
	turns, stamps := strings.Count(n.Format, turnVar), strings.Count(n.Format, timestampVar)
	l := len(n.Format) - turns*len(turnVar) - stamps*len(timestampVar)
	l += turns*turnDigits + stamps*timestampDigits
	if turns+stamps == 0 {
		l += 1 + turnDigits // "_<turn>"
	}
	return l + 1 + len(n.Ext)
}

// unknownVariable returns the first brace that is not part of a variable,
// with the text up to its partner.
func unknownVariable(format string) (string, bool) {
	rest := strings.NewReplacer(turnVar, "\x00", timestampVar, "\x00").Replace(format)
	open := strings.IndexAny(rest, "{}")
	if open < 0 {
		return "", false
	}
	if rest[open] == '{' {
		if end := strings.IndexAny(rest[open+1:], "{}\x00"); end >= 0 && rest[open+1+end] == '}' {
			return rest[open : open+end+2], true
		}
	}
	return rest[open : open+1], true
}

// reserved reports a format whose part before the first dot names a device on
// Windows, also when the number of a turn would complete it (com{turn}).
func reserved(format string) (string, bool) {
	stem, _, _ := strings.Cut(format, ".")
	stem = strings.TrimRight(stem, " ")
	plain := strings.ToUpper(strings.ReplaceAll(stem, turnVar, "1"))
	switch plain {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return stem, true
	}
	if port, ok := strings.CutPrefix(plain, "COM"); ok && portNumber(port) {
		return stem, true
	}
	if port, ok := strings.CutPrefix(plain, "LPT"); ok && portNumber(port) {
		return stem, true
	}
	return "", false
}

func portNumber(s string) bool {
	switch s {
	case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³":
		return true
	}
	return false
}
