package agents

import (
	"go.yaml.in/yaml/v4"
)

// The structs of this file are the settings as they are written. A nil field
// was not written. Tags:
//
//	doc      what the key does, for docs/settings.md
//	default  what holds when it is not written, for docs/settings.md
//	enum     the words it takes
//	min, max bounds of a number or duration
//	later    the key is known but what it asks for does not exist yet; it is
//	         refused by name, so that nobody relies on it in vain
//	path     a path, relative to the file it stands in

// graphFile is agentgraph.yaml.
type graphFile struct {
	Models    map[string]*ModelSpec `yaml:"models" doc:"The models of this graph, by name."`
	Defaults  *Options              `yaml:"defaults" doc:"What holds for every agent that says nothing else."`
	Limits    *LimitOptions         `yaml:"limits" doc:"Bounds, for every agent that says nothing else."`
	Settle    *Duration             `yaml:"settle" default:"200ms" min:"0s" max:"1h" doc:"How long size and time of a file must stay equal before it is an input. Where a read lease can be had (Linux, own files), a file that no writer has open is ready at once unless this is written."`
	MaxSettle *Duration             `yaml:"max_settle" default:"10s" min:"0s" max:"24h" doc:"A file that keeps changing or stays open is taken after this time."`
	Rescan    *Duration             `yaml:"rescan" default:"30s" min:"100ms" max:"24h" doc:"How often every folder is compared with the ledger, whatever the watcher reports."`
	Watch     *string               `yaml:"watch" default:"auto" enum:"auto,notify,poll" doc:"auto: notifications, and polling where there are none (network file systems, watch limit). notify, poll: that alone."`
}

// agentFile is agents/<name>/agent.yaml.
type agentFile struct {
	Options   `yaml:",inline"`
	Inputs    []string      `yaml:"inputs" default:"[input]" path:"1" doc:"Folders whose files start turns, relative to the agent's folder. Another agent's output folder makes an edge."`
	Join      *string       `yaml:"join" default:"any" enum:"any,all" doc:"any: each file is a turn of its own. all: one turn per complete set, one file of each folder, with the same lineage."`
	MaxHops   *int          `yaml:"max_hops" default:"8" min:"0" max:"1000000" doc:"How many edges an input may have passed. Cycles are refused unless an agent in them sets this itself."`
	Limits    *LimitOptions `yaml:"limits" doc:"Bounds for this agent."`
	Settle    *Duration     `yaml:"settle" default:"the graph's" min:"0s" max:"1h" doc:"As in agentgraph.yaml. An agent that sets it always waits that long."`
	MaxSettle *Duration     `yaml:"max_settle" default:"the graph's" min:"0s" max:"24h" doc:"As in agentgraph.yaml."`
}

// Options are the keys that defaults: and an agent share.
type Options struct {
	Model          *string          `yaml:"model" default:"–" doc:"A name from models:, a path ending in .gguf, or script:FILE."`
	Fallback       []string         `yaml:"fallback" default:"none" doc:"Models to try in order when the one before cannot be had: its file does not load, or its server does not answer. None is tried once a token may have been generated."`
	Prompt         *string          `yaml:"prompt" default:"none" doc:"Text that joins the system message after the files of system/."`
	SchemaInPrompt *bool            `yaml:"schema_in_prompt" default:"true" doc:"Whether the system message ends with the schema."`
	Sampling       *SamplingOptions `yaml:"sampling" doc:"How tokens are chosen."`
	History        *int             `yaml:"history" default:"0" min:"0" max:"10000" doc:"How many earlier turns of this agent (input and answer) stand in the prompt."`
	Samples        *int             `yaml:"samples" default:"1" min:"1" max:"1000" doc:"Answers per input, generated at the same time, each with a seed of its own: sampling.seed and one more for each further answer, or seeds that are drawn. A local model generates 8 of them at once, unless parallel: says otherwise."`
	Output         *OutputOptions   `yaml:"output" doc:"What answers are held to."`
	Tools          []ToolOptions    `yaml:"tools" default:"none" doc:"Tools the model may call; see below and docs/tools.md."`
	MaxToolRounds  *int             `yaml:"max_tool_rounds" default:"8" min:"0" max:"1000" doc:"Replies per turn that may call tools; after them the answer alone is left."`
	ToolFormat     *string          `yaml:"tool_format" default:"the chat template's" enum:"hermes,llama,mistral,mistral-args" doc:"How calls stand in the model's text."`
	ClientTools    *string          `yaml:"client_tools" default:"ask" enum:"allow,ask,deny" doc:"Policy of the tools that an editor brings: those of the MCP servers it names over the Agent Client Protocol. See docs/acp.md."`
	ToolOutput     *string          `yaml:"tool_output" default:"none" path:"1" doc:"A folder in the graph that gets the result of each tool call as a file."`
	StreamOutput   *string          `yaml:"stream_output" default:"none" path:"1" doc:"A folder in the graph that gets the answer while it is generated, as a file that ends in .part until the answer is published."`
	KeepStream     *bool            `yaml:"keep_stream" default:"false" doc:"Whether the file in stream_output stays after its turn, under the answer's name."`
	Thinking       *bool            `yaml:"thinking" default:"the template's" doc:"Switches a template's reasoning on or off."`
	Concurrency    *int             `yaml:"concurrency" default:"1" min:"1" max:"1024" doc:"Turns of one agent that run at once; answers are published in the order the inputs were claimed."`
	Retries        *int             `yaml:"retries" default:"3" min:"0" max:"1000" doc:"Further attempts after one that failed and may work later."`
	Timeout        *Duration        `yaml:"timeout" default:"10m" min:"1ms" max:"240h" doc:"Bound of one attempt."`
	Determinism    *string          `yaml:"determinism" default:"fast" enum:"fast,solo" doc:"solo: the same answer every time, alone in the batch."`
}

// ToolOptions is one entry of tools:; a plain word stands for {tool: WORD}.
type ToolOptions struct {
	Tool        *string           `yaml:"tool" short:"1" default:"–" doc:"A built-in (read_file, list_folder, write_note, send_message), or a program: a name on PATH, also without its ag-tool-, or a path with a '/'."`
	Command     []string          `yaml:"command" default:"–" doc:"A program with its first arguments."`
	MCP         *MCPOptions       `yaml:"mcp" default:"–" doc:"An MCP server."`
	Only        []string          `yaml:"only" default:"all" doc:"The tools of the MCP server that may be called."`
	Prefix      *string           `yaml:"prefix" default:"none" doc:"Stands before the names of the MCP server's tools."`
	Policy      *string           `yaml:"policy" default:"allow" enum:"allow,ask,deny" doc:"allow: calls run. ask: each waits for agentgraph approve. deny: not offered; a call ends the turn as policy_denied."`
	Policies    map[string]string `yaml:"policies" default:"policy" doc:"Policies of single tools of the MCP server, by name."`
	Timeout     *Duration         `yaml:"timeout" default:"1m" min:"1ms" max:"24h" doc:"Bound of one call."`
	OutputBytes *int              `yaml:"output_bytes" default:"8192" min:"1" max:"1048576" doc:"What the model reads of a result, and the record keeps."`
	Dir         *string           `yaml:"dir" default:"the agent's folder" path:"1" doc:"Working folder of a program; for read_file and list_folder the part of the graph they see, by default all of it."`
	Env         []string          `yaml:"env" default:"none" doc:"Environment variables, by name, that a program gets besides PATH, HOME and the like. Their values are taken out of results."`
}

// MCPOptions are the keys of tools.mcp:.
type MCPOptions struct {
	Command []string          `yaml:"command" default:"–" doc:"Starts a server that speaks on stdin and stdout."`
	URL     *string           `yaml:"url" default:"–" doc:"Address of a server that speaks streamable HTTP."`
	Headers map[string]string `yaml:"headers" default:"none" doc:"Headers of each request; a value is the name of the environment variable that holds it."`
}

// SamplingOptions are the keys of sampling:.
type SamplingOptions struct {
	Temperature *float64 `yaml:"temperature" default:"0" min:"0" max:"100" doc:"0 always takes the likeliest token."`
	TopK        *int     `yaml:"top_k" default:"off" min:"0" doc:"Only the K likeliest tokens."`
	TopP        *float64 `yaml:"top_p" default:"off" min:"0" max:"1" doc:"Only the likeliest tokens that add up to this probability."`
	MinP        *float64 `yaml:"min_p" default:"off" min:"0" max:"1" doc:"Only tokens at least this likely, relative to the likeliest."`
	Seed        *uint64  `yaml:"seed" default:"drawn, and recorded" doc:"Makes a sampled answer repeatable."`
	MaxTokens   *int     `yaml:"max_tokens" default:"1024 for a shaped answer, what the context leaves for a free one" min:"1" doc:"Most tokens of an answer."`
	Logprobs    *int     `yaml:"logprobs" default:"0" min:"0" max:"20" doc:"How many of the likeliest tokens the record keeps at each token of an answer, with their log probabilities; 0: none."`
}

// OutputOptions are the keys of output:.
type OutputOptions struct {
	Enforce *string        `yaml:"enforce" default:"mask" enum:"mask,validate" doc:"mask: refuse what cannot be held while generating. validate: let local validation decide that part."`
	Formats *string        `yaml:"formats" default:"mask" enum:"mask,assert,ignore" doc:"What JSON Schema's format does."`
	Schema  *yaml.Node     `yaml:"schema" default:"none" doc:"Under defaults only: the JSON Schema of a respond that is given none, as keys or as JSON text. An agent's schema is the .schema-* file in system/."`
	Repair  *RepairOptions `yaml:"repair" doc:"One bounded second attempt at an invalid answer."`
}

// RepairOptions are the keys of output.repair:.
type RepairOptions struct {
	Enabled          *bool `yaml:"enabled" default:"false" doc:"Whether an invalid answer is repaired once."`
	MaxFeedbackBytes *int  `yaml:"max_feedback_bytes" default:"4096" min:"512" max:"4096" doc:"Bound of the message that says what is wrong."`
}

// LimitOptions are the keys of limits:.
type LimitOptions struct {
	Preset         *string `yaml:"preset" default:"standard" enum:"standard,strict" doc:"The bounds that hold where no other key says more."`
	SchemaBytes    *int    `yaml:"schema_bytes" default:"1048576; strict 65536" min:"1" doc:"Size of a schema file."`
	SchemaNodes    *int    `yaml:"schema_nodes" default:"16384; strict 4096" min:"1" doc:"JSON values in a schema."`
	SchemaDepth    *int    `yaml:"schema_depth" default:"64; strict 32" min:"1" max:"1000" doc:"Nesting of a schema."`
	SchemaVisits   *int    `yaml:"schema_visits" default:"65536; strict 4096" min:"1" doc:"Schema objects visited with every reference expanded."`
	AnswerBytes    *int    `yaml:"answer_bytes" default:"1048576" min:"1" doc:"Size of an answer."`
	AnswerNodes    *int    `yaml:"answer_nodes" default:"65536" min:"1" doc:"JSON values in an answer."`
	AnswerDepth    *int    `yaml:"answer_depth" default:"64" min:"1" max:"1000" doc:"Nesting of an answer."`
	ValidationWork *int    `yaml:"validation_work" default:"16777216" min:"1" doc:"Schema objects applied to instance nodes."`
	InputBytes     *int    `yaml:"input_bytes" default:"1048576" min:"1" doc:"Size of an input."`
	ModelCalls     *int    `yaml:"model_calls" default:"max_tool_rounds + 2" min:"1" doc:"Calls of the model per turn."`
}

// ModelSpec is one entry of models:. Exactly one of GGUF, Script, Server and
// Plugin is written.
type ModelSpec struct {
	// Name is the key in models:, or a path or script:FILE made absolute.
	Name string `yaml:"-"`
	// Root is the folder of the graph; empty outside one.
	Root string `yaml:"-" json:"-"`

	GGUF       string    `yaml:"gguf" default:"–" path:"1" doc:"A GGUF file, run in this process."`
	Context    int       `yaml:"context" default:"the file's, at most 4096" min:"0" doc:"Tokens of prompt and answer."`
	Parallel   int       `yaml:"parallel" default:"the engine's" min:"0" max:"1024" doc:"Turns that run at once on this model."`
	Threads    int       `yaml:"threads" default:"physical cores" min:"0" max:"4096" doc:"CPU threads."`
	GPULayers  int       `yaml:"gpu_layers" default:"0" min:"0" doc:"Layers on a GPU. The native library that make builds has no GPU backend, and a model that asks for one is refused with that reason."`
	IdleUnload *Duration `yaml:"idle_unload" default:"never" min:"100ms" doc:"Free a GGUF model's memory after this time without a turn; the next turn loads it again."`

	Script string `yaml:"script" default:"–" path:"1" doc:"A file of scripted answers, to try a graph without a model."`

	Server         string          `yaml:"server" default:"–" enum:"generic,llamacpp,mistralrs,ollama,openai,sglang,vllm" doc:"A server that speaks the OpenAI API, and which; generic is any other. See docs/servers.md."`
	URL            string          `yaml:"url" default:"–" doc:"Where the server's API is, as in http://127.0.0.1:8000/v1; without a path, /v1 is meant."`
	Model          string          `yaml:"model" default:"–; llamacpp has one" doc:"The server's name for the model; a plug-in gets it as the request's model."`
	Key            *KeyOptions     `yaml:"key" secret:"1" default:"none" doc:"Where the server's key comes from, one of the two. It goes to the host of url and nowhere else."`
	ServerCommand  *CommandOptions `yaml:"server_command" default:"none" doc:"Starts the server before it is first asked, again when it dies, and stops it at the end. [PROGRAM, ARGUMENT, …] is short for {command: …}."`
	StartupTimeout *Duration       `yaml:"startup_timeout" default:"5m" min:"100ms" max:"24h" doc:"How long a started server may take until it answers."`
	TLSCA          string          `yaml:"tls_ca" default:"the system's" path:"1" doc:"A PEM file of certificates to trust instead."`
	Proxy          string          `yaml:"proxy" default:"HTTP_PROXY, HTTPS_PROXY, NO_PROXY" doc:"Proxy for this server: http://HOST:PORT, socks5://HOST:PORT or none."`
	Backend        string          `yaml:"backend" default:"the server's" enum:"llguidance" doc:"What the server constrains with, where that is not its usual one: with llguidance, Lark grammars travel as they are."`
	Plugin         *PluginOptions  `yaml:"plugin" default:"–" doc:"A program that answers, one process per call; a plain word stands for {name: WORD}. See docs/plugins.md."`
	Constraints    []string        `yaml:"constraints" default:"as probed; a plug-in's description" enum:"json,regex,lark,llg" doc:"The kinds of schema that a server or plug-in is declared to hold; [] declares none."`
}

// KeyOptions are the keys of models.<name>.key:.
type KeyOptions struct {
	Env  *string `yaml:"env" default:"–" doc:"Name of the environment variable that holds it."`
	File *string `yaml:"file" default:"–" path:"1" doc:"A file that holds it and nothing else."`
}

// PluginOptions are the keys of models.<name>.plugin:.
type PluginOptions struct {
	Name    *string  `yaml:"name" short:"1" default:"–" doc:"NAME for the program ag-provider-NAME on PATH, or a path with a '/'."`
	Command []string `yaml:"command" default:"–" doc:"Instead of name: a program with its first arguments."`
	Env     []string `yaml:"env" default:"none" doc:"Environment variables, by name, that it gets besides PATH, HOME and the like and AG_PROVIDER_NAME_*. Their values are taken out of messages."`
}

// CommandOptions are the keys of models.<name>.server_command:.
type CommandOptions struct {
	Command []string `yaml:"command" list:"1" default:"–" doc:"A program with its arguments; it must stay in the foreground and listen where url says."`
	Dir     *string  `yaml:"dir" default:"the graph's folder" path:"1" doc:"Working folder."`
	Env     []string `yaml:"env" default:"none" doc:"Environment variables, by name, that it gets besides PATH, HOME and the like. Their values are taken out of its log."`
}
