/**
 * The turn record. Null is "not known", never zero; a member that may be
 * missing is optional.
 */

/** The value of `schema_version` in the records described here. */
export const schemaVersion = "agentgraph.turn/1";

/** Any JSON value, as `JSON.parse` returns it. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };

export type Status = "completed" | "cancelled" | "timed_out" | "policy_denied" | "limit_exceeded" | "failed";

export type Code =
  | "arguments_invalid"
  | "settings_invalid"
  | "schema_refused"
  | "capability_missing"
  | "input_not_text"
  | "input_too_large"
  | "outside_graph"
  | "context_overflow"
  | "model_unavailable"
  | "model_error"
  | "server_refusal"
  | "truncated"
  | "output_validation_failed"
  | "tool_failed"
  | "policy_denied"
  | "limit_exceeded"
  | "timed_out"
  | "cancelled"
  | "publish_failed"
  | "internal";

/** What held an answer to its promise. */
export type EnforcedBy = "mask" | "mask+validation" | "server+validation" | "validation";

export interface TurnRecord {
  schema_version: typeof schemaVersion;
  turn_id: string | null;
  /** This attempt. */
  run_id: string | null;
  /** The thread or the agent. */
  session_id: string | null;
  /** The root of the lineage. */
  trace_id: string | null;
  agent: string | null;
  /** 1 for the first; 0 for a turn that was refused before admission. */
  attempt: number;
  /** Null when the turn was refused before admission. */
  outcome: Outcome | null;
  /** Null exactly when the turn is completed. */
  error: TurnError | null;
  output_validation: Validation;
  repair: Repair | null;
  accounting: Accounting | null;
  request: Request | null;
  inputs: FileRef[];
  outputs: FileRef[];
  tool_calls: ToolCall[];
  tool_rounds?: ToolRound[];
  lineage: Lineage | null;
  /** Which of several answers to the same input this is. */
  sample?: Sample;
  /** Made by the sample command; the graph's own turns have no origin. */
  origin?: "sample";
  timing: Timing | null;
  settings_sha256: string | null;
}

export interface Outcome {
  status: Status;
  /** The answer when `status` is completed, otherwise the raw text as far as it came. */
  output: string | null;
  finish_reason: "stop" | "length" | "tool_calls" | "refusal" | null;
  usage: Usage | null;
  /** With `policy_denied`. */
  rule?: string;
  /** With `limit_exceeded`. */
  limit?: string;
  /** With `failed`. */
  code?: Code;
  /** With `failed`. */
  delivery?: "not_sent" | "may_have_been_sent" | "response_received";
  reasoning?: string;
  /** One entry per token of `output`, when they were asked for and the engine could tell. */
  logprobs?: Token[];
}

/** A token and the natural logarithm of its probability, before any mask or filter. */
export interface Token {
  token: string;
  /** Base64, of a token that is not whole UTF-8. */
  bytes?: string;
  logprob: number;
  /** The likeliest tokens at this place; these have none of their own. */
  top_logprobs?: Token[];
}

/** Tokens of the call that gave the output. */
export interface Usage {
  input_tokens: number | null;
  output_tokens: number | null;
  cache_read_input_tokens: number | null;
  cache_write_input_tokens: number | null;
}

export interface TurnError {
  code: Code;
  message: string;
  hint?: string;
  file?: string;
  line?: number;
  column?: number;
  construct?: string;
  /** A JSON pointer in the schema. */
  path?: string;
  /** The same turn may succeed later, unchanged. */
  retry?: boolean;
}

export interface Validation {
  status: "valid" | "invalid" | "not_requested";
  enforced_by: EnforcedBy | null;
  diagnostics: Diagnostic[];
}

/** Where an answer breaks its promise, as two JSON pointers. */
export interface Diagnostic {
  code:
    | "malformed_json"
    | "json_bytes"
    | "validation_work"
    | "json_structure"
    | "schema_violation"
    | "grammar_violation";
  instance: string;
  schema: string;
}

export interface Repair {
  status: "not_needed" | "succeeded" | "failed" | "blocked";
  /** With `blocked`. */
  blocked?: "deadline" | "output_tokens" | "context" | "model_calls" | "truncated";
  attempts: string;
  validations: string;
  rejected: string | null;
  rejected_diagnostics: Diagnostic[];
  feedback: string | null;
}

/** What the whole turn cost. Counts are decimal strings; `BigInt` reads them. */
export interface Accounting {
  model_calls: string;
  tool_calls: string;
  usage: {
    input_tokens: string | null;
    output_tokens: string | null;
    cache_read_input_tokens: string | null;
    cache_write_input_tokens: string | null;
  };
  cost_microusd: string | null;
  charged_tokens: string | null;
  charged_cost_microusd: string | null;
}

export interface Request {
  messages: Message[];
  /** As the engine read it; null on a server. */
  prompt: string | null;
  template_sha256: string | null;
  clock: string | null;
  constraint: Constraint | null;
  sampling: Sampling;
  /** Whether the model was told to reason, or not to. */
  thinking?: boolean;
  tools: Tool[];
  disabled_tools?: { name: string; reason: string }[];
  model: ModelIdentity;
  /** The other models of the turn that did not answer it, in the order they were tried. */
  passed_over?: PassedOver[];
  determinism: "fast" | "solo";
}

export interface PassedOver {
  model: ModelIdentity;
  code: Code;
  message: string;
}

export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  reasoning?: string;
  tool_calls?: { id?: string; name: string; arguments: Json }[];
  tool_call_id?: string;
  name?: string;
}

export interface Constraint {
  kind: "json" | "regex" | "lark" | "llg";
  file?: string;
  source: string;
  sha256: string;
  enforce: "mask" | "validate";
  formats: "mask" | "assert" | "ignore";
}

export interface Sampling {
  temperature: number;
  top_k?: number;
  top_p?: number;
  min_p?: number;
  /** Up to 2⁶⁴−1: above 2⁵³ `JSON.parse` has rounded it. */
  seed?: number;
  max_tokens?: number;
  logprobs?: number;
}

export interface Tool {
  name: string;
  description?: string;
  parameters?: Json;
}

export interface ModelIdentity {
  engine: string;
  name: string;
  alias?: string;
  weights_sha256?: string;
  server?: string;
}

/** A file; `path` is relative to the graph, with forward slashes. */
export interface FileRef {
  path: string;
  sha256: string;
  bytes: number;
}

export interface ToolCall {
  id: string;
  name: string;
  arguments: Json;
  result: string | null;
  result_sha256: string | null;
  result_bytes: number | null;
  error?: string;
  exit_status: number | null;
  milliseconds: number;
}

export interface ToolRound {
  text: string;
  reasoning?: string;
  /** How many of `tool_calls`, in order, are this round's. */
  calls: number;
}

export interface Lineage {
  root_inputs: FileRef[];
  hops: number;
}

export interface Sample {
  /** From 0. */
  index: number;
  of: number;
}

export interface Timing {
  started: string;
  finished: string;
  queued_ms: number | null;
  prefill_ms: number | null;
  first_token_ms: number | null;
  decode_ms: number | null;
  mask_ms: number | null;
  sample_ms: number | null;
  forced_tokens: number | null;
  reused_tokens: number | null;
}
