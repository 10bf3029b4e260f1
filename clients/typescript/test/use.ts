// Run from a folder where the package is installed; cases.ts is made by the
// test that runs this, records.ts holds whole records as literals.
import { metaKey, structuredOf, taskOf, textOf } from "agentgraph-client";
import type { Json, Structured, TurnRecord } from "agentgraph-client";
import { cases } from "./cases.js";
import { records } from "./records.js";

// Literals: a member that the types do not know is an error here.
const typed: readonly TurnRecord[] = records;

let failures = 0;
function same(what: string, got: unknown, want: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    failures++;
    console.error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
}

for (const c of cases) {
  const response: unknown = JSON.parse(c.response);
  same(`${c.name}: task`, taskOf(response)?.turn_id ?? null, c.task);
  same(`${c.name}: text`, textOf(response) ?? null, c.text);
  const found: Structured | undefined = structuredOf(response);
  same(`${c.name}: structured`, found === undefined ? null : [found.value], c.value === null ? null : [JSON.parse(c.value)]);
  same(`${c.name}: its text`, found?.text ?? null, c.value);
}

// Objects that throw where they are read.
const valid = typed.find((r) => r.output_validation.status === "valid");
const throwing = [
  new Proxy({}, { getOwnPropertyDescriptor: () => { throw new Error("no"); } }),
  { get structuredContent(): unknown { throw new Error("no"); } },
  { ...valid, get outcome(): unknown { throw new Error("no"); } },
  { ...valid, get output_validation(): unknown { throw new Error("no"); } },
];
for (const response of [...throwing, undefined, Symbol("x"), () => 1, 1n]) {
  same("throwing: task", taskOf(response), undefined);
  same("throwing: text", textOf(response), undefined);
  same("throwing: structured", structuredOf(response), undefined);
}

// JSON.parse rounds; the text and a parser of one's own do not.
const big = { structuredContent: { task: withOutput('{"id":9007199254740993}') } };
same("rounded", structuredOf<{ id: number }>(big)?.value.id, 9007199254740992);
same("exact", structuredOf(big)?.text, '{"id":9007199254740993}');
same("own parser", structuredOf(big, (text) => BigInt(/\d+/.exec(text)?.[0] ?? "0"))?.value === 9007199254740993n, true);
same("__proto__ is a member like any other", Object.keys(structuredOf<{ [m: string]: Json }>(withOutput('{"__proto__":1}'))?.value ?? {}), ["__proto__"]);
same("the metadata's name", metaKey, "agentgraph/v1");

function withOutput(output: string): TurnRecord {
  if (valid?.outcome == null) throw new Error("no valid record among the cases");
  return { ...valid, outcome: { ...valid.outcome, output } };
}

// What the types forbid.
// @ts-expect-error: the answer may be missing
structuredOf(big).value;
// @ts-expect-error: a refused turn has no outcome
typed[0]?.outcome.status;
// @ts-expect-error: no such status
const wrong: TurnRecord["output_validation"]["status"] = "ok";
void wrong;

if (failures > 0) throw new Error(`${failures} failures`);
console.log(`${cases.length} cases`);
