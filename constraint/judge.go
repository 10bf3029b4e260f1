package constraint

import (
	"context"

	"agentgraph/constraint/internal/validate"
)

// judge decides about finished text.
type judge interface {
	judge(ctx context.Context, text string) []Diagnostic
}

// localJudge is a validator in pure Go: a JSON Schema or a whole-answer
// regular expression.
type localJudge struct {
	v interface {
		Validate(ctx context.Context, text string) []validate.Finding
	}
}

func (l localJudge) judge(ctx context.Context, text string) []Diagnostic {
	found := l.v.Validate(ctx, text)
	out := make([]Diagnostic, len(found))
	for i, f := range found {
		out[i] = Diagnostic{Code: Code(f.Code), Instance: f.Instance, Schema: f.Schema}
	}
	return out
}

// grammarJudge follows the text with a matcher over bytes.
type grammarJudge struct {
	c   *compiled
	key grammarKey
}

// judgeChunk is how many bytes are matched between two looks at the context.
const judgeChunk = 4096

func (g *grammarJudge) judge(ctx context.Context, text string) []Diagnostic {
	bad := func(c Code) []Diagnostic { return []Diagnostic{{Code: c}} }
	v, err := ByteVocabulary()
	if err != nil {
		return bad(GrammarViolation)
	}
	m, err := v.matcher(g.key, g.c.engineLimits())
	if err != nil {
		return bad(GrammarViolation)
	}
	defer m.Close()
	stop := context.AfterFunc(ctx, m.Cancel)
	defer stop()
	buf := make([]uint32, 0, judgeChunk)
	for len(text) > 0 {
		n := min(judgeChunk, len(text))
		buf = buf[:n]
		for i := range n {
			buf[i] = uint32(text[i])
		}
		if err := m.Consume(buf); err != nil {
			if ctx.Err() != nil || isCost(err) {
				return bad(ValidationWork)
			}
			return bad(GrammarViolation)
		}
		text = text[n:]
	}
	switch {
	case ctx.Err() != nil:
		return bad(ValidationWork)
	case !m.Accepting():
		return bad(GrammarViolation)
	}
	return nil
}

const (
	maxDiagnostics     = 8
	maxDiagnosticBytes = 2048
)

// bound keeps the first diagnostics, as many as the contract allows.
func bound(d []Diagnostic) []Diagnostic {
	size := 0
	for i := range d {
		size += len(d[i].Code) + len(d[i].Instance) + len(d[i].Schema)
		if i >= maxDiagnostics || size > maxDiagnosticBytes {
			return d[:i]
		}
	}
	return d
}
