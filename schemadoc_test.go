package agentgraph_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/output"
	"agentgraph/schemafile"
	"agentgraph/turn"
)

// schemaDoc is SCHEMA.md, read for its tables and blocks.
type schemaDoc struct {
	t    *testing.T
	text string
}

func readSchemaDoc(t *testing.T) schemaDoc {
	t.Helper()
	b, err := os.ReadFile("SCHEMA.md")
	if err != nil {
		t.Fatal(err)
	}
	return schemaDoc{t, string(b)}
}

// after returns what follows a marker comment.
func (d schemaDoc) after(marker string) string {
	d.t.Helper()
	_, rest, ok := strings.Cut(d.text, "<!-- "+marker+" -->\n")
	if !ok {
		d.t.Fatalf("SCHEMA.md has no marker %q", marker)
	}
	return rest
}

// table returns the rows of a marked table, without its head.
func (d schemaDoc) table(name string, columns int) [][]string {
	d.t.Helper()
	var rows [][]string
	for line := range strings.Lines(d.after("table: " + name)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != columns {
			d.t.Fatalf("table %s: %d cells in %q, want %d", name, len(cells), line, columns)
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		d.t.Fatalf("table %s has no rows", name)
	}
	return rows[2:]
}

// block returns the text of the fenced block after a marker.
func (d schemaDoc) block(marker string) string {
	d.t.Helper()
	rest := d.after(marker)
	open := strings.Index(rest, "```")
	_, rest, _ = strings.Cut(rest[open:], "\n")
	text, _, ok := strings.Cut(rest, "```\n")
	if open != 0 || !ok {
		d.t.Fatalf("no block follows the marker %q", marker)
	}
	return text
}

// spans returns what stands in code spans.
func spans(cell string) []string {
	var list []string
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			list = append(list, part)
		}
	}
	return list
}

var escape = regexp.MustCompile(`\\(?:n|r|t|x[0-9A-F]{2}|uFEFF)`)

// unescape reads the escapes that SCHEMA.md names.
func unescape(s string) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string {
		text, err := strconv.Unquote(`"` + e + `"`)
		if err != nil {
			panic(err)
		}
		return text
	})
}

var firstStart = time.UnixMilli(1712345678000)

func TestSchemaDocNames(t *testing.T) {
	d := readSchemaDoc(t)
	for _, row := range d.table("names", 3) {
		pattern := output.Default
		if file := spans(row[0]); len(file) == 1 {
			n, err := schemafile.Parse(file[0])
			if err != nil {
				t.Error(err)
				continue
			}
			if got := "`" + string(n.Kind()) + "`"; got != row[1] {
				t.Errorf("%s: type %s, SCHEMA.md says %s", file[0], got, row[1])
			}
			if pattern, err = output.NewPattern(n.Format, n.Ext); err != nil {
				t.Error(err)
				continue
			}
		}
		dir := t.TempDir()
		var got []string
		for i := range 2 {
			path, err := output.Publish(t.Context(), dir, pattern, firstStart.Add(time.Duration(i)*time.Second), []byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.Base(path))
		}
		if diff := cmp.Diff(spans(row[2]), got); diff != "" {
			t.Errorf("%s (-SCHEMA.md +got):\n%s", row[0], diff)
		}
	}
}

func TestSchemaDocNumbers(t *testing.T) {
	d := readSchemaDoc(t)
	for _, row := range d.table("numbers", 3) {
		name := spans(row[0])
		pattern, err := output.NewPattern(name[0], name[1])
		if err != nil {
			t.Error(err)
			continue
		}
		dir := t.TempDir()
		for _, file := range spans(row[1]) {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		path, err := output.Publish(t.Context(), dir, pattern, firstStart, []byte("x"))
		if err != nil || "`"+filepath.Base(path)+"`" != row[2] {
			t.Errorf("%s with %s: %s, %v; SCHEMA.md says %s", row[0], row[1], filepath.Base(path), err, row[2])
		}
	}
}

func TestSchemaDocReading(t *testing.T) {
	d := readSchemaDoc(t)
	for _, row := range d.table("reading", 3) {
		kind, raw, want := spans(row[0])[0], unescape(spans(row[1])[0]), unescape(spans(row[2])[0])
		got, err := schemafile.Source(schemafile.Kind(kind), "f", []byte(raw), schemafile.Object)
		if err != nil || string(got) != want {
			t.Errorf("%s %q is read as %q, %v; SCHEMA.md says %q", kind, raw, got, err, want)
		}
	}
}

var docPosition = regexp.MustCompile(`\b(\d+):(\d+)$`)

func TestSchemaDocRefusals(t *testing.T) {
	d := readSchemaDoc(t)
	seen := map[schemafile.Rule]bool{
		schemafile.RuleFalse: true, // not for files; the text below the table
	}
	for _, row := range d.table("refusals", 4) {
		rule, files := schemafile.Rule(row[0]), spans(row[1])
		seen[rule] = true
		dir := t.TempDir()
		var err error
		if strings.Contains(files[0], "/") {
			_, err = schemafile.Parse(files[0]) // no folder can hold it
		} else {
			for _, file := range files {
				placeExample(t, filepath.Join(dir, unescape(file)), row[2])
			}
			_, err = schemafile.Find(dir)
		}
		var e *schemafile.Error
		if !errors.As(err, &e) || e.Rule != rule {
			t.Errorf("%s with %q: %v; SCHEMA.md says %q", row[1], row[2], err, rule)
			continue
		}
		if e.Hint == "" || row[3] == "" {
			t.Errorf("%s: nothing says what to change: %v", row[1], err)
		}
		if m := docPosition.FindStringSubmatch(row[3]); m != nil && (strconv.Itoa(e.Line) != m[1] || strconv.Itoa(e.Col) != m[2]) {
			t.Errorf("%s with %q: refused at %d:%d; SCHEMA.md says %s", row[1], row[2], e.Line, e.Col, m[0])
		} else if m == nil && rule == schemafile.RuleJSON {
			t.Errorf("%s with %q: SCHEMA.md gives no position", row[1], row[2])
		}
	}
	for _, rule := range schemafile.Rules {
		if !seen[rule] {
			t.Errorf("SCHEMA.md has no example for %q", rule)
		}
	}
	if _, err := schemafile.Source(schemafile.JSON, "f", []byte("true"), schemafile.ObjectOrTrue); err != nil {
		t.Error(err)
	}
	var e *schemafile.Error
	if _, err := schemafile.Source(schemafile.JSON, "f", []byte("false"), schemafile.ObjectOrTrue); !errors.As(err, &e) || e.Rule != schemafile.RuleFalse {
		t.Errorf("false: %v", err)
	}
}

// placeExample makes the schema file of one row of the table of refusals.
func placeExample(t *testing.T, path, content string) {
	t.Helper()
	data := []byte("{}")
	switch content {
	case "":
	case "a folder":
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return
	case "a link to nothing":
		if err := os.Symlink("nothing", path); err != nil {
			t.Skip("no links here:", err)
		}
		return
	case "1048577 bytes":
		data = []byte("{" + strings.Repeat(" ", 1<<20-1) + "}")
	default:
		list := spans(content)
		if len(list) != 1 {
			t.Fatalf("content %q", content)
		}
		data = []byte(unescape(list[0]))
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSchemaDocSources(t *testing.T) {
	d := readSchemaDoc(t)
	_, err := constraint.ByteVocabulary()
	built := !errors.Is(err, constraint.ErrNotBuilt)
	for _, row := range d.table("sources", 3) {
		dir := t.TempDir()
		path := filepath.Join(dir, spans(row[0])[0])
		placeExample(t, path, row[1])
		file, err := schemafile.Find(dir)
		if err != nil {
			t.Error(err)
			continue
		}
		_, err = constraint.Compile(constraint.Spec{Kind: file.Kind(), Source: file.Source, File: path}, constraint.Options{})
		if !built && (err == nil || errors.Is(err, constraint.ErrNotBuilt)) {
			continue // the engine decides, and is not linked in
		}
		var r *constraint.Refusal
		if !errors.As(err, &r) || r.File != path || !strings.HasPrefix(err.Error(), path+":") {
			t.Errorf("%s with %s: %v; SCHEMA.md says it is refused", row[0], row[1], err)
		}
	}
}

func TestSchemaDocEnforcedBy(t *testing.T) {
	d := readSchemaDoc(t)
	var got []string
	for _, row := range d.table("enforced_by", 2) {
		got = append(got, spans(row[0])[0])
	}
	want := []string{string(constraint.ByMask), string(constraint.ByMaskValidation), string(constraint.ByServerValidation), string(constraint.ByValidation)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-code +SCHEMA.md):\n%s", diff)
	}
}

func TestSchemaDocParagraphs(t *testing.T) {
	d := readSchemaDoc(t)
	rows := d.table("paragraphs", 2)
	if len(rows) != 4 {
		t.Errorf("%d types", len(rows))
	}
	for _, row := range rows {
		spec := constraint.Spec{Kind: constraint.Kind(spans(row[0])[0]), Source: []byte("the source\n")}
		if got, want := turn.SchemaParagraph(spec), spans(row[1])[0]+"\nthe source"; got != want {
			t.Errorf("%s: %q; SCHEMA.md says %q", spec.Kind, got, want)
		}
	}
}

func TestSchemaDocLeftovers(t *testing.T) {
	d := readSchemaDoc(t)
	paragraph := func(marker string) []string {
		text, _, _ := strings.Cut(d.after(marker), "\n\n")
		return spans(text)
	}
	for _, name := range paragraph("list: leftover names") {
		if agents.IgnoredName(name) == "" || agents.IgnoredName(strings.ToUpper(name)) == "" {
			t.Errorf("%s is an input", name)
		}
	}
	endings := paragraph("list: leftover endings")
	for _, end := range endings {
		if agents.IgnoredName("x"+end) == "" || agents.IgnoredName("x"+strings.ToUpper(end)) == "" {
			t.Errorf("x%s is an input", end)
		}
	}
	for _, name := range []string{"#x#", "##", "~$x.md"} {
		if agents.IgnoredName(name) == "" {
			t.Errorf("%s is an input", name)
		}
	}
	// And the other way: whatever agents leaves out for its ending is listed.
	src, err := os.ReadFile("agents/filter.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\{"([^"]+)", "`).FindAllStringSubmatch(string(src), -1) {
		if !slices.Contains(endings, m[1]) {
			t.Errorf("SCHEMA.md does not list %s", m[1])
		}
	}
}

// docGraph writes the files that SCHEMA.md shows and returns the graph.
func docGraph(t *testing.T, d schemaDoc) string {
	t.Helper()
	root := t.TempDir()
	markers := regexp.MustCompile(`<!-- (file: (\S+)) -->`).FindAllStringSubmatch(d.text, -1)
	if len(markers) != 4 {
		t.Errorf("SCHEMA.md shows %d files", len(markers))
	}
	for _, m := range markers {
		path := filepath.Join(root, filepath.FromSlash(m[2]))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(d.block(m[1])), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// agentMessages are the messages of the agent's turn on one input.
func agentMessages(t *testing.T, root, agent, input string) []model.Message {
	t.Helper()
	g, err := agents.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	a := g.Agent(agent)
	if a == nil {
		t.Fatalf("no agent %s: %v", agent, g.Findings)
	}
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(input)))
	if err != nil {
		t.Fatal(err)
	}
	// The graph names no model, which is not what is tested here.
	a.Err = nil
	req, err := a.Turn([]agents.Input{{Path: input, Data: data}})
	if err != nil {
		t.Fatal(err)
	}
	return turn.Messages(req)
}

func TestSchemaDocPrompt(t *testing.T) {
	d := readSchemaDoc(t)
	root := docGraph(t, d)
	want := []model.Message{
		{Role: model.System, Content: strings.TrimSuffix(d.block("example: system message"), "\n")},
		{Role: model.User, Content: "Great kettle, boils fast.\n"},
	}
	got := agentMessages(t, root, "supervisor", "agents/supervisor/input/kettle.txt")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-SCHEMA.md +got):\n%s", diff)
	}
}

func TestSchemaDocSections(t *testing.T) {
	got := agents.UserText([]agents.Input{{Path: "agents/a/output/x.txt", Data: []byte("one\r\n\n")}, {Path: "agents/b/output/y.txt", Data: []byte("\ntwo")}})
	if want := "## agents/a/output/x.txt\n\none\n\n## agents/b/output/y.txt\n\n\ntwo"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The functions that SCHEMA.md shows are those of the client.
func TestSchemaDocCode(t *testing.T) {
	d := readSchemaDoc(t)
	markers := regexp.MustCompile(`<!-- (code: (\S+)) -->`).FindAllStringSubmatch(d.text, -1)
	if len(markers) == 0 {
		t.Error("SCHEMA.md shows no code")
	}
	for _, m := range markers {
		src, err := os.ReadFile(filepath.FromSlash(m[2]))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(src), d.block(m[1])) {
			t.Errorf("%s does not hold the code that SCHEMA.md shows", m[2])
		}
	}
}

// The contents lead to sections that exist.
func TestSchemaDocLinks(t *testing.T) {
	d := readSchemaDoc(t)
	var anchors []string
	for _, m := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllStringSubmatch(d.text, -1) {
		anchors = append(anchors, strings.ReplaceAll(strings.ToLower(m[1]), " ", "-"))
	}
	for _, m := range regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(d.text, -1) {
		if !slices.Contains(anchors, m[1]) {
			t.Errorf("SCHEMA.md links to #%s, which is no section", m[1])
		}
	}
}
