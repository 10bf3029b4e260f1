// The official TypeScript SDK through one session: client.mjs CLIENT COMMAND…,
// where CLIENT is the built agentgraph-client.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [ours, command, ...args] = process.argv.slice(2);
const { metaKey, structuredOf, taskOf, textOf } = await import(ours);
const same = (what, got, want) => {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
};

const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
// An MCP server that the client brings.
const other = { name: "other", command: process.env.OTHER_SERVER, args: ["mcp", process.env.OTHER_GRAPH], env: [] };
let said = "";
let asked = 0;
const { session } = acp.methods.client;
const app = acp
  .client({ name: "test" })
  .onRequest(session.requestPermission, ({ params }) => {
    asked++;
    return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId } };
  })
  .onNotification(session.update, ({ params }) => {
    if (params.update.sessionUpdate === "agent_message_chunk") said += params.update.content.text;
  });

await app.connectWith(acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (cx) => {
  const m = acp.methods.agent;
  const hello = await cx.request(m.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: { _meta: { [metaKey]: {} } } });
  same("metadata", metaKey in hello.agentCapabilities._meta, true);
  const { sessionId } = await cx.request(m.session.new, { cwd: "/", mcpServers: [other] });
  const ask = (text, meta) => cx.request(m.session.prompt, { sessionId, prompt: [{ type: "text", text }], ...(meta && { _meta: { [metaKey]: meta } }) });

  const free = await ask("hello");
  same("free text", [said, free.stopReason, textOf(free), structuredOf(free) ?? null], ["good morning", "end_turn", "good morning", null]);

  said = "";
  const schema = { type: "object", properties: { rating: { type: "integer" } }, required: ["rating"] };
  const shaped = await ask("Rate it", { schema });
  same("shaped", [structuredOf(shaped)?.value, said], [{ rating: 4 }, '{"rating": 4}']);

  const refused = await ask("Rate it", { schema: { $ref: "https://example.org/x" } });
  same("refused", [refused.stopReason, taskOf(refused)?.error?.code, structuredOf(refused) ?? null], ["refusal", "schema_refused", null]);

  const tools = await ask("list it");
  same("tools", [asked, tools.stopReason, textOf(tools)], [1, "end_turn", "There is a file."]);

  const theirs = await ask("check it");
  same("the client's server", [asked, theirs.stopReason, textOf(theirs)], [2, "end_turn", "They found nothing."]);

  said = "";
  const running = ask("forever");
  while (said === "") await new Promise((r) => setTimeout(r, 10));
  await cx.notify(m.session.cancel, { sessionId });
  same("cancel", (await running).stopReason, "cancelled");

  const { sessions } = await cx.request(m.session.list, {});
  same("list", sessions.map((s) => [s.sessionId, s.cwd, s.title]), [[sessionId, "/", "hello"]]);
  await cx.request(m.session.close, { sessionId });
  await cx.request(m.session.resume, { sessionId, cwd: "/" });
  same("resume", [(await ask("hello")).stopReason], ["end_turn"]);
});
agent.stdin.end();
console.log("done");
agent.kill();
process.exit(0);
