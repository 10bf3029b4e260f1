// Package maskbench measures how faithfully and how fast masks hold JSON
// Schemas, without a language model. Its input has one JSON object a line:
// a name, a schema, and instances with a word whether each is valid.
//
// An instance counts as taken when the mask allows every byte of it and an
// end after it and, except with Raw, local validation passes it. Instances
// are written compactly; one that the mask rejects is tried again with its
// members in schema order, again except with Raw.
package maskbench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"agentgraph/constraint"
	"agentgraph/constraint/internal/jsontree"
	"agentgraph/constraint/internal/llg"
	"agentgraph/constraint/internal/relax"
)

// Options of a run.
type Options struct {
	Enforce constraint.Enforce
	Formats constraint.Formats
	// Raw asks the engine alone: no admission, no relaxation, no second try,
	// no validation.
	Raw bool
	// Vocabulary gets the masks; nil is the vocabulary of bytes. Its tokens of
	// one byte have to be numbered in Bytes.
	Vocabulary *constraint.Vocabulary
	// Case, when set, is called after each schema.
	Case func(Case)
}

// Outcome of one schema.
type Outcome string

// The outcomes.
const (
	Pass           Outcome = "pass"
	Refused        Outcome = "refused"
	RejectsValid   Outcome = "rejects_valid"
	AcceptsInvalid Outcome = "accepts_invalid"
)

// Case is one schema's outcome.
type Case struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitempty"`
}

// Times are microseconds.
type Times struct {
	Avg float64 `json:"avg"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Counts are outcomes of schemas.
type Counts struct {
	Schemas        int `json:"schemas"`
	Pass           int `json:"pass"`
	Refused        int `json:"refused"`
	RejectsValid   int `json:"rejects_valid"`
	AcceptsInvalid int `json:"accepts_invalid"`
}

// Report is the whole run.
type Report struct {
	Counts
	CompileUS Times `json:"compile_us"` // until a first mask can be asked for
	MaskUS    Times `json:"mask_us"`
	Masks     int   `json:"masks"`
	Reordered int   `json:"reordered"` // instances taken in schema order only
	// Sets are the counts by data set: the part of a name before "---",
	// without a number.
	Sets    map[string]*Counts `json:"sets"`
	Seconds float64            `json:"seconds"`
}

type line struct {
	Name   string
	Schema json.RawMessage
	Tests  []struct {
		Valid bool
		Data  json.RawMessage
	}
}

// maxLine bounds one line of the input.
const maxLine = 64 << 20

// Run reads the input to its end. It stops at the first line it cannot read
// and when ctx ends.
func Run(ctx context.Context, in io.Reader, opt Options) (*Report, error) {
	if !llg.Built {
		return nil, constraint.ErrNotBuilt
	}
	if opt.Vocabulary == nil {
		v, err := constraint.ByteVocabulary()
		if err != nil {
			return nil, err
		}
		opt.Vocabulary = v
	}
	b := &bench{ctx: ctx, opt: opt}
	start := time.Now()
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, maxLine)
	for n := 1; sc.Scan(); n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(sc.Bytes()) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w; each line is {name, schema, tests}", n, err)
		}
		c, err := b.schema(&l)
		if err != nil {
			return nil, fmt.Errorf("line %d (%s): %w", n, l.Name, err)
		}
		b.count(c)
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	b.report.CompileUS, b.report.MaskUS = times(b.compile), times(b.mask)
	b.report.Masks = len(b.mask)
	b.report.Seconds = time.Since(start).Seconds()
	return &b.report, nil
}

type bench struct {
	ctx           context.Context
	opt           Options
	report        Report
	compile, mask []float64
	buf           []uint32
}

func (b *bench) count(c Case) {
	set, _, _ := strings.Cut(c.Name, "---")
	set = strings.TrimSuffix(strings.TrimRight(set, "0123456789"), "_")
	if b.report.Sets == nil {
		b.report.Sets = map[string]*Counts{}
	}
	if b.report.Sets[set] == nil {
		b.report.Sets[set] = &Counts{}
	}
	for _, r := range []*Counts{&b.report.Counts, b.report.Sets[set]} {
		r.Schemas++
		switch c.Outcome {
		case Pass:
			r.Pass++
		case Refused:
			r.Refused++
		case RejectsValid:
			r.RejectsValid++
		case AcceptsInvalid:
			r.AcceptsInvalid++
		}
	}
	if b.opt.Case != nil {
		b.opt.Case(c)
	}
}

// schema runs one line.
func (b *bench) schema(l *line) (Case, error) {
	c := Case{Name: l.Name, Outcome: Pass}
	h, err := b.open(l)
	if err != nil {
		c.Outcome, c.Detail = Refused, err.Error()
		return c, nil
	}
	defer h.close()
	for i, t := range l.Tests {
		tree, err := jsontree.Parse(t.Data, jsontree.Bounds{})
		if err != nil {
			return c, fmt.Errorf("instance %d: %w", i, err)
		}
		took, why, err := h.takes(b, tree)
		if err != nil {
			return c, err
		}
		switch {
		case took && !t.Valid:
			c.Outcome, c.Detail = AcceptsInvalid, fmt.Sprintf("instance %d", i)
			return c, nil
		case !took && t.Valid && c.Outcome == Pass:
			c.Outcome, c.Detail = RejectsValid, fmt.Sprintf("instance %d: %s", i, why)
		}
	}
	return c, nil
}

// handle is a schema ready for instances.
type handle struct {
	raw    *constraint.RawMatcher
	con    *constraint.Constraint
	schema *jsontree.Node
}

func (h *handle) close() {
	if h.raw != nil {
		h.raw.Close()
	}
}

func (b *bench) open(l *line) (*handle, error) {
	start := time.Now()
	defer func() { b.compile = append(b.compile, micro(time.Since(start))) }()
	if b.opt.Raw {
		m, err := constraint.NewRawMatcher(b.opt.Vocabulary, l.Schema)
		return &handle{raw: m}, err
	}
	con, err := constraint.Compile(constraint.Spec{Kind: constraint.JSON, Source: l.Schema},
		constraint.Options{Enforce: b.opt.Enforce, Formats: b.opt.Formats})
	if err != nil {
		return nil, err
	}
	if _, err := con.Admit(constraint.LocalEngine("")); err != nil {
		return nil, err
	}
	tree, err := jsontree.Parse(l.Schema, jsontree.Bounds{})
	if err != nil {
		return nil, err
	}
	return &handle{con: con, schema: tree}, nil
}

func (h *handle) takes(b *bench, tree *jsontree.Node) (bool, string, error) {
	text := tree.Compact()
	if h.raw != nil {
		at, err := b.walk(h.raw.Clone(), text)
		return at == len(text), where(text, at), err
	}
	verdict := h.con.Validate(b.ctx, string(text))
	m, err := h.con.NewMatcher(b.opt.Vocabulary)
	if err != nil {
		return false, "", err
	}
	at, err := b.walk(m, text)
	if err != nil {
		return false, "", err
	}
	if at < len(text) {
		again := tree.Clone()
		relax.Reorder(h.schema, again)
		if other := again.Compact(); string(other) != string(text) {
			if m, err = h.con.NewMatcher(b.opt.Vocabulary); err != nil {
				return false, "", err
			}
			n, err := b.walk(m, other)
			if err != nil {
				return false, "", err
			}
			if n == len(other) {
				b.report.Reordered++
			}
			at, text = n, other
		}
	}
	switch {
	case !verdict.Valid:
		return false, fmt.Sprintf("validation: %+v", verdict.Diagnostics), nil
	case at < len(text):
		return false, where(text, at), nil
	}
	return true, "", nil
}

func where(text []byte, at int) string {
	return fmt.Sprintf("the mask stops at %q⟂%q", text[max(0, at-30):at], text[at:min(len(text), at+30)])
}

// matcher is what a walk needs.
type matcher interface {
	Mask([]uint32) error
	Accept(...uint32) error
	Stopped() bool
	Accepting() bool
	Close()
}

// walk follows text byte by byte and returns how far the mask allowed it;
// len(text) also means that it may end there, one less that it may not.
func (b *bench) walk(m matcher, text []byte) (int, error) {
	defer m.Close()
	if need := b.opt.Vocabulary.MaskWords(); len(b.buf) != need {
		b.buf = make([]uint32, need)
	}
	for i, c := range text {
		if m.Stopped() {
			return i, nil
		}
		start := time.Now()
		err := m.Mask(b.buf)
		b.mask = append(b.mask, micro(time.Since(start)))
		if errors.Is(err, constraint.ErrTooCostly) {
			return i, nil
		}
		if err != nil {
			return i, err
		}
		if b.buf[c/32]>>(c%32)&1 == 0 {
			return i, nil
		}
		if err := m.Accept(uint32(c)); err != nil {
			return i, err
		}
	}
	if !m.Accepting() {
		return len(text) - 1, nil
	}
	return len(text), nil
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func times(all []float64) Times {
	if len(all) == 0 {
		return Times{}
	}
	sort.Float64s(all)
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	at := func(q float64) float64 { return all[min(len(all)-1, int(q*float64(len(all))))] }
	return Times{Avg: sum / float64(len(all)), P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: all[len(all)-1]}
}
