/**
 * Reads what agentgraph sends over MCP and ACP: the turn record, and the answer
 * once it is complete and valid.
 *
 * @packageDocumentation
 */

export { metaKey, structuredOf, taskOf, textOf } from "./task.js";
export type { Structured } from "./task.js";
export { schemaVersion } from "./record.js";
export type {
  Accounting,
  Code,
  Constraint,
  Diagnostic,
  EnforcedBy,
  FileRef,
  Json,
  Lineage,
  Message,
  ModelIdentity,
  Outcome,
  PassedOver,
  Repair,
  Request,
  Sample,
  Sampling,
  Status,
  Timing,
  Token,
  Tool,
  ToolCall,
  ToolRound,
  TurnError,
  TurnRecord,
  Usage,
  Validation,
} from "./record.js";
