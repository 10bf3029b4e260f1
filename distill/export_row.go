package distill

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"agentgraph/internal/plainjson"
	"agentgraph/model"
	"agentgraph/record"
)

// Layout is the form of an export's rows.
type Layout string

// The layouts that trainers read.
const (
	// Chat has the whole conversation in "messages" (TRL, Axolotl and others).
	Chat Layout = "messages"
	// PromptCompletion has "prompt" and "completion", both lists of messages
	// (TRL).
	PromptCompletion Layout = "prompt-completion"
	// ShareGPT has "conversations" with "from" and "value".
	ShareGPT Layout = "sharegpt"
	// Preference has "prompt", "chosen" and "rejected", lists of messages (TRL's
	// DPO and others).
	Preference Layout = "preference"
)

// Layouts are all layouts.
var Layouts = []Layout{Chat, PromptCompletion, ShareGPT, Preference}

// The types of nested columns, with their names in JSON and Parquet.
type (
	messageCell struct {
		Role    string `json:"role" parquet:"role"`
		Content string `json:"content" parquet:"content"`
	}
	toolMessageCell struct {
		Role       string     `json:"role" parquet:"role"`
		Content    string     `json:"content" parquet:"content"`
		ToolCalls  []callCell `json:"tool_calls" parquet:"tool_calls,list"`
		ToolCallID string     `json:"tool_call_id" parquet:"tool_call_id"`
		Name       string     `json:"name" parquet:"name"`
	}
	callCell struct {
		ID       string       `json:"id" parquet:"id"`
		Type     string       `json:"type" parquet:"type"`
		Function functionCell `json:"function" parquet:"function"`
	}
	functionCell struct {
		Name      string `json:"name" parquet:"name"`
		Arguments string `json:"arguments" parquet:"arguments"` // JSON
	}
	sharegptCell struct {
		From  string `json:"from" parquet:"from"`
		Value string `json:"value" parquet:"value"`
	}
	fileCell struct {
		Path   string `json:"path" parquet:"path"`
		SHA256 string `json:"sha256" parquet:"sha256"`
		Bytes  int64  `json:"bytes" parquet:"bytes"`
	}
	topCell struct {
		Token   string  `json:"token" parquet:"token"`
		Bytes   *string `json:"bytes" parquet:"bytes,optional"` // base64
		Logprob float64 `json:"logprob" parquet:"logprob"`
	}
	tokenCell struct {
		Token   string    `json:"token" parquet:"token"`
		Bytes   *string   `json:"bytes" parquet:"bytes,optional"`
		Logprob float64   `json:"logprob" parquet:"logprob"`
		Top     []topCell `json:"top_logprobs" parquet:"top_logprobs,list"`
	}
)

// example is what one row is made of.
type example struct {
	rec    *record.Record
	path   string // of the answer
	sha256 string
	answer string
	score  *float64

	// Of a pair, what was rejected, why, and its score.
	pair          string
	rejected      string
	rejectedID    string
	rejectedScore *float64
}

// column is one column of an export.
type column struct {
	name     string
	typ      reflect.Type
	optional bool
	get      func(*shape, *example) any
}

// shape is how examples become rows: the columns of a layout, without those
// that are dropped.
type shape struct {
	layout     Layout
	license    string
	hashInputs bool
	tools      bool
	dropped    [][]string // members of answers that are JSON
	columns    []column
	row        reflect.Type
}

func col[T any](name string, get func(*shape, *example) T) column {
	return column{name: name, typ: reflect.TypeFor[T](), optional: reflect.TypeFor[T]().Kind() == reflect.Pointer,
		get: func(s *shape, e *example) any { return get(s, e) }}
}

// layoutColumns are the columns that a trainer reads.
func layoutColumns(layout Layout, tools bool) []column {
	lists := func(name string, get func(s *shape, e *example) []model.Message) column {
		if tools {
			return col(name, func(s *shape, e *example) []toolMessageCell { return toolMessages(s.hide(get(s, e))) })
		}
		return col(name, func(s *shape, e *example) []messageCell { return messages(s.hide(get(s, e))) })
	}
	prompt := func(s *shape, e *example) []model.Message { return conversation(e.rec) }
	answer := func(s *shape, e *example) []model.Message { return []model.Message{s.reply(e.answer)} }
	var list []column
	switch layout {
	case Chat:
		list = []column{lists("messages", func(s *shape, e *example) []model.Message {
			return append(conversation(e.rec), s.reply(e.answer))
		})}
	case PromptCompletion:
		list = []column{lists("prompt", prompt), lists("completion", answer)}
	case ShareGPT:
		list = []column{col("conversations", func(s *shape, e *example) []sharegptCell {
			return sharegpt(s.hide(append(conversation(e.rec), s.reply(e.answer))))
		})}
	case Preference:
		list = []column{lists("prompt", prompt), lists("chosen", answer),
			lists("rejected", func(s *shape, e *example) []model.Message { return []model.Message{s.reply(e.rejected)} }),
			col("pair", func(_ *shape, e *example) string { return e.pair }),
			col("score_chosen", func(_ *shape, e *example) *float64 { return e.score }),
			col("score_rejected", func(_ *shape, e *example) *float64 { return e.rejectedScore }),
			col("rejected_id", func(_ *shape, e *example) string { return e.rejectedID }),
		}
	}
	if tools {
		list = append(list, col("tools", func(_ *shape, e *example) string { return toolsJSON(e.rec.Request.Tools) }))
	}
	if layout != Preference {
		list = append(list, col("score", func(_ *shape, e *example) *float64 { return e.score }))
	}
	return list
}

// commonColumns say where a row comes from.
func commonColumns() []column {
	constraintOf := func(e *example) record.Constraint {
		if c := e.rec.Request.Constraint; c != nil {
			return *c
		}
		return record.Constraint{}
	}
	return []column{
		col("id", func(_ *shape, e *example) string { return deref(e.rec.TurnID) }),
		col("agent", func(_ *shape, e *example) string { return deref(e.rec.Agent) }),
		col("sample", func(_ *shape, e *example) *int64 {
			if e.rec.Sample == nil {
				return nil
			}
			n := int64(e.rec.Sample.Index)
			return &n
		}),
		col("reasoning", func(_ *shape, e *example) string { return e.rec.Outcome.Reasoning }),
		col("schema_kind", func(_ *shape, e *example) string { return string(constraintOf(e).Kind) }),
		col("schema_file", func(_ *shape, e *example) string { return constraintOf(e).File }),
		col("schema_sha256", func(_ *shape, e *example) string { return constraintOf(e).SHA256 }),
		col("schema", func(_ *shape, e *example) string { return constraintOf(e).Source }),
		col("validation", func(_ *shape, e *example) string { return string(e.rec.OutputValidation.Status) }),
		col("enforced_by", func(_ *shape, e *example) string {
			if by := e.rec.OutputValidation.EnforcedBy; by != nil {
				return string(*by)
			}
			return ""
		}),
		col("repaired", func(_ *shape, e *example) bool {
			return e.rec.Repair != nil && e.rec.Repair.Status == record.RepairSucceeded
		}),
		col("model", func(_ *shape, e *example) string { return e.rec.Request.Model.Name }),
		col("model_engine", func(_ *shape, e *example) string { return e.rec.Request.Model.Engine }),
		col("model_sha256", func(_ *shape, e *example) string { return e.rec.Request.Model.WeightsSHA256 }),
		col("sampling", func(_ *shape, e *example) string { return compactJSON(e.rec.Request.Sampling) }),
		col("inputs", func(s *shape, e *example) []fileCell { return s.files(e.rec.Inputs) }),
		col("root_inputs", func(s *shape, e *example) []fileCell {
			if l := e.rec.Lineage; l != nil {
				return s.files(l.Roots)
			}
			return []fileCell{}
		}),
		col("hops", func(_ *shape, e *example) int64 {
			if l := e.rec.Lineage; l != nil {
				return int64(l.Hops)
			}
			return 0
		}),
		col("trace_id", func(_ *shape, e *example) string { return deref(e.rec.TraceID) }),
		col("output_path", func(_ *shape, e *example) string { return e.path }),
		col("output_sha256", func(_ *shape, e *example) string { return e.sha256 }),
		// A number: loaders that guess types would take a text for a time, and
		// lose its zone.
		col("created_ms", func(_ *shape, e *example) *int64 {
			if t := e.rec.Timing; t != nil {
				ms := t.Started.UnixMilli()
				return &ms
			}
			return nil
		}),
		col("input_tokens", func(_ *shape, e *example) *int64 { return usage(e.rec).InputTokens }),
		col("output_tokens", func(_ *shape, e *example) *int64 { return usage(e.rec).OutputTokens }),
		col("logprobs", func(_ *shape, e *example) []tokenCell { return tokens(e.rec.Outcome.Logprobs) }),
		col("license", func(s *shape, _ *example) string { return s.license }),
	}
}

// newShape is the shape of a layout. drop names columns, or members of answers
// as "answer.MEMBER"; roles of messages are dropped as "messages.ROLE".
func newShape(o *ExportOptions) (*shape, error) {
	s := &shape{layout: o.Layout, license: o.License, hashInputs: o.HashInputs, tools: o.Tools}
	if !slices.Contains(Layouts, s.layout) {
		return nil, fmt.Errorf("layout %q: it is %s", s.layout, oneOf(Layouts))
	}
	all := append(layoutColumns(s.layout, s.tools), commonColumns()...)
	drop := map[string]bool{}
	for _, name := range o.DropFields {
		if ref, err := ParseRef(name); err == nil && ref.Agent == "" && len(ref.Path) > 0 {
			s.dropped = append(s.dropped, ref.Path)
			// Either would tell what was dropped.
			drop["logprobs"], drop["reasoning"] = true, true
			continue
		}
		if !slices.ContainsFunc(all, func(c column) bool { return c.name == name }) {
			var names []string
			for _, c := range all {
				names = append(names, c.name)
			}
			return nil, fmt.Errorf("there is no column %q to drop; the columns are %s; a member of a JSON answer is dropped as answer.MEMBER", name, strings.Join(names, ", "))
		}
		drop[name] = true
	}
	var fields []reflect.StructField
	for _, c := range all {
		if drop[c.name] {
			continue
		}
		tag := c.name
		switch {
		case c.typ.Kind() == reflect.Slice:
			tag += ",list"
		case c.optional:
			tag += ",optional"
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("C%d", len(fields)), Type: c.typ,
			Tag: reflect.StructTag(fmt.Sprintf(`json:%q parquet:%q`, c.name, tag))})
		s.columns = append(s.columns, c)
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("every column is dropped")
	}
	s.row = reflect.StructOf(fields)
	return s, nil
}

func oneOf[T ~string](list []T) string {
	var names []string
	for _, x := range list {
		names = append(names, string(x))
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// make makes the row of an example.
func (s *shape) make(e *example) reflect.Value {
	row := reflect.New(s.row).Elem()
	for i, c := range s.columns {
		row.Field(i).Set(reflect.ValueOf(c.get(s, e)))
	}
	return row
}

// reply is the message that a trainer is to learn.
func (s *shape) reply(answer string) model.Message {
	for _, path := range s.dropped {
		if b, ok := dropMember([]byte(answer), path); ok {
			answer = string(b)
		}
	}
	return model.Message{Role: model.Assistant, Content: answer}
}

// conversation is what the model read before its answer: the messages of the
// request and the tool rounds. A repair is left out: what is to be learned is
// the right answer to the question.
func conversation(r *record.Record) []model.Message {
	msgs := slices.Clone(r.Request.Messages)
	next := 0
	for _, round := range r.ToolRounds {
		calls := r.ToolCalls[min(next, len(r.ToolCalls)):min(next+round.Calls, len(r.ToolCalls))]
		next += round.Calls
		m := model.Message{Role: model.Assistant, Content: round.Text}
		for _, c := range calls {
			m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		msgs = append(msgs, m)
		for _, c := range calls {
			msgs = append(msgs, model.Message{Role: model.ToolRole, Content: deref(c.Result), ToolCallID: c.ID, Name: c.Name})
		}
	}
	return msgs
}

// hide takes dropped members out of earlier answers and replaces what came
// from outside by its hash, where that is asked for.
func (s *shape) hide(msgs []model.Message) []model.Message {
	for i, m := range msgs {
		if m.Role == model.Assistant {
			msgs[i].Content = s.reply(m.Content).Content
		}
		if !s.hashInputs {
			continue
		}
		if m.Role == model.User || m.Role == model.ToolRole {
			msgs[i].Content = hashText(m.Content)
		}
		for k, c := range m.ToolCalls {
			args, _ := json.Marshal(map[string]string{"sha256": hashText(string(c.Arguments))}) // strings always marshal
			msgs[i].ToolCalls[k].Arguments = args
		}
	}
	return msgs
}

func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (s *shape) files(refs []record.FileRef) []fileCell {
	cells := make([]fileCell, len(refs))
	for i, f := range refs {
		cells[i] = fileCell{f.Path, f.SHA256, f.Bytes}
		if s.hashInputs {
			cells[i].Path = hashText(f.Path)
		}
	}
	return cells
}

func messages(msgs []model.Message) []messageCell {
	cells := make([]messageCell, len(msgs))
	for i, m := range msgs {
		cells[i] = messageCell{string(m.Role), m.Content}
	}
	return cells
}

func toolMessages(msgs []model.Message) []toolMessageCell {
	cells := make([]toolMessageCell, len(msgs))
	for i, m := range msgs {
		cells[i] = toolMessageCell{Role: string(m.Role), Content: m.Content, ToolCalls: []callCell{}, ToolCallID: m.ToolCallID, Name: m.Name}
		for _, c := range m.ToolCalls {
			cells[i].ToolCalls = append(cells[i].ToolCalls, callCell{c.ID, "function", functionCell{c.Name, string(model.CompactArguments(c.Arguments))}})
		}
	}
	return cells
}

// sharegpt has no place for ids: calls and results follow each other.
func sharegpt(msgs []model.Message) []sharegptCell {
	from := map[model.Role]string{model.System: "system", model.User: "human", model.Assistant: "gpt", model.ToolRole: "observation"}
	cells := []sharegptCell{}
	for _, m := range msgs {
		if m.Content != "" || len(m.ToolCalls) == 0 {
			cells = append(cells, sharegptCell{from[m.Role], m.Content})
		}
		for _, c := range m.ToolCalls {
			cells = append(cells, sharegptCell{"function_call", compactJSON(struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			}{c.Name, c.Arguments})})
		}
	}
	return cells
}

func toolsJSON(tools []model.Tool) string {
	if len(tools) == 0 {
		return ""
	}
	type function struct {
		Type     string     `json:"type"`
		Function model.Tool `json:"function"`
	}
	list := make([]function, len(tools))
	for i, t := range tools {
		list[i] = function{"function", t}
	}
	return compactJSON(list)
}

func tokens(list []model.TokenLogprob) []tokenCell {
	cells := make([]tokenCell, len(list))
	for i, t := range list {
		cells[i] = tokenCell{t.Token, base64Of(t.Bytes), t.Logprob, make([]topCell, len(t.Top))}
		for k, x := range t.Top {
			cells[i].Top[k] = topCell{x.Token, base64Of(x.Bytes), x.Logprob}
		}
	}
	return cells
}

func base64Of(b []byte) *string {
	if b == nil {
		return nil
	}
	s := strings.Trim(compactJSON(b), `"`)
	return &s
}

func usage(r *record.Record) model.Usage {
	if u := r.Outcome.Usage; u != nil {
		return *u
	}
	return model.Usage{}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// compactJSON encodes what always encodes; <, > and & stand as they are.
func compactJSON(v any) string {
	b, err := plainjson.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// dropMember takes a member out of a JSON value and leaves the bytes of the
// others as they are; in lists it is taken out of each. ok is false when text
// is no JSON.
func dropMember(text []byte, path []string) (out []byte, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(text))
	open, err := dec.Token()
	if err != nil {
		return nil, false
	}
	delim, nested := open.(json.Delim)
	if !nested {
		return text, true
	}
	var b bytes.Buffer
	b.WriteString(delim.String())
	for first := true; dec.More(); {
		key := ""
		if delim == '{' {
			t, err := dec.Token()
			if err != nil {
				return nil, false
			}
			key = t.(string) // a decoder gives nothing else here
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil, false
		}
		switch {
		case delim == '{' && key == path[0] && len(path) == 1:
			continue
		case delim == '{' && key == path[0]:
			if value, ok = dropMember(value, path[1:]); !ok {
				return nil, false
			}
		case delim == '[':
			if value, ok = dropMember(value, path); !ok {
				return nil, false
			}
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		if delim == '{' {
			b.WriteString(compactJSON(key) + ":")
		}
		b.Write(value)
	}
	end, err := dec.Token()
	if err != nil {
		return nil, false
	}
	b.WriteString(end.(json.Delim).String())
	return b.Bytes(), true
}

// sortedKeys are the keys of m in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
