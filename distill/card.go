package distill

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// maxCounted bounds the names of one list of the card; further ones are
// counted together.
const maxCounted = 1000

// cardCounts are the numbers of the data card.
type cardCounts struct {
	agents, models, schemas, validation map[string]int
	first, last                         time.Time
	inputTokens, outputTokens           int64
}

func newCardCounts() cardCounts {
	return cardCounts{map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, time.Time{}, time.Time{}, 0, 0}
}

func count(m map[string]int, name string, n int) {
	if _, ok := m[name]; !ok && len(m) >= maxCounted {
		name = "(others)"
	}
	m[name] += n
}

func (k *cardCounts) add(c *candidate, rows int) {
	q := c.rec.Request
	count(k.agents, cell(c.a.Agent), rows)
	m := cell(q.Model.Name) + " | " + cell(q.Model.Engine) + " | " + orDash(q.Model.WeightsSHA256)
	count(k.models, m, rows)
	schema := "(free text) | – | –"
	if s := q.Constraint; s != nil {
		schema = cell(orDash(s.File)) + " | " + string(s.Kind) + " | " + s.SHA256
	}
	count(k.schemas, schema, rows)
	by := ""
	if e := c.rec.OutputValidation.EnforcedBy; e != nil {
		by = string(*e)
	}
	count(k.validation, string(c.rec.OutputValidation.Status)+" | "+orDash(by), rows)
	if t := c.rec.Timing; t != nil {
		if k.first.IsZero() || t.Started.Before(k.first) {
			k.first = t.Started
		}
		if t.Started.After(k.last) {
			k.last = t.Started
		}
	}
	u := usage(c.rec)
	if u.InputTokens != nil {
		k.inputTokens += *u.InputTokens
	}
	if u.OutputTokens != nil {
		k.outputTokens += *u.OutputTokens
	}
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// card is the README.md of an export: what dataset hubs and loaders read at
// its head, and what people read below.
func (x *exporter) card(manifest DataFile) []byte {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	r := x.report
	p("---\nlicense: %s\nconfigs:\n- config_name: default\n  data_files:\n", yamlText(x.opt.License))
	for _, f := range r.Files {
		if f.Rows > 0 {
			p("  - split: %s\n    path: %s\n", f.Split, f.Path)
		}
	}
	p("dataset_info:\n  features:\n%s---\n\n", features(x.shape.row, "  "))

	p("# Answers of a graph of agents\n\n")
	p("Exported by `agentgraph export`, layout `%s`, format `%s`, licence `%s`.\n", r.Layout, r.Format, cell(x.opt.License))
	if !r.card.first.IsZero() {
		p("The answers were made from %s to %s.\n", r.card.first.UTC().Format(time.RFC3339), r.card.last.UTC().Format(time.RFC3339))
	}
	p("%d of %d answers gave %d rows; the turns behind them read %d tokens and wrote %d, as far as known.\n\n",
		r.Answers-sum(r.Skipped), r.Answers, r.Rows, r.card.inputTokens, r.card.outputTokens)

	p("## Files\n\n| file | split | rows | bytes | sha256 |\n|---|---|--:|--:|---|\n")
	for _, f := range r.Files {
		p("| %s | %s | %d | %d | `%s` |\n", f.Path, f.Split, f.Rows, f.Bytes, f.SHA256)
	}
	p("| %s | | %d | %d | `%s` |\n\n", manifest.Path, manifest.Rows, manifest.Bytes, manifest.SHA256)
	p("`%s` has one line for each record and each answer that a row was made of, and for each file here, with its sha256.\n\n", manifestName)

	table := func(title, head string, counts map[string]int) {
		if len(counts) == 0 {
			return
		}
		columns := strings.Count(head, "|") + 1
		p("## %s\n\n| %s | rows |\n|%s--:|\n", title, head, strings.Repeat("---|", columns))
		for _, name := range sortedKeys(counts) {
			missing := columns - strings.Count(name, " | ") - 1
			p("| %s%s | %d |\n", name, strings.Repeat(" |", max(missing, 0)), counts[name])
		}
		p("\n")
	}
	table("Agents", "agent", r.card.agents)
	table("Models", "model | engine | sha256 of the weights", r.card.models)
	table("Schemas", "file | kind | sha256", r.card.schemas)
	table("Validation", "status | held by", r.card.validation)

	p("## How it was made\n\n")
	for _, line := range x.choices() {
		p("- %s\n", line)
	}
	p("\n")
	table("Left out", "why", r.Skipped)
	if r.ProblemCount > 0 {
		p("%d files could not be used; `agentgraph scan` lists them.\n", r.ProblemCount)
	}
	return []byte(b.String())
}

// choices are the options in words. Paths are not among them.
func (x *exporter) choices() []string {
	o := x.opt
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	f := o.Filter
	for _, a := range f.Agents {
		add("agent: %s", cell(a))
	}
	if !f.Since.IsZero() {
		add("made since %s", f.Since.UTC().Format(time.RFC3339))
	}
	if !f.Until.IsZero() {
		add("made before %s", f.Until.UTC().Format(time.RFC3339))
	}
	if f.Valid {
		add("only answers that were validated against a schema")
	}
	for _, s := range f.Schemas {
		add("schema: %s", s)
	}
	if f.Where != "" {
		add("where: `%s`", strings.ReplaceAll(cell(f.Where), "`", "'"))
	}
	if o.Score != "" {
		add("score: `%s`", strings.ReplaceAll(cell(o.Score), "`", "'"))
	}
	if len(o.Split) > 1 {
		var parts []string
		for _, s := range o.Split {
			parts = append(parts, fmt.Sprintf("%s=%v", s.Name, s.Weight))
		}
		add("split by the inputs that answers go back to (%s, seed %d): no input is in two splits", strings.Join(parts, ","), o.SplitSeed)
	}
	if o.Dedupe > 0 {
		add("near-duplicates of %v and above left out (MinHash, %d values, runs of %d characters)", o.Dedupe, signatureSize, shingleRunes)
	}
	if o.HashInputs {
		add("the texts and names of inputs are replaced by their sha256")
	}
	for _, d := range o.DropFields {
		add("dropped: %s", cell(d))
	}
	if o.Tools {
		add("turns that called tools are included")
	}
	if len(list) == 0 {
		add("every answer, as it is")
	}
	return list
}

// features describes the columns to the Python library datasets, so that a
// column that is empty in the first rows has its type all the same.
func features(t reflect.Type, indent string) string {
	var b strings.Builder
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fmt.Fprintf(&b, "%s- name: %s\n", indent, name)
		typ := f.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch typ.Kind() {
		case reflect.Slice:
			fmt.Fprintf(&b, "%s  list:\n%s", indent, features(typ.Elem(), indent+"  "))
		case reflect.Struct:
			fmt.Fprintf(&b, "%s  struct:\n%s", indent, features(typ, indent+"  "))
		default:
			fmt.Fprintf(&b, "%s  dtype: %s\n", indent, map[reflect.Kind]string{reflect.String: "string",
				reflect.Int64: "int64", reflect.Float64: "float64", reflect.Bool: "bool"}[typ.Kind()])
		}
	}
	return b.String()
}

// cell is a text that breaks no table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ", "`", "'", "<", "&lt;").Replace(s)
}

// yamlText is a text as a quoted YAML scalar.
func yamlText(s string) string { return compactJSON(s) }

func sum(m map[string]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}
