package openai

import "agentgraph/constraint"

// OpenAI takes a JSON Schema by strict rules, and expressions and Lark grammars
// as the format of a custom tool that the model has to call.
var _ = register(&dialect{
	name: "openai", title: "OpenAI",
	ways: map[constraint.Kind]*way{
		constraint.JSON:  responseFormat(true),
		constraint.Regex: customTool("regex", "the expression"),
		constraint.Lark:  customTool("lark", "the grammar as it is"),
	},
	strict:     true,
	maxTokens:  "max_completion_tokens",
	jsonCanary: `{"type":"object","properties":{"k":{"type":"string","enum":["zq7"]}},"required":["k"],"additionalProperties":false}`,
})

// customTool asks for one call of a tool whose input is the answer.
func customTool(syntax, form string) *way {
	return &way{Field: "tools, a custom tool with format " + syntax, Form: form, whole: true,
		put: func(b *object, spec constraint.Spec) *constraint.Refusal {
			var tool object
			tool.set("type", "custom")
			tool.nest("custom", func(c *object) {
				c.set("name", answerTool)
				c.set("description", "Takes the answer, and nothing beside it.")
				c.nest("format", func(f *object) {
					f.set("type", "grammar")
					f.nest("grammar", func(g *object) {
						g.set("syntax", syntax)
						g.set("definition", string(spec.Source))
					})
				})
			})
			b.raw("tools", append(append([]byte{'['}, tool.bytes()...), ']'))
			b.raw("tool_choice", []byte(`{"type":"custom","custom":{"name":"`+answerTool+`"}}`))
			return nil
		}}
}

// answerTool is the custom tool whose input is the answer.
const answerTool = "answer"
