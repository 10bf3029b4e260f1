package distill

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"agentgraph/model"
	"agentgraph/record"
)

// ExportOptions say what an export holds and how.
type ExportOptions struct {
	// Dir is the folder to make; it must not be there.
	Dir    string
	Layout Layout // empty: Chat
	Format Format // empty: JSONL
	Filter Filter
	// Score is the value that rates an answer, such as rater.rating; empty:
	// none.
	Score string
	// Split are the parts of the data; empty: all of it is "train". SplitSeed
	// gives other parts of the same sizes.
	Split     []Share
	SplitSeed uint64
	// Dedupe leaves out rows whose input and answer are as alike as this, 0.5
	// to 1, to one of the same agent and schema; 0 keeps all.
	Dedupe float64
	// Tools includes turns that called tools, with columns for their calls.
	Tools bool
	// DropFields are columns, or members of JSON answers as answer.MEMBER.
	DropFields []string
	// HashInputs replaces the texts and names of inputs by their hashes.
	HashInputs bool
	// License is what the data may be used under, for the card and a column;
	// empty: unknown.
	License string
	// MaxProblems bounds the problems that the report names; 0: 100.
	MaxProblems int
}

// Filter says which answers are exported. The zero value takes all.
type Filter struct {
	Agents []string `json:"agents,omitempty"`
	// Since and Until bound when the answer was made; Until is not included.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Valid takes only answers that were validated against a schema.
	Valid bool `json:"valid,omitempty"`
	// Schemas are hashes of schemas, or how they begin.
	Schemas []string `json:"schemas,omitempty"`
	// Where is an expression; see Expr.
	Where string `json:"where,omitempty"`
}

// Reasons why an answer is not in an export.
const (
	SkipNoRecord  = "no record says what was asked"
	SkipChanged   = "the file is not what its record says"
	SkipTools     = "tools were called; --tools includes these"
	SkipTime      = "outside of the time"
	SkipNotValid  = "not validated against a schema"
	SkipSchema    = "another schema"
	SkipWhere     = "the condition does not hold"
	SkipDuplicate = "near-duplicate"
	SkipNoPair    = "no pair"
)

// ExportReport is what came of an export.
type ExportReport struct {
	Layout  Layout         `json:"layout"`
	Format  Format         `json:"format"`
	Files   []DataFile     `json:"files"`
	Rows    int            `json:"rows"`
	Answers int            `json:"answers"` // that were looked at
	Skipped map[string]int `json:"skipped"` // answers that were left out, by reason
	// Problems are the first files that could not be used; ProblemCount is all.
	Problems     []string `json:"problems"`
	ProblemCount int      `json:"problem_count"`

	card cardCounts
}

// exporter is an export under way.
type exporter struct {
	root   string
	opt    ExportOptions
	shape  *shape
	where  *Expr
	score  *Ref
	refs   []Ref // what other agents' answers are asked for
	raters []string

	scores *ratings
	split  *splitter
	groups map[uint64]*group
	dedupe *deduper

	folders map[string]bool // output folders of the graph, for isAnswer
	rated   bool            // the ratings are read; before, no condition holds
	report  *ExportReport
}

// Export writes the answers of the graph or folder at root as a data set. On
// an error nothing is left behind; problems with single answers are in the
// report.
//
// Texts stream. What is kept in memory for each answer is: about 40 bytes for
// each rating, when other agents' answers are asked for; about 40 bytes for
// each link between inputs, with more than one split; about 400 bytes for
// each row, with Dedupe; about 150 bytes with pairs by score.
func Export(ctx context.Context, root string, opt ExportOptions) (*ExportReport, error) {
	x, err := newExporter(root, opt)
	if err != nil {
		return nil, err
	}
	out, err := createFolder(opt.Dir)
	if err != nil {
		return nil, err
	}
	defer out.discard()
	if err := x.prepare(ctx); err != nil {
		return nil, err
	}
	if err := x.write(ctx, out); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err // a data set has all that was asked for
	}
	return x.report, out.commit()
}

func newExporter(root string, opt ExportOptions) (*exporter, error) {
	if opt.Layout == "" {
		opt.Layout = Chat
	}
	if opt.Format == "" {
		opt.Format = JSONL
	}
	if opt.License == "" {
		opt.License = "unknown"
	}
	if opt.MaxProblems == 0 {
		opt.MaxProblems = 100
	}
	if len(opt.Split) == 0 {
		opt.Split = []Share{{"train", 1}}
	}
	x := &exporter{root: root, opt: opt, folders: map[string]bool{},
		report: &ExportReport{Layout: opt.Layout, Format: opt.Format, Skipped: map[string]int{}, Problems: []string{}, card: newCardCounts()}}
	if !slices.Contains(Formats, opt.Format) {
		return nil, fmt.Errorf("format %q: it is %s", opt.Format, oneOf(Formats))
	}
	if err := checkShares(opt.Split); err != nil {
		return nil, err
	}
	if opt.Dedupe != 0 && !(opt.Dedupe >= 0.5 && opt.Dedupe <= 1) {
		return nil, fmt.Errorf("near-duplicates are found from 0.5 to 1, not at %v", opt.Dedupe)
	}
	if !opt.Filter.Until.IsZero() && !opt.Filter.Since.Before(opt.Filter.Until) {
		return nil, errors.New("the time ends before it begins")
	}
	for _, s := range opt.Filter.Schemas {
		if len(s) < 6 || strings.Trim(s, "0123456789abcdef") != "" {
			return nil, fmt.Errorf("%q is not the sha256 of a schema, or its first six or more digits in lower case", s)
		}
	}
	var err error
	if x.shape, err = newShape(&opt); err != nil {
		return nil, err
	}
	if opt.Filter.Where != "" {
		if x.where, err = ParseExpr(opt.Filter.Where); err != nil {
			return nil, err
		}
		x.refs = append(x.refs, x.where.Refs()...)
	}
	if opt.Score != "" {
		ref, err := ParseRef(opt.Score)
		if err != nil {
			return nil, err
		}
		x.score = &ref
		x.refs = append(x.refs, ref)
	}
	x.refs = slices.DeleteFunc(x.refs, func(r Ref) bool { return r.Agent == "" })
	for _, r := range x.refs {
		if !slices.Contains(x.raters, r.Agent) {
			x.raters = append(x.raters, r.Agent)
		}
	}
	if opt.Dedupe > 0 {
		x.dedupe = newDeduper(opt.Dedupe)
	}
	return x, nil
}

// prepare reads what rows need to know of others.
func (x *exporter) prepare(ctx context.Context) error {
	if err := x.findFolders(ctx); err != nil {
		return err
	}
	if len(x.refs) > 0 {
		x.scores = newRatings(x.refs)
		for c := range x.each(ctx, Options{Agents: x.raters}, nil) {
			switch {
			case c.err != nil:
				return c.err
			case c.prob != nil && !x.exports(c.prob.Agent):
				x.problem(c.prob)
			case c.rec != nil:
				x.scores.add(c)
			}
		}
	}
	x.rated = true
	x.split = newSplitter(x.opt.Split, x.opt.SplitSeed)
	pairs := x.opt.Layout == Preference && x.score != nil
	if len(x.opt.Split) == 1 && !pairs {
		return nil
	}
	x.groups = map[uint64]*group{}
	which := Options{}
	if len(x.opt.Split) == 1 {
		which.Agents = x.opt.Filter.Agents
	}
	for c := range x.each(ctx, which, nil) {
		switch {
		case c.err != nil:
			return c.err
		case c.rec == nil:
			continue
		}
		// Also what is not exported may tie inputs together.
		x.split.link(inputKeys(c.rec, x.isAnswer))
		if pairs && c.skip == "" && x.exports(c.a.Agent) {
			x.addToGroup(c)
		}
	}
	return nil
}

// exports reports whether answers of this agent are exported, so that what is
// wrong with them is told then.
func (x *exporter) exports(agent string) bool {
	return len(x.opt.Filter.Agents) == 0 || slices.Contains(x.opt.Filter.Agents, agent)
}

func (x *exporter) findFolders(ctx context.Context) error {
	for f, err := range Folders(ctx, x.root, Options{}) {
		var p *Problem
		switch {
		case errors.As(err, &p):
		case err != nil:
			return err
		default:
			x.folders[path.Join(f.Path, "output")] = true
			x.folders[f.answers] = true
		}
	}
	return nil
}

// isAnswer reports whether a path is that of an answer of this graph.
func (x *exporter) isAnswer(p string) bool { return x.folders[path.Dir(p)] }

// candidate is an answer that was read.
type candidate struct {
	a      *Answer
	rec    *record.Record // nil: no record, or err
	sha256 string
	text   string // the answer alone
	skip   string // why it is not exported
	prob   *Problem
	err    error // ends the export
	rows   []pendingRow

	recordSHA256 string
	recordBytes  int64
}

// pendingRow is a row that is not yet written.
type pendingRow struct {
	encoded
	sketch *sketch
}

// each yields the answers in their order, read and judged by several
// goroutines at once; then also does more with each there.
func (x *exporter) each(ctx context.Context, opt Options, then func(*candidate)) func(func(*candidate) bool) {
	return func(yield func(*candidate) bool) {
		for c, err := range Map(ctx, Answers(ctx, x.root, opt), func(_ context.Context, a *Answer) *candidate {
			c := &candidate{a: a}
			x.read(c)
			if then != nil && c.rec != nil && c.skip == "" {
				then(c)
			}
			return c
		}) {
			var p *Problem
			switch {
			case errors.As(err, &p) && p.Kind == Stray:
				continue // a file that is no answer
			case p != nil:
				c = &candidate{prob: p}
			case err != nil:
				c = &candidate{err: err}
			}
			if !yield(c) || c.err != nil {
				return
			}
		}
	}
}

// read reads an answer and its record and applies the filter.
func (x *exporter) read(c *candidate) {
	if c.a.TurnID == "" {
		c.skip = SkipNoRecord
		return
	}
	rec, source, err := c.a.Folder.recordBytes(c.a.TurnID)
	if err != nil {
		c.prob = asProblem(c.a, err)
		return
	}
	c.recordSHA256, c.recordBytes = hashOf(source), int64(len(source))
	data, err := c.a.Read(MaxAnswerBytes)
	if err != nil {
		c.prob = asProblem(c.a, err)
		return
	}
	c.sha256 = hashOf(data)
	text, ok := rec.Answer()
	file, _ := rec.FileText()
	if !ok || rec.Request == nil || c.sha256 != c.a.Output.SHA256 || file != string(data) {
		c.skip = SkipChanged
		return
	}
	c.rec, c.text = rec, text
	c.skip = x.filter(c)
}

func asProblem(a *Answer, err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return &Problem{Kind: Unreadable, Agent: a.Agent, Path: a.Path, Msg: plain(err), Err: err}
}

func (x *exporter) filter(c *candidate) string {
	f := x.opt.Filter
	switch {
	case len(c.rec.ToolCalls) > 0 && !x.opt.Tools:
		return SkipTools
	case !f.Since.IsZero() && (c.rec.Timing == nil || c.rec.Timing.Started.Before(f.Since)),
		!f.Until.IsZero() && (c.rec.Timing == nil || !c.rec.Timing.Started.Before(f.Until)):
		return SkipTime
	case f.Valid && c.rec.OutputValidation.Status != record.Valid:
		return SkipNotValid
	case len(f.Schemas) > 0 && (c.rec.Request.Constraint == nil ||
		!slices.ContainsFunc(f.Schemas, func(s string) bool { return strings.HasPrefix(c.rec.Request.Constraint.SHA256, s) })):
		return SkipSchema
	case x.where != nil && x.rated && !x.where.Eval(func(i int) (any, bool) { return x.value(c, x.where.Refs()[i]) }):
		return SkipWhere
	}
	return ""
}

// value is what a reference stands for at an answer.
func (x *exporter) value(c *candidate, r Ref) (any, bool) {
	if r.Agent == "" {
		return valueAt(c.text, r.Path)
	}
	return x.scores.get(r, c.a.Path, c.sha256)
}

func (x *exporter) problem(p *Problem) {
	x.report.ProblemCount++
	if len(x.report.Problems) < x.opt.MaxProblems {
		x.report.Problems = append(x.report.Problems, p.Error())
	}
}

// write makes the rows and the files.
func (x *exporter) write(ctx context.Context, out *newFolder) error {
	var files []*dataFile
	defer func() {
		for _, f := range files {
			f.file.Close()
		}
	}()
	for _, s := range x.opt.Split {
		f, err := createFile(out.temp, s.Name+"."+string(x.opt.Format), s.Name)
		if err != nil {
			return err
		}
		if files = append(files, f); x.opt.Format == Parquet {
			f.startParquet(x.shape.row)
		}
	}
	manifest, err := createFile(out.temp, manifestName, "")
	if err != nil {
		return err
	}
	defer manifest.file.Close()
	for c := range x.each(ctx, Options{Agents: x.opt.Filter.Agents}, x.rows) {
		if c.err != nil {
			return c.err
		}
		if c.prob != nil {
			x.problem(c.prob)
			continue
		}
		if err := x.put(c, files, manifest); err != nil {
			return err
		}
	}
	for _, f := range files {
		info, err := f.finish()
		if err != nil {
			return err
		}
		x.report.Files = append(x.report.Files, info)
		if err := putLine(manifest, manifestLine{Kind: "data", Path: info.Path, SHA256: info.SHA256, Bytes: info.Bytes, Rows: &info.Rows}); err != nil {
			return err
		}
	}
	info, err := manifest.finish()
	if err != nil {
		return err
	}
	return out.writeFile("README.md", x.card(info))
}

// rows makes the rows of one answer; it runs beside others.
func (x *exporter) rows(c *candidate) {
	examples, err := x.examples(c)
	if err != nil {
		c.prob = asProblem(c.a, err)
		return
	}
	if len(examples) == 0 {
		c.skip = SkipNoPair
		return
	}
	for _, e := range examples {
		enc, err := encodeRow(x.opt.Format, x.shape.make(e))
		if err != nil {
			c.prob = asProblem(c.a, err)
			return
		}
		row := pendingRow{encoded: enc}
		if x.dedupe != nil {
			row.sketch = sketchOf(lastInput(e.rec) + "\n" + e.answer + "\n" + e.rejected)
		}
		c.rows = append(c.rows, row)
	}
}

// put writes the rows of one answer, in order.
func (x *exporter) put(c *candidate, files []*dataFile, manifest *dataFile) error {
	x.report.Answers++
	if c.skip != "" {
		x.report.Skipped[c.skip]++
		return nil
	}
	keys := append(inputKeys(c.rec, x.isAnswer), hashKey("turn", c.a.TurnID))
	group := hashKey("rows", c.a.Agent, schemaHash(c.rec))
	wrote := 0
	part := x.split.split(keys[0])
	for _, row := range c.rows {
		if x.dedupe != nil && x.dedupe.duplicate(group, row.sketch) {
			continue
		}
		if err := files[part].add(row.encoded); err != nil {
			return err
		}
		wrote++
	}
	if wrote == 0 {
		x.report.Skipped[SkipDuplicate]++
		return nil
	}
	x.report.Rows += wrote
	x.report.card.add(c, wrote)
	file := path.Join(c.a.Folder.turns, c.a.TurnID+".json")
	for _, l := range []manifestLine{
		{Kind: "record", Path: file, SHA256: c.recordSHA256, Bytes: c.recordBytes, Row: c.a.TurnID},
		{Kind: "answer", Path: c.a.Path, SHA256: c.sha256, Bytes: c.a.Output.Bytes, Row: c.a.TurnID},
	} {
		if err := putLine(manifest, l); err != nil {
			return err
		}
	}
	return nil
}

// manifestName is the list of everything an export was made of.
const manifestName = "manifest.jsonl"

// manifestLine is one file: a source in the graph, or a file of the export.
type manifestLine struct {
	Kind   string `json:"kind"` // record, answer or data
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Row    string `json:"row,omitempty"` // the id of the row it is a source of
	Rows   *int   `json:"rows,omitempty"`
}

func putLine(f *dataFile, l manifestLine) error {
	line, err := encodeLine(l)
	if err != nil {
		return err
	}
	f.info.Rows++
	_, err = f.buf.Write(line)
	return err
}

func schemaHash(r *record.Record) string {
	if c := r.Request.Constraint; c != nil {
		return c.SHA256
	}
	return ""
}

// lastInput is the user's message that the answer is to.
func lastInput(r *record.Record) string {
	for _, m := range slices.Backward(r.Request.Messages) {
		if m.Role == model.User {
			return m.Content
		}
	}
	return ""
}

// Reasons are the reasons of Skipped, in order.
func (r *ExportReport) Reasons() []string { return sortedKeys(r.Skipped) }
