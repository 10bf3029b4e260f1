package openai

import "agentgraph/constraint"

// mistral.rs runs llguidance and takes all four kinds in one field, which
// excludes response_format.
var _ = register(&dialect{
	name: "mistralrs", title: "mistral.rs",
	ways: map[constraint.Kind]*way{
		constraint.JSON:  grammarField("json_schema", "the file's bytes", schema),
		constraint.Regex: grammarField("regex", "the expression", quoted),
		constraint.Lark:  grammarField("lark", "the grammar as it is", quoted),
		constraint.LLG:   grammarField("llguidance", "the file's bytes", schema),
	},
	filters:  []string{"top_k", "min_p"},
	thinking: func(b *object, on bool) { b.set("enable_thinking", on) },
})

func quoted(spec constraint.Spec) []byte { return quote(string(spec.Source)) }

func grammarField(typ, form string, value func(constraint.Spec) []byte) *way {
	return &way{Field: "grammar, type " + typ, Form: form, put: func(b *object, spec constraint.Spec) *constraint.Refusal {
		b.nest("grammar", func(g *object) {
			g.set("type", typ)
			g.raw("value", value(spec))
		})
		return nil
	}}
}
