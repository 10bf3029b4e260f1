package relax

import (
	"math"
	"strconv"
	"strings"
)

// decimal is the exact value of a number: 0.digits × 10^exp.
type decimal struct {
	neg    bool
	digits string // without zeros at either end; "" is zero
	exp    int
}

// maxExponent bounds the exponents looked at; larger ones are not of use.
const maxExponent = 9999

func parseDecimal(text string) (decimal, bool) {
	var d decimal
	text, d.neg = strings.CutPrefix(text, "-")
	mantissa, e := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if e, err = strconv.Atoi(text[i+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return d, false
		}
		mantissa = text[:i]
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	d.exp = len(whole) + e
	all := whole + frac
	d.digits = strings.TrimLeft(all, "0")
	d.exp -= len(all) - len(d.digits)
	d.digits = strings.TrimRight(d.digits, "0")
	if d.digits == "" {
		d = decimal{}
	}
	return d, true
}

// integer spells the value as an integer if it is one.
func (d decimal) integer() (string, bool) {
	if d.digits == "" {
		return "0", true
	}
	if d.exp < len(d.digits) || d.exp > 400 {
		return "", false
	}
	s := d.digits + strings.Repeat("0", d.exp-len(d.digits))
	if d.neg {
		s = "-" + s
	}
	return s, true
}

// plain spells the value without an exponent, as Rust prints a float.
func (d decimal) plain() string {
	if s, ok := d.integer(); ok {
		return s
	}
	s := ""
	if d.neg {
		s = "-"
	}
	if d.exp <= 0 {
		return s + "0." + strings.Repeat("0", -d.exp) + d.digits
	}
	return s + d.digits[:d.exp] + "." + d.digits[d.exp:]
}

// float returns the nearest double and whether its shortest spelling is the
// value itself, which is how the engine spells numbers.
func (d decimal) float() (float64, bool) {
	if d.exp > 320 || d.exp < -320 {
		return 0, false
	}
	f, err := strconv.ParseFloat(d.plain(), 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, false
	}
	back, ok := parseDecimal(strconv.FormatFloat(f, 'e', -1, 64))
	return f, ok && back == d
}
