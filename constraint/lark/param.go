package lark

import (
	"slices"
	"strconv"
	"strings"
)

// Parameter expressions (after ::) and conditions (after %if). The functions
// and what they take:
//
//	bits       _ or [from:to]
//	value      a number
//	bit        a number below 64
//	cond       a condition
var paramFuncs = map[string][]string{
	"incr": {"bits"}, "decr": {"bits"},
	"bit_and": {"value"}, "bit_or": {"value"},
	"set_bit": {"bit"}, "clear_bit": {"bit"},
}

var condFuncs = map[string][]string{
	"true": {},
	"ne":   {"bits", "value"}, "eq": {"bits", "value"}, "lt": {"bits", "value"},
	"le": {"bits", "value"}, "gt": {"bits", "value"}, "ge": {"bits", "value"},
	"bit_count_ne": {"bits", "bit"}, "bit_count_eq": {"bits", "bit"}, "bit_count_lt": {"bits", "bit"},
	"bit_count_le": {"bits", "bit"}, "bit_count_gt": {"bits", "bit"}, "bit_count_ge": {"bits", "bit"},
	"and": {"cond", "cond"}, "or": {"cond", "cond"}, "not": {"cond"},
	"bit_clear": {"bit"}, "bit_set": {"bit"}, "is_zeros": {"bits"}, "is_ones": {"bits"},
}

func names(m map[string][]string) string {
	var out []string
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// param reads what stands after ::.
func (b *builder) param(a *pArg) *Param {
	pos := posOf(a.Pos)
	switch {
	case a.Number != nil:
		return b.arg(a, "value")
	case a.Self:
		return &Param{Pos: pos, Func: "_"}
	case a.Name != nil:
		return b.call(a, paramFuncs, "the functions of a parameter are "+names(paramFuncs))
	}
	b.fail(pos, cParam, "write a number, _ or a function such as incr(_)", "this is not the value of a parameter")
	return &Param{Pos: pos}
}

func (b *builder) condition(a *pArg) *Param {
	if a.Name == nil {
		b.fail(posOf(a.Pos), cParam, "the conditions are "+names(condFuncs), "this is not a condition")
		return nil
	}
	return b.call(a, condFuncs, "the conditions are "+names(condFuncs))
}

func (b *builder) call(a *pArg, funcs map[string][]string, known string) *Param {
	out := &Param{Pos: posOf(a.Pos), Func: *a.Name}
	want, ok := funcs[out.Func]
	if !ok {
		b.fail(out.Pos, cParam, known, "there is no function %s", out.Func)
		return out
	}
	var args []*pArg
	if a.Call != nil {
		args = a.Call.Args
	}
	if len(args) != len(want) || (a.Call != nil) != (len(want) > 0) {
		b.fail(out.Pos, cParam, "", "%s takes %s", out.Func, count(len(want)))
		return out
	}
	for i, kind := range want {
		if kind == "cond" {
			if c := b.condition(args[i]); c != nil {
				out.Args = append(out.Args, c)
			}
			continue
		}
		out.Args = append(out.Args, b.arg(args[i], kind))
	}
	return out
}

func count(n int) string {
	switch n {
	case 0:
		return "no arguments, and no parentheses"
	case 1:
		return "one argument"
	}
	return strconv.Itoa(n) + " arguments"
}

func (b *builder) arg(a *pArg, kind string) *Param {
	out := &Param{Pos: posOf(a.Pos)}
	switch {
	case kind == "bits" && a.Self:
		out.Func = "_"
	case kind == "bits" && a.Bits != nil:
		out.Func = "[]"
		out.From, out.To = b.bit(out.Pos, a.Bits.From, 63), b.bit(out.Pos, a.Bits.To, 64)
		if out.To <= out.From {
			b.fail(out.Pos, cParam, "the second number is the first bit that does not belong", "the bits from %d to %d are none", out.From, out.To)
		}
	case kind == "bits":
		b.fail(out.Pos, cParam, "write _ or [from:to]", "bits of the parameter belong here")
	case a.Number == nil:
		b.fail(out.Pos, cParam, "", "a number belongs here")
	case kind == "bit":
		// llguidance takes the number of a bit in decimal only.
		out.Number = uint64(b.bit(out.Pos, *a.Number, 63))
	default:
		s := *a.Number
		n, err := parseUint(s)
		if len(s) > 2 && (s[1] == 'x' || s[1] == 'X') {
			n, err = strconv.ParseUint(s[2:], 16, 64)
		}
		if err != nil {
			b.fail(out.Pos, cParam, "write a whole number below 2^64", "%s is not the value of a parameter", short(s))
		}
		out.Number = n
	}
	return out
}

func (b *builder) bit(p Pos, s string, limit uint64) int {
	n, err := parseUint(s)
	if err != nil || n > limit {
		b.fail(p, cParam, "a parameter has 64 bits, numbered from 0", "%s is not the number of a bit", short(s))
		return 0
	}
	return int(n)
}

// usesSelf reports whether a parameter expression needs the parameter of the
// rule it stands in.
func (p *Param) usesSelf() bool { return p != nil && p.Func != "" }
