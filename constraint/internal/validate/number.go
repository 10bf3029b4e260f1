package validate

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// decimal is an exact number: digits × 10^exp, with no zero at either end of
// digits. Zero and integers of at most 18 digits are small values instead.
type decimal struct {
	neg    bool
	digits string
	exp    int64
}

// maxExponentDigits bounds what an exponent may spell; more than this says
// nothing about any real quantity and would overflow.
const maxExponentDigits = 15

// setNumber fills v from a literal that keeps JSON's grammar. It returns
// false when the exponent is too long.
func (v *value) setNumber(lit string) bool {
	v.kind = kNumber
	if len(lit) <= 18 && !strings.ContainsAny(lit, ".eE") {
		v.small = true
		v.n, _ = strconv.ParseInt(lit, 10, 64)
		return true
	}
	s, neg := strings.CutPrefix(lit, "-")
	var exp int64
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e := s[i+1:]
		s = s[:i]
		sign := int64(1)
		if e[0] == '+' || e[0] == '-' {
			if e[0] == '-' {
				sign = -1
			}
			e = e[1:]
		}
		e = strings.TrimLeft(e, "0")
		if len(e) > maxExponentDigits {
			if strings.Trim(s, "0.") != "" {
				return false
			}
			e = "" // zero stays zero
		}
		if e != "" {
			exp, _ = strconv.ParseInt(e, 10, 64)
			exp *= sign
		}
	}
	if i := strings.IndexByte(s, '.'); i >= 0 {
		exp -= int64(len(s) - i - 1)
		s = s[:i] + s[i+1:]
	}
	s = strings.TrimLeft(s, "0")
	trimmed := strings.TrimRight(s, "0")
	exp += int64(len(s) - len(trimmed))
	if trimmed == "" {
		v.small = true
		return true
	}
	if exp >= 0 && int64(len(trimmed))+exp <= 18 {
		v.small = true
		v.n, _ = strconv.ParseInt(trimmed+strings.Repeat("0", int(exp)), 10, 64)
		if neg {
			v.n = -v.n
		}
		return true
	}
	v.num = &decimal{neg, trimmed, exp}
	return true
}

// integer reports whether a number has no fraction.
func (v *value) integer() bool { return v.small || v.num.exp >= 0 }

// sign returns -1, 0 or 1.
func (v *value) sign() int {
	switch {
	case !v.small && v.num.neg, v.small && v.n < 0:
		return -1
	case v.small && v.n == 0:
		return 0
	}
	return 1
}

// decimal returns a number that is not zero in its general form.
func (v *value) decimal() decimal {
	if !v.small {
		return *v.num
	}
	s, neg := strings.CutPrefix(strconv.FormatInt(v.n, 10), "-")
	trimmed := strings.TrimRight(s, "0")
	return decimal{neg, trimmed, int64(len(s) - len(trimmed))}
}

// compare orders two numbers by value.
func compare(a, b *value) int {
	if a.small && b.small {
		switch {
		case a.n < b.n:
			return -1
		case a.n > b.n:
			return 1
		}
		return 0
	}
	sa, sb := a.sign(), b.sign()
	if sa != sb {
		if sa < sb {
			return -1
		}
		return 1
	}
	// Not both are small, so neither is zero.
	da, db := a.decimal(), b.decimal()
	ma, mb := int64(len(da.digits))+da.exp, int64(len(db.digits))+db.exp
	switch {
	case ma < mb:
		return -sa
	case ma > mb:
		return sa
	}
	return sa * strings.Compare(da.digits, db.digits)
}

// multiple reports whether a is an integer times b, which is above zero.
func multiple(a, b *value) bool {
	if a.sign() == 0 {
		return true
	}
	if a.small && b.small {
		return a.n%b.n == 0
	}
	da, db := a.decimal(), b.decimal()
	if da.exp < db.exp {
		return false // a's last digit is not zero
	}
	if len(db.digits) <= 18 {
		mod, _ := strconv.ParseUint(db.digits, 10, 64)
		return multipleSmall(da.digits, uint64(da.exp-db.exp), mod)
	}
	mod, _ := new(big.Int).SetString(db.digits, 10)
	// a's digits modulo b's, eighteen at a time, then the tens that remain.
	rest := new(big.Int)
	chunk, scale := new(big.Int), new(big.Int)
	for s := da.digits; s != ""; {
		n := min(18, len(s))
		x, _ := strconv.ParseInt(s[:n], 10, 64)
		s = s[n:]
		rest.Mul(rest, scale.SetInt64(int64(math.Pow10(n))))
		rest.Add(rest, chunk.SetInt64(x))
		rest.Mod(rest, mod)
	}
	tens := new(big.Int).Exp(big.NewInt(10), big.NewInt(da.exp-db.exp), mod)
	return rest.Mul(rest, tens).Mod(rest, mod).Sign() == 0
}

// multipleSmall is multiple for digits × 10^tens and a divisor below 10^18.
func multipleSmall(digits string, tens, mod uint64) bool {
	mulmod := func(a, b uint64) uint64 {
		hi, lo := bits.Mul64(a, b)
		return bits.Rem64(hi, lo, mod)
	}
	var rest uint64
	for digits != "" {
		n := min(18, len(digits))
		x, _ := strconv.ParseUint(digits[:n], 10, 64)
		digits = digits[n:]
		rest = (mulmod(rest, uint64(math.Pow10(n))%mod) + x%mod) % mod
	}
	for power := 10 % mod; tens > 0; tens >>= 1 {
		if tens&1 == 1 {
			rest = mulmod(rest, power)
		}
		power = mulmod(power, power)
	}
	return rest == 0
}

// divisionCost is the work of multiple beyond the first unit.
func divisionCost(a, b *value) int {
	if a.small {
		return 0
	}
	cost := len(a.num.digits) / 16
	if !b.small {
		cost *= 1 + len(b.num.digits)/100
	}
	return cost
}

// count turns a number that is a length into an int64, large ones clamped.
func (v *value) count() int64 {
	if v.small {
		return v.n
	}
	return math.MaxInt64
}
