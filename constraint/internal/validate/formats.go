package validate

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// formats are the values of "format" that can be asserted. Every other one is
// an annotation.
var formats = map[string]func(string) bool{
	"date":                  isDate,
	"time":                  isTime,
	"date-time":             isDateTime,
	"duration":              isDuration,
	"email":                 isEmail,
	"hostname":              isHostname,
	"ipv4":                  isIPv4,
	"ipv6":                  isIPv6,
	"uri":                   func(s string) bool { return isURI(s, true, false) },
	"uri-reference":         func(s string) bool { return isURI(s, false, false) },
	"iri":                   func(s string) bool { return isURI(s, true, true) },
	"iri-reference":         func(s string) bool { return isURI(s, false, true) },
	"uri-template":          isURITemplate,
	"uuid":                  isUUID,
	"regex":                 isRegex,
	"json-pointer":          isPointer,
	"relative-json-pointer": isRelativePointer,
}

// Formats lists the formats that Options.AssertFormats asserts.
func Formats() []string {
	out := make([]string, 0, len(formats))
	for name := range formats {
		out = append(out, name)
	}
	return out
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// fields reads digits at fixed places, as in "2006-01-02"; everything else
// has to be equal. It returns the numbers.
func fields(s, layout string) ([]int, bool) {
	if len(s) != len(layout) {
		return nil, false
	}
	var out []int
	for i := 0; i < len(s); i++ {
		if layout[i] != '0' {
			if s[i] != layout[i] {
				return nil, false
			}
			continue
		}
		if !digit(s[i]) {
			return nil, false
		}
		if i == 0 || layout[i-1] != '0' {
			out = append(out, 0)
		}
		out[len(out)-1] = out[len(out)-1]*10 + int(s[i]-'0')
	}
	return out, true
}

// RFC 3339 full-date.
func isDate(s string) bool {
	f, ok := fields(s, "0000-00-00")
	if !ok || f[1] < 1 || f[1] > 12 || f[2] < 1 {
		return false
	}
	last := time.Date(f[0], time.Month(f[1])+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return f[2] <= last
}

// RFC 3339 full-time; a leap second only where one can be, at 23:59:60 UTC.
func isTime(s string) bool {
	if len(s) < 9 {
		return false
	}
	t, ok := fields(s[:8], "00:00:00")
	if !ok || t[0] > 23 || t[1] > 59 || t[2] > 60 {
		return false
	}
	s = s[8:]
	if s[0] == '.' {
		n := 1
		for n < len(s) && digit(s[n]) {
			n++
		}
		if n == 1 {
			return false
		}
		s = s[n:]
	}
	minutes := t[0]*60 + t[1]
	if s != "Z" && s != "z" {
		if s == "" || s[0] != '+' && s[0] != '-' {
			return false
		}
		z, ok := fields(s[1:], "00:00")
		if !ok || z[0] > 23 || z[1] > 59 {
			return false
		}
		shift := z[0]*60 + z[1]
		if s[0] == '+' {
			shift = -shift
		}
		minutes = (minutes + shift + 24*60) % (24 * 60)
	}
	return t[2] < 60 || minutes == 23*60+59
}

func isDateTime(s string) bool {
	return len(s) > 11 && (s[10] == 'T' || s[10] == 't') && isDate(s[:10]) && isTime(s[11:])
}

// RFC 3339 appendix A, with any of the units left out.
func isDuration(s string) bool {
	s, ok := strings.CutPrefix(s, "P")
	if !ok || s == "" {
		return false
	}
	units := func(s, order string) bool {
		for s != "" {
			n := 0
			for n < len(s) && digit(s[n]) {
				n++
			}
			if n == 0 || n == len(s) {
				return false
			}
			i := strings.IndexByte(order, s[n])
			if i < 0 {
				return false
			}
			order, s = order[i+1:], s[n+1:]
		}
		return true
	}
	if strings.HasSuffix(s, "W") {
		return units(s, "W")
	}
	day, clock, split := strings.Cut(s, "T")
	if split && clock == "" {
		return false
	}
	return units(day, "YMD") && units(clock, "HMS")
}

// RFC 5321 mailbox: a dot-string or a quoted string, and a host or an address
// in brackets.
func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || len(s) > 254 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	if n := len(local); n > 2 && local[0] == '"' && local[n-1] == '"' {
		for i := 1; i < n-1; i++ {
			switch c := local[i]; {
			case c == '\\':
				if i++; i >= n-1 {
					return false
				}
			case c == '"' || c < 0x20 || c > 0x7e:
				return false
			}
		}
	} else {
		for _, atom := range strings.Split(local, ".") {
			if atom == "" {
				return false
			}
			for _, c := range []byte(atom) {
				if !alphanumeric(c) && strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) < 0 {
					return false
				}
			}
		}
	}
	if n := len(domain); n > 2 && domain[0] == '[' && domain[n-1] == ']' {
		literal := domain[1 : n-1]
		if six, ok := strings.CutPrefix(literal, "IPv6:"); ok {
			return isIPv6(six)
		}
		return isIPv4(literal)
	}
	return isHostname(domain)
}

// RFC 1123.
func isHostname(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for _, label := range strings.Split(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if !alphanumeric(c) && c != '-' {
				return false
			}
		}
	}
	return true
}

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if s[i] != '-' {
				return false
			}
		} else if !hexDigit(s[i]) {
			return false
		}
	}
	return true
}

func hexDigit(c byte) bool {
	return digit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isRegex(s string) bool {
	_, err := ecmaPattern(s, DefaultMatchTimeout)
	return err == nil
}

func isPointer(s string) bool {
	_, ok := splitPointer(s)
	return ok
}

func isRelativePointer(s string) bool {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	if n == 0 || n > 1 && s[0] == '0' {
		return false
	}
	return s[n:] == "#" || isPointer(s[n:])
}

// isURI holds a text against RFC 3986, or RFC 3987 for an iri.
func isURI(s string, absolute, iri bool) bool {
	const unreserved, sub = "-._~", "!$&'()*+,;="
	chars := func(s, extra string) bool {
		for i := 0; i < len(s); i++ {
			c := s[i]
			switch {
			case c == '%':
				if i+2 >= len(s) || !hexDigit(s[i+1]) || !hexDigit(s[i+2]) {
					return false
				}
				i += 2
			case c >= 0x80:
				if !iri {
					return false
				}
			case !alphanumeric(c) && strings.IndexByte(unreserved+sub, c) < 0 && strings.IndexByte(extra, c) < 0:
				return false
			}
		}
		return true
	}
	s, fragment, _ := strings.Cut(s, "#")
	s, query, _ := strings.Cut(s, "?")
	if !chars(fragment, ":@/?") || !chars(query, ":@/?") {
		return false
	}
	scheme := false
	if i := strings.IndexAny(s, ":/"); i >= 0 && s[i] == ':' {
		if !isScheme(s[:i]) {
			return false // also of a relative reference: its first segment has no colon
		}
		scheme = true
		s = s[i+1:]
	}
	if absolute && !scheme {
		return false
	}
	rest, ok := strings.CutPrefix(s, "//")
	if !ok {
		return chars(s, ":@/")
	}
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	host := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		if !chars(authority[:i], ":") {
			return false
		}
		host = authority[i+1:]
	}
	port := ""
	if strings.HasPrefix(host, "[") {
		end := strings.IndexByte(host, ']')
		if end < 0 || !isIPv6(host[1:end]) && !isFutureIP(host[1:end]) {
			return false
		}
		if tail := host[end+1:]; tail != "" {
			if tail[0] != ':' {
				return false
			}
			port = tail[1:]
		}
	} else {
		host, port, _ = strings.Cut(host, ":")
		if !chars(host, "") {
			return false
		}
	}
	return strings.Trim(port, "0123456789") == "" && chars(path, ":@/")
}

func isScheme(s string) bool {
	for i, c := range []byte(s) {
		letter := alphanumeric(c) && !digit(c)
		if !letter && (i == 0 || !digit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

func isFutureIP(s string) bool {
	version, rest, ok := strings.Cut(s, ".")
	return ok && len(version) > 1 && (version[0] == 'v' || version[0] == 'V') && rest != "" &&
		!strings.ContainsAny(rest, "[]/?#@ ")
}

// RFC 6570: literals, and expressions in braces.
func isURITemplate(s string) bool {
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			i = len(s)
		}
		for j := 0; j < i; j++ {
			c := s[j]
			if c <= 0x20 || c == 0x7f || strings.IndexByte(`"'<>\^`+"`|", c) >= 0 {
				return false
			}
			if c == '%' && (j+2 >= i || !hexDigit(s[j+1]) || !hexDigit(s[j+2])) {
				return false
			}
		}
		if i == len(s) {
			return true
		}
		if s[i] == '}' {
			return false
		}
		end := strings.IndexByte(s[i:], '}')
		if end < 0 || !isExpression(s[i+1:i+end]) {
			return false
		}
		s = s[i+end+1:]
	}
	return true
}

func isExpression(s string) bool {
	if s != "" && strings.IndexByte("+#./;?&=,!@|", s[0]) >= 0 {
		s = s[1:]
	}
	for _, name := range strings.Split(s, ",") {
		name = strings.TrimSuffix(name, "*")
		if base, prefix, ok := strings.Cut(name, ":"); ok {
			if n, err := strconv.Atoi(prefix); err != nil || n < 1 || n > 9999 {
				return false
			}
			name = base
		}
		if name == "" {
			return false
		}
		for i := 0; i < len(name); i++ {
			c := name[i]
			if c == '%' && i+2 < len(name) && hexDigit(name[i+1]) && hexDigit(name[i+2]) {
				i += 2
			} else if !alphanumeric(c) && c != '_' && c != '.' {
				return false
			}
		}
	}
	return true
}
