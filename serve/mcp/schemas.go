package mcp

// The schemas of the tools, written out: an inferred schema of a field that
// may be any JSON is `true`, which the TypeScript SDK does not read. They use
// what all clients know: no references, no dialect.

// taskSchema names the parts of a turn record that callers branch on;
// docs/turn.schema.json is the whole contract.
const taskSchema = `{
  "type": "object",
  "description": "the turn record: what was asked, what came of it, what it cost (docs/turn.schema.json)",
  "properties": {
    "schema_version": {"type": "string"},
    "turn_id": {"type": ["string", "null"]},
    "outcome": {
      "type": ["object", "null"],
      "description": "null when the turn was refused before a token",
      "properties": {
        "status": {"type": "string", "enum": ["completed", "cancelled", "timed_out", "policy_denied", "limit_exceeded", "failed"]},
        "output": {"type": ["string", "null"], "description": "the answer's text; of a turn that is not completed as far as it came"}
      },
      "required": ["status", "output"]
    },
    "error": {
      "type": ["object", "null"],
      "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "hint": {"type": "string"},
        "construct": {"type": "string", "description": "of a refused schema: the keyword"},
        "path": {"type": "string", "description": "of a refused schema: JSON pointer"}
      },
      "required": ["code", "message"]
    },
    "output_validation": {
      "type": "object",
      "properties": {
        "status": {"type": "string", "enum": ["valid", "invalid", "not_requested"]},
        "enforced_by": {"type": ["string", "null"]}
      },
      "required": ["status"]
    }
  },
  "required": ["schema_version", "outcome", "error", "output_validation"]
}`

const outputValue = `{"description": "the answer as a JSON value, when it was held to a promise, is valid and is JSON; otherwise null"}`

const respondOut = `{
  "type": "object",
  "properties": {"output": ` + outputValue + `, "task": ` + taskSchema + `},
  "required": ["task"]
}`

// promiseProperties shape an answer; at most one is given.
const promiseProperties = `
    "schema": {"type": "object", "description": "JSON Schema that the answer is valid against; holds for this call only"},
    "regex": {"type": "string", "minLength": 1, "description": "regular expression that the whole answer matches, instead of schema"},
    "lark": {"type": "string", "minLength": 1, "description": "Lark grammar of the answer, instead of schema"},
    "llg": {"type": "object", "description": "llguidance grammar (TopLevelGrammar JSON) of the answer, instead of schema"},
    "enforce": {"type": "string", "enum": ["mask", "validate"], "description": "mask (default) refuses what cannot be held while generating; validate lets validation of the whole answer decide that part"},
    "formats": {"type": "string", "enum": ["mask", "assert", "ignore"], "description": "what JSON Schema's format does: mask (default) shapes what is generated, assert also validates text that no mask held, ignore does neither"}`

const respondIn = `{
  "type": "object",
  "properties": {
    "prompt": {"type": "string", "minLength": 1, "description": "the user's message"},
    "system": {"type": "string", "description": "the system message"},` + promiseProperties + `,
    "model": {"type": "string", "description": "a name from models: in the settings, or a .gguf file inside the graph; default: the settings' model"},
    "repair": {"type": "boolean", "description": "ask once more when the answer is invalid, saying where"},
    "max_output_tokens": {"type": "integer", "minimum": 1, "description": "cut the answer off after so many tokens; a cut-off answer is an error"},
    "thread": {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$", "description": "go on with this conversation; it keeps questions and answers, never a schema"},
    "no_tools": {"type": "boolean", "description": "let the model call none of the tools of the settings"}
  },
  "required": ["prompt"],
  "additionalProperties": false
}`

const noArguments = `{"type": "object", "properties": {}, "additionalProperties": false}`

const listAgentsOut = `{
  "type": "object",
  "properties": {
    "agents": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "name": {"type": "string"},
          "model": {"type": "string"},
          "inputs": {"type": "array", "items": {"type": "string"}, "description": "folders it reads, relative to the graph"},
          "output": {"type": "string"},
          "schema": {
            "type": ["object", "null"],
            "description": "what its answers are held to; null: free text",
            "properties": {"kind": {"type": "string"}, "file": {"type": "string"}, "source": {"type": "string"}}
          },
          "error": {"type": "string", "description": "why it cannot run"},
          "state": {"type": "string", "description": "running, idle, paused or stopped; absent when no runner works the graph"},
          "answers_uri": {"type": "string", "description": "resource with its latest answers; a subscription tells of new ones"}
        },
        "required": ["name", "inputs", "output", "schema"]
      }
    }
  },
  "required": ["agents"]
}`

const sendIn = `{
  "type": "object",
  "properties": {
    "agent": {"type": "string", "minLength": 1},
    "text": {"type": "string", "minLength": 1, "description": "the input's content"},
    "name": {"type": "string", "description": "file name of the input; default: one that nobody has. A name that is taken is refused"},
    "folder": {"type": "string", "description": "one of the agent's input folders, where it has several"},
    "wait": {"type": "boolean", "description": "wait for the answer and return it with its record; default false"},
    "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 86400, "description": "how long to wait; the turn goes on afterwards. Default 600"}
  },
  "required": ["agent", "text"],
  "additionalProperties": false
}`

const sendOut = `{
  "type": "object",
  "properties": {
    "input": {
      "type": "object",
      "properties": {"path": {"type": "string"}, "sha256": {"type": "string"}, "bytes": {"type": "integer"}},
      "required": ["path"]
    },
    "file": {"type": ["string", "null"], "description": "the published answer, relative to the graph"},
    "output": ` + outputValue + `,
    "task": {"description": "with wait: the turn record, as respond returns it; otherwise null"}
  },
  "required": ["input"]
}`

const answersIn = `{
  "type": "object",
  "properties": {
    "agent": {"type": "string", "description": "default: all agents"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 200, "description": "default 20"},
    "before": {"type": "string", "description": "go on after an earlier list: its last turn"},
    "turn": {"type": "string", "description": "with agent: this turn alone, with its whole record, also one that failed or was refused"}
  },
  "additionalProperties": false
}`

const answersOut = `{
  "type": "object",
  "properties": {
    "answers": {
      "type": "array",
      "description": "newest first",
      "items": {
        "type": "object",
        "properties": {
          "agent": {"type": "string"},
          "turn": {"type": "string"},
          "inputs": {"type": "array", "items": {"type": "string"}},
          "file": {"type": "string"},
          "finished": {"type": "string"},
          "validation": {"type": "string"},
          "text": {"type": "string"},
          "truncated": {"type": "boolean", "description": "text is only the beginning; the resource has all of it"},
          "uri": {"type": "string"},
          "record_uri": {"type": "string"}
        },
        "required": ["agent", "turn", "file", "text"]
      }
    },
    "task": {"description": "with turn: its record"}
  },
  "required": ["answers"]
}`

const checkIn = `{
  "type": "object",
  "properties": {
    "agent": {"type": "string", "description": "check this agent; without it and without a promise, the whole graph"},` + promiseProperties + `
  },
  "additionalProperties": false
}`

const checkOut = `{
  "type": "object",
  "properties": {
    "findings": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "severity": {"type": "string"},
          "message": {"type": "string"},
          "hint": {"type": "string"},
          "file": {"type": "string"},
          "line": {"type": "integer"},
          "column": {"type": "integer"},
          "agent": {"type": "string"}
        },
        "required": ["severity", "message"]
      }
    },
    "models": {
      "type": "array",
      "description": "of a promise: what would hold it, by model",
      "items": {
        "type": "object",
        "properties": {
          "model": {"type": "string"},
          "engine": {"type": "string"},
          "enforced_by": {"type": "string"},
          "refused": {"type": "string"}
        },
        "required": ["model", "engine"]
      }
    }
  },
  "required": ["findings"]
}`

const approveIn = `{
  "type": "object",
  "properties": {
    "id": {"type": "string", "description": "the call that waits; without it those that wait are listed"},
    "deny": {"type": "boolean", "description": "do not run the call; its turn ends as policy_denied"}
  },
  "additionalProperties": false
}`

const approveOut = `{
  "type": "object",
  "properties": {
    "waiting": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "id": {"type": "string"},
          "agent": {"type": "string"},
          "turn_id": {"type": "string"},
          "tool": {"type": "string"},
          "arguments": {"type": "object"},
          "asked": {"type": "string"}
        },
        "required": ["id", "tool"]
      }
    },
    "decided": {"type": "string", "description": "approved or denied"}
  },
  "required": ["waiting"]
}`
