package openai

import "agentgraph/constraint"

// generic is any other server: it is asked for a JSON Schema as OpenAI is, and
// believed once it has shown that it holds one.
var _ = register(&dialect{
	name: "generic", title: "OpenAI-compatible server",
	ways: map[constraint.Kind]*way{constraint.JSON: responseFormat(true)},
})
