"""The PyPI client agent-client-protocol through one session: client.py COMMAND…"""

import asyncio
import os
import sys

import acp
from acp.schema import AllowedOutcome, ClientCapabilities, EnvVariable, McpServerStdio, RequestPermissionResponse
from agentgraph_client import META_KEY, structured_of, task_of, text_of

# An MCP server that the client brings.
OTHER = McpServerStdio(name="other", command=os.environ["OTHER_SERVER"], args=["mcp", os.environ["OTHER_GRAPH"]], env=[EnvVariable(name="SOME_KEY", value="s3cret-value")])

SCHEMA = {"type": "object", "properties": {"rating": {"type": "integer"}}, "required": ["rating"]}


class Client(acp.Client):
    def __init__(self):
        self.heard = []
        self.asked = 0

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked += 1
        choice = next(o for o in options if o.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=choice.option_id))

    async def session_update(self, session_id, update, **kwargs):
        self.heard.append(update)

    def said(self):
        return "".join(u.content.text for u in self.heard if u.session_update == "agent_message_chunk")


def check(what, got, want):
    if got != want:
        raise SystemExit(f"{what}: got {got!r}, want {want!r}")


async def main():
    client = Client()
    async with acp.spawn_agent_process(client, *sys.argv[1:], transport_kwargs={"limit": 10 << 20}) as (agent, _):
        hello = await agent.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_capabilities=ClientCapabilities(field_meta={META_KEY: {}})
        )
        check("metadata", META_KEY in hello.agent_capabilities.field_meta, True)
        check("http", hello.agent_capabilities.mcp_capabilities.http, True)
        session = await agent.new_session(cwd="/", mcp_servers=[OTHER])
        check("modes", [m.id for m in session.modes.available_modes], ["/", "greeter", "rater"])
        ask = lambda text, **meta: agent.prompt(session_id=session.session_id, prompt=[acp.text_block(text)], **meta)

        free = await ask("hello")
        check("free text", (client.said(), free.stop_reason, text_of(free), structured_of(free)), ("good morning", "end_turn", "good morning", None))

        client.heard.clear()
        shaped = await ask("Rate it", **{META_KEY: {"schema": SCHEMA}})
        check("shaped", (structured_of(shaped).value, client.said()), ({"rating": 4}, '{"rating": 4}'))
        check("schema", task_of(shaped)["request"]["constraint"]["kind"], "json")

        refused = await ask("Rate it", **{META_KEY: {"schema": {"$ref": "https://example.org/x"}}})
        check("refused", (refused.stop_reason, task_of(refused)["error"]["code"], structured_of(refused)), ("refusal", "schema_refused", None))

        await agent.set_session_mode(session_id=session.session_id, mode_id="rater")
        check("mode", structured_of(await ask("Rate it")).value, {"rating": 4})
        await agent.set_session_mode(session_id=session.session_id, mode_id="/")

        client.heard.clear()
        tools = await ask("list it")
        kinds = [u.session_update for u in client.heard if u.session_update != "session_info_update"]
        check("tools", (client.asked, tools.stop_reason, text_of(tools)), (1, "end_turn", "There is a file."))
        check("order", [k for i, k in enumerate(kinds) if i == 0 or kinds[i - 1] != k],
              ["agent_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"])

        client.heard.clear()
        theirs = await ask("check it")
        check("the client's server", (client.asked, text_of(theirs), theirs.stop_reason), (2, "They found nothing.", "end_turn"))
        check("its call", [u.title for u in client.heard if u.session_update == "tool_call"], ['check (other) {"regex":"a+"}'])

        client.heard.clear()
        running = asyncio.ensure_future(ask("forever"))
        while not client.said():
            await asyncio.sleep(0.01)
        await agent.cancel(session_id=session.session_id)
        check("cancel", (await asyncio.wait_for(running, 20)).stop_reason, "cancelled")

    other = Client()
    async with acp.spawn_agent_process(other, *sys.argv[1:]) as (agent, _):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        await agent.load_session(cwd="/", session_id=session.session_id, mcp_servers=[])
        check("load", [u.content.text for u in other.heard][:2], ["hello", "good morning"])
        check("exchanges", len(other.heard), 10)
        listed = await agent.list_sessions()
        check("list", [(s.session_id, s.cwd, s.title) for s in listed.sessions], [(session.session_id, "/", "hello")])
        await agent.close_session(session_id=session.session_id)
        other.heard.clear()
        await agent.resume_session(cwd="/", session_id=session.session_id, mcp_servers=[])
        check("resume", other.heard, [])
        plain = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("hello")])
        check("not announced", (plain.stop_reason, plain.field_meta), ("end_turn", None))
    print("done")


asyncio.run(main())
