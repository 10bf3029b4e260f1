package openai

import "agentgraph/constraint"

// vLLM reads constraints from structured_outputs. Names it used before,
// guided_json and the like, are dropped without a word by newer versions, so
// they are never sent.
var _ = register(&dialect{
	name: "vllm", title: "vLLM",
	ways: map[constraint.Kind]*way{
		constraint.JSON:  structured("json", "the file's bytes", nil),
		constraint.Regex: structured("regex", "the expression", asIs),
		constraint.Lark:  structured("grammar", "translated to XGrammar EBNF", toEBNF.translate),
	},
	llguidance: map[constraint.Kind]*way{
		constraint.Lark: structured("grammar", "the grammar as it is", withOptionLine),
	},
	keywords:    []keyword{beside("maxLength", "pattern"), beside("minLength", "pattern")},
	filters:     []string{"top_k", "min_p"},
	allTopK:     "-1",
	thinking:    templateThinking,
	version:     []versionQuery{{"version", []string{"version"}}},
	contextSize: []versionQuery{{"v1/models", []string{"data", "0", "max_model_len"}}},
})

// structured is a member of structured_outputs; without translate it holds the
// schema itself.
func structured(member, form string, translate func(constraint.Spec) (string, *constraint.Refusal)) *way {
	return &way{Field: "structured_outputs." + member, Form: form, put: func(b *object, spec constraint.Spec) *constraint.Refusal {
		value := schema(spec)
		if translate != nil {
			s, r := translate(spec)
			if r != nil {
				return r
			}
			value = quote(s)
		}
		b.nest("structured_outputs", func(o *object) { o.raw(member, value) })
		return nil
	}}
}
