import { schemaVersion } from "./record.js";
import type { Json, TurnRecord } from "./record.js";

/** The member of `_meta` that agentgraph uses over ACP. */
export const metaKey = "agentgraph/v1";

/** A validated answer, read as JSON. */
export interface Structured<T = Json> {
  value: T;
  /**
   * The answer as it was written. `value` comes from `JSON.parse`, which rounds
   * numbers that a double cannot hold: 9007199254740993 becomes
   * 9007199254740992, and 1e999 Infinity. The text has every digit.
   */
  text: string;
}

/**
 * Returns the turn record in a response, or undefined where there is none that
 * this version knows. It takes the result of an MCP tool call
 * (`structuredContent.task`), an ACP prompt response
 * (`_meta["agentgraph/v1"].task`), or a record itself, as `agentgraph respond
 * --json` prints it. It never throws.
 */
export function taskOf(response: unknown): TurnRecord | undefined {
  return quietly(() => recordIn(response));
}

/**
 * Returns the answer of a completed turn as text, whether it was asked to be
 * valid or not. What was cut off, cancelled or invalid is no answer. It never
 * throws.
 */
export function textOf(response: unknown): string | undefined {
  return quietly(() => answerIn(recordIn(response)));
}

/**
 * Returns the answer in a response read as JSON, or undefined unless the turn
 * completed, the answer was validated against a schema or grammar, and it is
 * JSON. It never throws.
 *
 * The type parameter is the caller's claim about the schema; nothing is checked
 * here. For exact numbers read `text`, or pass a parser of your own.
 */
export function structuredOf<T = Json>(
  response: unknown,
  parse: (text: string) => T = JSON.parse,
): Structured<T> | undefined {
  return quietly(() => {
    const task = recordIn(response);
    const text = answerIn(task);
    if (text === undefined || task?.output_validation.status !== "valid") {
      return undefined;
    }
    return { value: parse(text), text };
  });
}

/**
 * Turns what is thrown into undefined: by members of an object of someone
 * else's making, or by a parser that reads an answer held to a regex or a
 * grammar, which need not be JSON.
 */
function quietly<T>(read: () => T | undefined): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function recordIn(response: unknown): TurnRecord | undefined {
  const places = [
    member(member(response, "structuredContent"), "task"),
    member(member(member(response, "_meta"), metaKey), "task"),
    response,
  ];
  return places.find(isRecord);
}

function answerIn(task: TurnRecord | undefined): string | undefined {
  if (task?.outcome?.status !== "completed" || task.output_validation.status === "invalid") {
    return undefined;
  }
  return task.outcome.output ?? undefined;
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) {
    return undefined;
  }
  return (value as Record<string, unknown>)[name];
}

/** Whether a value says that it is a record and has what is decided by here. */
function isRecord(value: unknown): value is TurnRecord {
  if (member(value, "schema_version") !== schemaVersion) {
    return false;
  }
  const outcome = member(value, "outcome");
  if (outcome !== null) {
    const output = member(outcome, "output");
    if (typeof member(outcome, "status") !== "string" || (output !== null && typeof output !== "string")) {
      return false;
    }
  }
  return typeof member(member(value, "output_validation"), "status") === "string";
}
