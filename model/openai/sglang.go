package openai

import "agentgraph/constraint"

// SGLang reads a JSON Schema from response_format, and expressions and
// grammars from fields of its own beside it.
var _ = register(&dialect{
	name: "sglang", title: "SGLang",
	ways: map[constraint.Kind]*way{
		constraint.JSON:  responseFormat(true),
		constraint.Regex: translated("regex", "the expression", asIs),
		constraint.Lark:  translated("ebnf", "translated to XGrammar EBNF", toEBNF.translate),
	},
	llguidance: map[constraint.Kind]*way{
		constraint.Lark: translated("ebnf", "the grammar as it is, %llguidance first", withOptionLine),
	},
	keywords: []keyword{
		ignored("multipleOf"), ignored("uniqueItems"), ignored("contains"), ignored("minContains"), ignored("maxContains"),
		ignored("propertyNames"), beside("maxLength", "pattern"), beside("minLength", "pattern"),
	},
	filters:     []string{"top_k", "min_p"},
	allTopK:     "-1",
	thinking:    templateThinking,
	version:     []versionQuery{{"get_server_info", []string{"version"}}, {"server_info", []string{"version"}}},
	contextSize: []versionQuery{{"v1/models", []string{"data", "0", "max_model_len"}}},
})
