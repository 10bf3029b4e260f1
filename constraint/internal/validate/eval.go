package validate

import (
	"context"
	"time"
	"unicode/utf8"
)

// maxFindings is how many findings one answer may have.
const maxFindings = 8

// maxNesting bounds how deep schemas are applied inside each other, so that a
// long chain of references cannot exhaust the stack.
const maxNesting = 20000

// Validate judges a finished answer: nil when it keeps the promise, else at
// most eight findings in a fixed order. It ends early when ctx does, with a
// validation_work finding.
func (s *Schema) Validate(ctx context.Context, text string) []Finding {
	l := s.opt.Limits
	if len(text) > l.AnswerBytes {
		return []Finding{{Code: JSONBytes}}
	}
	if ctx.Err() != nil {
		return []Finding{{Code: ValidationWork}}
	}
	p := parser{text: text, maxNodes: l.AnswerNodes, maxDepth: l.AnswerDepth}
	v, perr := p.parse()
	if perr != nil {
		return []Finding{{Code: perr.code, Instance: perr.at}}
	}
	r := &run{schema: s, ctx: ctx, left: l.Work, check: checkEvery}
	if r.eval(s.root, v, nil, false) && !r.stopped {
		return nil
	}
	if len(r.findings) == 0 { // never a pass by accident
		r.findings = []Finding{{Code: SchemaViolation}}
	}
	return bounded(r.findings)
}

// checkEvery is how many units of work pass between two looks at ctx.
const checkEvery = 4096

// run is the state of judging one answer.
type run struct {
	schema   *Schema
	ctx      context.Context
	left     int // units of work
	check    int // units until ctx is looked at
	matching time.Duration
	depth    int
	path     []step
	scope    []*resource
	at       *schema // being applied
	findings []Finding
	stopped  bool // no more findings are wanted, or a bound was passed
}

// spend takes units of work; false means that judging has to stop.
func (r *run) spend(n int) bool {
	if r.stopped {
		return false
	}
	r.left -= n
	r.check -= n
	if r.left < 0 {
		r.abort()
		return false
	}
	if r.check < 0 {
		r.check = checkEvery
		if r.ctx.Err() != nil {
			r.abort()
			return false
		}
	}
	return true
}

// abort ends judging at a bound. The finding about it stands first, since the
// others may not be all there are.
func (r *run) abort() {
	if r.stopped {
		return
	}
	r.stopped = true
	f := Finding{ValidationWork, instancePointer(r.path), r.at.at.pointer(maxPointer)}
	r.findings = append([]Finding{f}, r.findings...)
}

// fail notes that a keyword does not hold, unless only the answer counts.
func (r *run) fail(s *schema, quiet bool, tokens ...string) bool {
	if quiet || r.stopped {
		return false
	}
	r.findings = append(r.findings, Finding{
		SchemaViolation, instancePointer(r.path), s.at.pointer(maxPointer, tokens...),
	})
	r.stopped = len(r.findings) >= maxFindings
	return false
}

func (r *run) unit() bool { return r.spend(1) }

// eval applies one schema to one value. m, when not nil, receives what the
// schema evaluated. With quiet nothing is noted and the first failure ends
// it.
func (r *run) eval(s *schema, v *value, m *marks, quiet bool) bool {
	outer := r.at
	r.at = s
	if !r.spend(1) {
		return false
	}
	if s.fixed != 0 {
		r.at = outer
		return s.fixed > 0 || r.fail(s, quiet)
	}
	if r.depth++; r.depth > maxNesting {
		r.abort()
		return false
	}
	scoped := false
	if r.schema.dynamic {
		if n := len(r.scope); n == 0 || r.scope[n-1] != s.at.res {
			r.scope = append(r.scope, s.at.res)
			scoped = true
		}
	}
	ok := r.apply(s, v, m, quiet)
	if scoped {
		r.scope = r.scope[:len(r.scope)-1]
	}
	r.depth--
	r.at = outer
	return ok && !r.stopped
}

func (r *run) apply(s *schema, v *value, m *marks, quiet bool) bool {
	if s.types != 0 && s.types&kindBits[v.kind] == 0 && !(v.kind == kNumber && s.types&8 != 0 && v.integer()) {
		return r.fail(s, quiet, "type")
	}
	if s.consts != nil && !r.same(v, s.consts) {
		return r.fail(s, quiet, "const")
	}
	if s.enum != nil && !s.enum.has(v, r.unit) {
		return r.fail(s, quiet, "enum")
	}
	ok := true
	switch v.kind {
	case kNumber:
		ok = r.number(s, v, quiet)
	case kString:
		ok = r.text(s, v, quiet)
	}
	if !ok && (quiet || r.stopped) {
		return false
	}
	// What is evaluated here counts for the schemas around only if all of
	// this schema holds.
	var own *marks
	container := v.kind == kObject || v.kind == kArray
	if container && (m != nil || s.unevaluatedProps != nil || s.unevaluatedItems != nil) {
		own = new(marks)
	}
	if v.kind == kObject && s.objectSide {
		ok = r.object(s, v, own, quiet) && ok
	} else if v.kind == kArray && s.listSide {
		ok = r.array(s, v, own, quiet) && ok
	}
	if !ok && (quiet || r.stopped) {
		return false
	}
	ok = r.combined(s, v, own, quiet) && ok
	if ok && own != nil {
		// Only now: a keyword that failed has not evaluated what it would.
		ok = r.unevaluated(s, v, own, quiet)
	}
	if ok && m != nil && own != nil {
		m.merge(own)
	}
	return ok
}

func (r *run) same(v, want *value) bool {
	return v.kind == want.kind && v.sum() == want.sum() && equal(v, want, r.unit)
}

func (r *run) number(s *schema, v *value, quiet bool) bool {
	ok := true
	for i := range s.bounds {
		b := &s.bounds[i]
		c := compare(v, b.limit)
		if !(c == 0 && b.equal || c < 0 && b.below || c > 0 && !b.below) {
			ok = r.fail(s, quiet, b.keyword)
		}
	}
	if s.multipleOf != nil {
		if !r.spend(divisionCost(v, s.multipleOf)) {
			return false
		}
		if !multiple(v, s.multipleOf) {
			ok = r.fail(s, quiet, "multipleOf")
		}
	}
	return ok
}

func (r *run) text(s *schema, v *value, quiet bool) bool {
	ok := true
	if s.minLength >= 0 && int64(v.runes) < s.minLength {
		ok = r.fail(s, quiet, "minLength")
	}
	if s.maxLength >= 0 && int64(v.runes) > s.maxLength {
		ok = r.fail(s, quiet, "maxLength")
	}
	if s.pattern != nil && (ok || !quiet) && !r.match(s.pattern, v.text) {
		ok = r.fail(s, quiet, "pattern")
	}
	if s.format != nil && (ok || !quiet) {
		good := false
		if r.timed(func() { good = s.format(v.text) }); !good {
			ok = r.fail(s, quiet, "format")
		}
	}
	return ok
}

// match tries a pattern within the answer's time budget.
func (r *run) match(re *pattern, text string) bool {
	ok, err := false, error(nil)
	r.timed(func() { ok, err = re.match(text) })
	if err != nil {
		r.abort()
	}
	return ok && !r.stopped
}

// timed runs something whose cost the units of work do not cover.
func (r *run) timed(f func()) {
	if r.stopped {
		return
	}
	start := time.Now()
	f()
	if r.matching += time.Since(start); r.matching > r.schema.timeout {
		r.abort()
	}
}

// inner applies a schema to a member or an item.
func (r *run) inner(s *schema, v *value, at step, quiet bool) bool {
	r.path = append(r.path, at)
	ok := r.eval(s, v, nil, quiet)
	r.path = r.path[:len(r.path)-1]
	return ok
}

// within applies a schema to the same value and, when it holds, takes over
// what it evaluated.
func (r *run) within(s *schema, v *value, own *marks, quiet bool) bool {
	if own == nil {
		return r.eval(s, v, nil, quiet)
	}
	var m marks
	if !r.eval(s, v, &m, quiet) {
		return false
	}
	own.merge(&m)
	return true
}

func (r *run) unevaluated(s *schema, v *value, own *marks, quiet bool) bool {
	rest := s.unevaluatedProps
	if v.kind == kArray {
		rest = s.unevaluatedItems
	}
	if rest == nil {
		return true
	}
	ok := true
	for i := range v.items {
		if own.has(i) {
			continue
		}
		at := step{index: i}
		if v.kind == kObject {
			at = step{name: v.obj.names[i], named: true}
		}
		if !r.inner(rest, &v.items[i], at, quiet) {
			if ok = false; quiet || r.stopped {
				return false
			}
		}
	}
	own.all = true
	return ok
}

// nameValue is a member name as a value, for propertyNames.
func nameValue(name string) *value {
	return &value{kind: kString, text: name, runes: int32(utf8.RuneCountInString(name))}
}
