package openai

import (
	"bytes"
	"maps"
	"slices"

	"agentgraph/constraint"
	"agentgraph/internal/plainjson"
	"agentgraph/model"
)

// dialect is what one kind of server does differently.
type dialect struct {
	name  string // in the settings
	title string // for people
	// native is set where the server is asked by a protocol of its own.
	native bool
	// modelOptional is set where a server has one model, whatever it is called.
	modelOptional bool
	// ways say how each kind travels; a kind that is missing does not.
	ways map[constraint.Kind]*way
	// llguidance are the ways to a server that is declared to run it.
	llguidance map[constraint.Kind]*way
	// keywords are the JSON Schema keywords that the server does not hold.
	keywords []keyword
	// objectsOnly is set where true and false are no schemas.
	objectsOnly bool
	// strict is set where a schema must keep OpenAI's rules.
	strict bool
	// filters are the sampling settings it takes beyond OpenAI's.
	filters []string
	// allTopK is its word for no top_k; empty where leaving it out is one.
	allTopK string
	// maxTokens is the field that bounds the answer.
	maxTokens string
	// maxSeed is the largest seed it takes; 0 is OpenAI's int64.
	maxSeed uint64
	// thinking adds the field that switches reasoning; nil has none.
	thinking func(b *object, on bool)
	// version asks which version of the server this is.
	version []versionQuery
	// contextSize asks how many tokens the model holds.
	contextSize []versionQuery
	// jsonCanary is what probes JSON Schema where the common one is refused.
	jsonCanary string
}

// way is how one kind travels.
type way struct {
	// Field is the request's field, for tables.
	Field string
	// Form says what stands in it, for tables.
	Form string
	// put writes the fields for the source. Its error is a refusal.
	put func(b *object, spec constraint.Spec) *constraint.Refusal
	// whole asks for the reply in one piece, where it does not stream.
	whole bool
}

// versionQuery is a document of the server and the place in it.
type versionQuery struct {
	path string
	keys []string
}

var dialects = map[string]*dialect{}

func register(d *dialect) *dialect {
	if d.maxTokens == "" {
		d.maxTokens = "max_tokens"
	}
	dialects[d.name] = d
	return d
}

// Dialects are the kinds of server, by the name that the settings use.
func Dialects() []string { return slices.Sorted(maps.Keys(dialects)) }

func (d *dialect) way(kind constraint.Kind, llguidance bool) *way {
	if llguidance && d.llguidance[kind] != nil {
		return d.llguidance[kind]
	}
	return d.ways[kind]
}

// takes reports whether the dialect takes a sampling setting beyond OpenAI's.
func (d *dialect) takes(filter string) bool { return slices.Contains(d.filters, filter) }

// Travel is one row of the table of dialects.
type Travel struct {
	Server, Title string
	Kind          constraint.Kind
	Field, Form   string // empty: the kind does not travel
	// LLGuidance is set where the server is declared to run llguidance.
	LLGuidance bool
}

// Travels lists how each kind travels to each kind of server.
func Travels() []Travel {
	var rows []Travel
	for _, name := range Dialects() {
		d := dialects[name]
		for _, k := range Kinds {
			row := Travel{Server: name, Title: d.title, Kind: k}
			if w := d.ways[k]; w != nil {
				row.Field, row.Form = w.Field, w.Form
			}
			rows = append(rows, row)
			if w := d.llguidance[k]; w != nil {
				rows = append(rows, Travel{name, d.title, k, w.Field, w.Form, true})
			}
		}
	}
	return rows
}

// object writes a JSON object member by member, so that raw JSON stays as it
// is and members keep their order.
type object struct{ buf bytes.Buffer }

func (o *object) raw(key string, value []byte) {
	sep := byte(',')
	if o.buf.Len() == 0 {
		sep = '{'
	}
	o.buf.WriteByte(sep)
	o.buf.Write(quote(key))
	o.buf.WriteByte(':')
	o.buf.Write(value)
}

func (o *object) set(key string, value any) {
	b, err := encode(value)
	if err != nil {
		panic("openai: " + err.Error()) // of our own types
	}
	o.raw(key, b)
}

// nest writes a member that is itself an object.
func (o *object) nest(key string, fill func(*object)) {
	var in object
	fill(&in)
	o.raw(key, in.bytes())
}

func (o *object) bytes() []byte {
	if o.buf.Len() == 0 {
		return []byte("{}")
	}
	return append(bytes.Clone(o.buf.Bytes()), '}')
}

func encode(v any) ([]byte, error) { return plainjson.Marshal(v) }

func quote(s string) []byte { return []byte(plainjson.Quote(s)) }

// Ways of travel that several dialects share.

// schema is the source of a JSON Schema as a server reads it: the file's
// bytes, and the object that means the same for true.
func schema(spec constraint.Spec) []byte {
	if src := bytes.TrimSpace(spec.Source); string(src) == "true" {
		return []byte("{}")
	}
	return spec.Source
}

// responseFormat is OpenAI's field for a JSON Schema.
func responseFormat(strict bool) *way {
	return &way{Field: "response_format", Form: "json_schema with the file's bytes",
		put: func(b *object, spec constraint.Spec) *constraint.Refusal {
			b.nest("response_format", func(f *object) {
				f.set("type", "json_schema")
				f.nest("json_schema", func(s *object) {
					s.set("name", "answer")
					s.raw("schema", schema(spec))
					s.set("strict", strict)
				})
			})
			return nil
		}}
}

// translated is a field that holds what translate makes of the source.
func translated(field, form string, translate func(constraint.Spec) (string, *constraint.Refusal)) *way {
	return &way{Field: field, Form: form, put: func(b *object, spec constraint.Spec) *constraint.Refusal {
		s, r := translate(spec)
		if r == nil {
			b.set(field, s)
		}
		return r
	}}
}

func templateThinking(b *object, on bool) {
	b.nest("chat_template_kwargs", func(k *object) { k.set("enable_thinking", on) })
}

// capabilityError wraps a refusal as the failure of a call that was not made.
func (m *Model) capabilityError(r *constraint.Refusal) *model.Error {
	return &model.Error{Kind: model.Capability, Delivery: model.NotSent, Model: m.id.String(), Err: r}
}
