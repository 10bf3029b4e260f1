package openai

import "agentgraph/constraint"

// llama.cpp's server holds a JSON Schema, or a GBNF grammar, to which
// expressions and Lark are translated. It skips keywords that it does not know
// and refuses a grammar beside tools.
var _ = register(&dialect{
	name: "llamacpp", title: "llama.cpp server", modelOptional: true,
	ways: map[constraint.Kind]*way{
		constraint.JSON:  responseFormat(true),
		constraint.Regex: translated("grammar", "translated to GBNF", toGBNF.translate),
		constraint.Lark:  translated("grammar", "translated to GBNF", toGBNF.translate),
	},
	llguidance: map[constraint.Kind]*way{
		constraint.Lark: translated("grammar", "the grammar as it is, %llguidance first", withOptionLine),
	},
	keywords: llamaKeywords, objectsOnly: true,
	filters: []string{"top_k", "min_p"},
	allTopK: "0",
	// One more is its word for "draw one".
	maxSeed:     1<<32 - 2,
	thinking:    templateThinking,
	version:     []versionQuery{{"props", []string{"build_info"}}},
	contextSize: []versionQuery{{"props", []string{"default_generation_settings", "n_ctx"}}},
})

// llamaKeywords are what llama.cpp's translation of schemas leaves out; Ollama
// uses the same one.
var llamaKeywords = []keyword{
	ignored("multipleOf"), ignored("uniqueItems"), ignored("contains"), ignored("minContains"), ignored("maxContains"),
	ignored("minProperties"), ignored("maxProperties"), ignored("patternProperties"), ignored("propertyNames"),
	ofNumbers("minimum"), ofNumbers("maximum"), ofNumbers("exclusiveMinimum"), ofNumbers("exclusiveMaximum"),
	beside("maxLength", "pattern"), beside("minLength", "pattern"), plainPatterns(),
	beside("anyOf", "properties"), beside("oneOf", "properties"),
}
