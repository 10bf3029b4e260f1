package validate

import (
	"errors"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// Bounds on one regular expression.
const (
	maxPatternBytes = 1 << 16
	maxGroups       = 100     // nesting
	matchStack      = 2 << 20 // slots of the matcher's stack, 8 bytes each
)

// maxPatternCost bounds what all expressions of one schema may take to
// compile, in bytes of memory (see patternCost); about 1,500 plain ones.
const maxPatternCost = 24 << 20

// patternCost estimates the memory that compiling takes: regexp2 needs the
// cube of the nesting for repeated groups.
func patternCost(source string, depth int) int {
	return 16<<10 + 32*len(source) + 6*depth*depth*depth
}

// pattern is a compiled regular expression.
type pattern struct{ re *regexp2.Regexp }

// match reports whether the pattern is found in text. An error means that the
// time or the stack ran out.
func (p *pattern) match(text string) (bool, error) { return p.re.MatchString(text) }

// ecmaPattern compiles a JSON Schema pattern: ECMA-262 over code points. The
// reading with the "u" flag comes first; an expression that only the older
// reading allows, such as a lone brace, has that one.
func ecmaPattern(source string, timeout time.Duration) (*pattern, error) {
	if _, err := nesting(source); err != nil {
		return nil, err
	}
	re, err := regexp2.Compile(dropEscapes(source), regexp2.ECMAScript, regexp2.Unicode, regexp2.OptionMaxBacktrackingStackSize(matchStack))
	if err != nil && !needsUnicode(source) {
		old, oldErr := regexp2.Compile(strings.ReplaceAll(source, `[\-`, `[\x2d`), regexp2.ECMAScript, regexp2.OptionMaxBacktrackingStackSize(matchStack))
		if oldErr == nil {
			re, err = old, nil
		}
	}
	if err != nil {
		return nil, errors.New(reason(err))
	}
	re.MatchTimeout = timeout
	return &pattern{re}, nil
}

// reason is an engine's complaint without its name and the expression.
func reason(err error) string {
	msg := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	if i := strings.LastIndex(msg, " in `"); i > 0 {
		msg = msg[:i]
	}
	return msg
}

// nesting returns how deep groups are nested, and refuses what is too large
// for a regular expression.
func nesting(source string) (deepest int, err error) {
	if len(source) > maxPatternBytes {
		return 0, errors.New("it is longer than 65,536 bytes")
	}
	depth, class := 0, false
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
			if deepest = max(deepest, depth); deepest > maxGroups {
				return 0, errors.New("its groups are nested deeper than 100 levels")
			}
		case c == ')':
			depth--
		}
	}
	return deepest, nil
}

// dropEscapes takes the backslash off characters that need none and that the
// strict reading refuses to see escaped, as in "\!" or "\_".
func dropEscapes(source string) string {
	if !strings.Contains(source, `\`) {
		return source
	}
	var b strings.Builder
	class := false
	for i := 0; i < len(source); i++ {
		c := source[i]
		if c == '\\' && i+1 < len(source) {
			i++
			if class && source[i] == '-' {
				b.WriteString(`\x2d`) // regexp2 does not take "\-" as the start of a range
				continue
			}
			if n := source[i]; n < 0x80 && !alphanumeric(n) && !strings.ContainsRune(`^$\.*+?()[]{}|/`, rune(n)) {
				b.WriteByte(n)
				continue
			}
			b.WriteByte('\\')
			b.WriteByte(source[i])
			continue
		}
		if c == '[' {
			class = true
		} else if c == ']' {
			class = false
		}
		b.WriteByte(c)
	}
	return b.String()
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// needsUnicode reports an escape that means something else in the older
// reading.
func needsUnicode(source string) bool {
	for i := 0; i+1 < len(source); i++ {
		if source[i] != '\\' {
			continue
		}
		i++
		switch source[i] {
		case 'p', 'P':
			return true
		case 'u':
			if i+1 < len(source) && source[i+1] == '{' {
				return true
			}
		}
	}
	return false
}
