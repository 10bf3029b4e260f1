package output

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxName is the most bytes a file name may have.
const maxName = 255

// usualStamp is the number of digits of epoch milliseconds from 2001 to 2286.
const usualStamp = 13

type segment struct {
	text string
	kind segmentKind
}

type segmentKind uint8

const (
	literal segmentKind = iota
	turnNumber
	timestamp
)

// Pattern says how answers are called. The zero Pattern matches nothing.
type Pattern struct {
	key           string // what it was made from, for String and as a map key
	segments      []segment
	turns, stamps int // how often each variable occurs
	literals      int // bytes of the rest
}

// Default is the pattern of answers without a schema file.
var Default = mustPattern("out-{timestamp}", "txt")

// NewPattern makes the pattern of a schema file's format and extension. A
// format without a variable stands for <format>_{turn}.
func NewPattern(format, ext string) (Pattern, error) {
	refuse := func(why string) (Pattern, error) {
		return Pattern{}, fmt.Errorf("pattern %q: %s", format+"."+ext, why)
	}
	switch {
	case format == "" || ext == "":
		return refuse("the format or the extension is empty; give both")
	case format[0] == '.':
		return refuse("answers would be dotfiles; begin the format with something else")
	case !utf8.ValidString(format + ext):
		return refuse("it is not UTF-8; rename it")
	case strings.ContainsAny(format+ext, `/\`):
		return refuse("it holds a path separator; remove it")
	case strings.ContainsFunc(format+ext, unicode.IsControl):
		return refuse("it holds a control character; remove it")
	}
	p := Pattern{key: format + "." + ext}
	for rest := format; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			p.add(segment{text: rest})
			break
		}
		p.add(segment{text: rest[:open]})
		rest = rest[open:]
		if r, ok := strings.CutPrefix(rest, "{turn}"); ok {
			p.add(segment{kind: turnNumber})
			rest = r
		} else if r, ok := strings.CutPrefix(rest, "{timestamp}"); ok {
			p.add(segment{kind: timestamp})
			rest = r
		} else {
			return refuse("only {turn} and {timestamp} may stand in braces")
		}
	}
	if p.turns+p.stamps == 0 {
		p.add(segment{text: "_"})
		p.add(segment{kind: turnNumber})
	}
	p.add(segment{text: "." + ext})
	return p, nil
}

func mustPattern(format, ext string) Pattern {
	p, err := NewPattern(format, ext)
	if err != nil {
		panic(err)
	}
	return p
}

func (p *Pattern) add(s segment) {
	switch s.kind {
	case turnNumber:
		p.turns++
	case timestamp:
		p.stamps++
	default:
		if s.text == "" {
			return
		}
		p.literals += len(s.text)
	}
	p.segments = append(p.segments, s)
}

// String shows the pattern with its variables, e.g. "rating_{turn}.json".
func (p Pattern) String() string {
	var b strings.Builder
	for _, s := range p.segments {
		switch s.kind {
		case turnNumber:
			b.WriteString("{turn}")
		case timestamp:
			b.WriteString("{timestamp}")
		default:
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// Numbered reports whether answers carry the number of their turn.
func (p Pattern) Numbered() bool { return p.turns > 0 }

// Name is the name of the answer of a turn that started to generate at the
// time started.
func (p Pattern) Name(turn uint64, started time.Time) string {
	return p.name(turn, milliseconds(started))
}

func (p Pattern) name(turn uint64, ms int64) string {
	b := make([]byte, 0, p.literals+p.turns*2+p.stamps*usualStamp+8)
	for _, s := range p.segments {
		switch s.kind {
		case turnNumber:
			b = strconv.AppendUint(b, turn, 10)
		case timestamp:
			b = strconv.AppendInt(b, ms, 10)
		default:
			b = append(b, s.text...)
		}
	}
	return string(b)
}

// milliseconds since the Unix epoch; a clock before it counts as the epoch.
func milliseconds(t time.Time) int64 { return max(t.UnixMilli(), 0) }

// Match reports whether the whole name is one that the pattern gives.
func (p Pattern) Match(name string) bool {
	_, _, ok := p.parse(name)
	return ok
}

// Turn returns the number of the turn in a name that matches; ok is false for
// other names and for a pattern without {turn}. Numbers with leading zeros or
// above the largest uint64 are not numbers of turns.
func (p Pattern) Turn(name string) (n uint64, ok bool) {
	n, _, ok = p.parse(name)
	return n, ok && p.turns > 0
}

// Timestamp returns the time in a name that matches; ok is false for other
// names and for a pattern without {timestamp}.
func (p Pattern) Timestamp(name string) (started time.Time, ok bool) {
	_, ms, ok := p.parse(name)
	return time.UnixMilli(ms), ok && p.stamps > 0
}

// parse reads the numbers in a name. As a variable stands for the same digits
// wherever it occurs, the lengths of the two numbers decide every split. With
// both variables several lengths may fit ({turn}{timestamp}): timestamps of
// the usual length come first, then longer ones, then shorter ones.
func (p Pattern) parse(name string) (turn uint64, ms int64, ok bool) {
	digits := len(name) - p.literals
	switch {
	case len(p.segments) == 0 || digits < p.turns+p.stamps:
		return 0, 0, false
	case p.segments[0].kind == literal && !strings.HasPrefix(name, p.segments[0].text):
		return 0, 0, false
	case p.stamps == 0:
		if digits%p.turns != 0 {
			return 0, 0, false
		}
		return p.read(name, digits/p.turns, 0)
	}
	try := func(stamp int) bool {
		rest := digits - p.stamps*stamp
		if p.turns == 0 && rest == 0 {
			turn, ms, ok = p.read(name, 0, stamp)
		} else if p.turns > 0 && rest >= p.turns && rest%p.turns == 0 {
			turn, ms, ok = p.read(name, rest/p.turns, stamp)
		}
		return ok
	}
	for stamp := usualStamp; stamp <= 19; stamp++ {
		if try(stamp) {
			return
		}
	}
	for stamp := usualStamp - 1; stamp >= 1; stamp-- {
		if try(stamp) {
			return
		}
	}
	return 0, 0, false
}

// read matches name with numbers of the given lengths.
func (p Pattern) read(name string, turnLen, stampLen int) (uint64, int64, bool) {
	if turnLen > 20 || stampLen > 19 {
		return 0, 0, false
	}
	var turnText, stampText string
	rest := name
	for _, s := range p.segments {
		want, n := s.text, len(s.text)
		switch s.kind {
		case turnNumber:
			want, n = turnText, turnLen
		case timestamp:
			want, n = stampText, stampLen
		}
		if len(rest) < n || want != "" && rest[:n] != want {
			return 0, 0, false
		}
		switch s.kind {
		case turnNumber:
			turnText = rest[:n]
		case timestamp:
			stampText = rest[:n]
		}
		rest = rest[n:]
	}
	turn, ok1 := number(turnText, math.MaxUint64)
	ms, ok2 := number(stampText, math.MaxInt64)
	return turn, int64(ms), rest == "" && (ok1 || p.turns == 0) && (ok2 || p.stamps == 0)
}

// number reads decimal digits without leading zeros.
func number(s string, most uint64) (uint64, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n <= most
}
