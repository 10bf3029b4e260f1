// A client on the official TypeScript SDK. It drives `agentgraph mcp` over
// stdio and ends with 0 when everything was as it should be.
// Usage: node client.mjs scripted|model PROGRAM ARG…
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  ElicitRequestSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

const [kind, command, ...args] = process.argv.slice(2);
const scripted = kind === "scripted";
const transport = new StdioClientTransport({ command, args, env: process.env });
const client = new Client({ name: "test", version: "0" }, { capabilities: { elicitation: {} } });

const updated = [];
let listChanged = 0;
let wake = () => {};
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => {
  updated.push(n.params.uri);
  wake();
});
client.setNotificationHandler(ResourceListChangedNotificationSchema, () => {
  listChanged++;
  wake();
});
const asked = [];
client.setRequestHandler(ElicitRequestSchema, (r) => {
  asked.push(r.params.message);
  return { action: "accept", content: { allow: asked.length === 1 } };
});
async function until(what, met) {
  const late = Date.now() + 60_000;
  while (!met()) {
    assert(Date.now() < late, "waited in vain for " + what);
    await new Promise((resolve) => {
      wake = resolve;
      setTimeout(resolve, 1000);
    });
  }
}

await client.connect(transport);
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const text = (result) => result.content.map((c) => c.text).join("");

// List. The SDK compiles every output schema, and validates results with it.
const { tools } = await client.listTools();
const names = tools.map((t) => t.name).sort();
assert.deepEqual(names, scripted
  ? ["answers", "approve", "check", "list_agents", "respond", "send"]
  : ["approve", "check", "respond"]);

// A tool that asks: the client's user decides.
if (scripted) {
  let looked = await call("respond", { prompt: "look" });
  assert.equal(text(looked), "I looked");
  looked = await call("respond", { prompt: "look" });
  assert.match(text(looked), /^policy_denied/);
  assert.equal(asked.length, 2);
  assert.match(asked[0], /list_folder with {"path": "\."}/);
}

// Call.
const schema = {
  type: "object",
  properties: { rating: { type: "integer", minimum: 1, maximum: 5 }, reason: { type: "string", maxLength: 40 } },
  required: ["rating", "reason"],
  additionalProperties: false,
};
let result = await call("respond", { prompt: "Rate it: good soup", schema, no_tools: true });
assert(!result.isError, text(result));
const { output, task } = result.structuredContent;
assert.deepEqual(JSON.parse(text(result)), output);
assert(Number.isInteger(output.rating) && output.rating >= 1 && output.rating <= 5);
assert.equal(task.outcome.status, "completed");
assert.equal(task.output_validation.status, "valid");
assert.equal(task.output_validation.enforced_by, "mask");

result = await call("respond", { prompt: "hello", max_output_tokens: 16, regex: "[a-z]{1,8} [a-z]{1,8}" });
assert(!result.isError, text(result));
assert.match(text(result), /^[a-z]{1,8} [a-z]{1,8}$/);
assert.equal(result.structuredContent.output, null);

// Refuse, before a token.
result = await call("respond", {
  prompt: "List",
  schema: { type: "object", properties: { tags: { type: "array", uniqueItems: true } } },
});
assert.equal(result.isError, true);
assert.match(text(result), /\/properties\/tags.*'uniqueItems'/);
assert.deepEqual(Object.keys(result.structuredContent), ["task"]);
assert.equal(result.structuredContent.task.outcome, null);
assert.equal(result.structuredContent.task.error.path, "/properties/tags");
result = await call("respond", { prompt: "List", schema: { type: "strng" } });
assert.equal(result.isError, true);
assert.equal(result.structuredContent.task.error.code, "schema_refused");
result = await call("respond", { prompt: "hello", shema: {} });
assert.equal(result.isError, true);
assert.match(text(result), /shema/);

// Progress.
const steps = [];
result = await call("respond", { prompt: "slow", max_output_tokens: 48 }, { onprogress: (p) => steps.push(p) });
assert(steps.length > 1, "progress was told " + steps.length + " times");
for (let i = 1; i < steps.length; i++) assert(steps[i].progress > steps[i - 1].progress);
assert.equal(steps[0].total, 48);

// Cancel: the call ends, and the model is free for the next one at once.
const abort = new AbortController();
const forever = scripted ? { prompt: "forever", thread: "t" } : { prompt: "Tell a long story", thread: "t", regex: "[a-z ]{4000}", max_output_tokens: 4000 };
await assert.rejects(call("respond", forever, { signal: abort.signal, onprogress: () => abort.abort("enough") }));
const start = Date.now();
result = await call("respond", { prompt: "hello", thread: "t", max_output_tokens: 4, regex: "[a-z]{1,4}" });
const took = Date.now() - start;
assert(!result.isError, text(result));
assert.equal(result.structuredContent.task.request.messages.at(-1).content, "hello");
assert(result.structuredContent.task.request.messages.every((m) => m.role !== "assistant"), "a cancelled answer is in the thread");
assert(took < 20_000, "the model was busy for " + took + " ms after the cancellation");

// The graph.
if (scripted) {
  const agents = (await call("list_agents", {})).structuredContent.agents;
  const list = agents.find((a) => a.name === "rater").answers_uri;
  await client.subscribeResource({ uri: list });
  result = await call("send", { agent: "rater", text: "Rate this soup", wait: true });
  assert(!result.isError, text(result));
  assert.equal(result.structuredContent.output.rating, 4);
  assert.equal(result.structuredContent.task.outputs[0].path, result.structuredContent.file);
  await until("the subscription", () => updated.includes(list));
  await until("a changed list", () => listChanged > 0);
  const { resources } = await client.listResources();
  const answer = resources.find((r) => r.uri.includes("/rater/output/"));
  const read = await client.readResource({ uri: answer.uri });
  assert.equal(JSON.parse(read.contents[0].text).rating, 4);
  assert.equal(read.contents[0].mimeType, "application/json");
  const { answers } = (await call("answers", { agent: "rater" })).structuredContent;
  assert.equal(answers[0].uri, answer.uri);
  await assert.rejects(client.readResource({ uri: "agentgraph:///agents/rater/output/..%2F..%2Fx" }));
  await client.unsubscribeResource({ uri: list });
  const found = (await call("check", { schema: { type: "array", uniqueItems: true } })).structuredContent;
  assert.equal(found.findings[0].severity, "error");
}

await client.close();
console.log(JSON.stringify({ tools: names, progress: steps.length, after_cancel_ms: took }));
