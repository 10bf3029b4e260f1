package relax

import (
	"errors"
	"strconv"

	"agentgraph/constraint/internal/ecma"
	"agentgraph/constraint/internal/jsontree"
)

// engineFormats are the formats llguidance 1.9 has expressions for. "unknown"
// is its own name for any text and not taken as one.
var engineFormats = map[string]bool{
	"date-time": true, "time": true, "date": true, "duration": true, "email": true, "hostname": true,
	"ipv4": true, "ipv6": true, "uuid": true, "uri": true,
}

// strings relaxes the keywords for strings.
func (d *document) strings(n *jsontree.Node) {
	if f := n.Get("format"); f != nil {
		asserted := d.opt.AssertFormats && d.opt.Asserted != nil && d.opt.Asserted(f.Str)
		switch {
		case d.opt.IgnoreFormats:
			n.Drop("format")
		case !engineFormats[f.Str]:
			d.drop(n, !asserted, "the format '"+f.Str+"'", "format")
		}
	}
	if p := n.Get("pattern"); p != nil {
		rust, err := ecma.Translate(p.Str)
		var u *ecma.Unsupported
		switch {
		case errors.As(err, &u):
			d.drop(n, false, u.Construct, "pattern")
		case rust != p.Str:
			n.Set("pattern", jsontree.Raw(jsontree.Quote(rust)))
		}
	}
	d.count(n, "minLength", 0)
	d.count(n, "maxLength", d.opt.AnswerBytes)
}

// count spells a count as the engine reads it. An upper bound above void can
// never be reached and goes.
func (d *document) count(n *jsontree.Node, key string, void int) {
	v := n.Get(key)
	if v == nil || v.Kind != jsontree.Number {
		return
	}
	dec, ok := parseDecimal(v.Text())
	text, whole := dec.integer()
	if !ok || !whole || len(text) > 18 {
		if void > 0 { // larger than any answer
			n.Drop(key)
		}
		return
	}
	if k, _ := strconv.Atoi(text); void > 0 && k > void {
		n.Drop(key)
		return
	}
	if text != v.Text() {
		n.Set(key, jsontree.Raw(text))
	}
}
