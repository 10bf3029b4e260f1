"""A client on the official Python SDK. It drives `agentgraph mcp` over stdio
and ends with 0 when everything was as it should be.

Usage: python client.py scripted|model PROGRAM ARG…
"""

import json
import os
import re
import sys
import time

import anyio
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult

kind, command, *arguments = sys.argv[1:]
scripted = kind == "scripted"

SCHEMA = {
    "type": "object",
    "properties": {
        "rating": {"type": "integer", "minimum": 1, "maximum": 5},
        "reason": {"type": "string", "maxLength": 40},
    },
    "required": ["rating", "reason"],
    "additionalProperties": False,
}


def text(result):
    return "".join(part.text for part in result.content)


async def main():
    notes = []

    async def told(message):
        notes.append(type(getattr(message, "root", message)).__name__)

    asked = []

    async def ask(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"allow": True}) if len(asked) == 1 else ElicitResult(action="decline")

    server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write, message_handler=told, elicitation_callback=ask) as session:
            started = await session.initialize()
            assert started.server_info.name == "agentgraph", started

            # List.
            tools = {t.name: t for t in (await session.list_tools()).tools}
            wanted = {"approve", "check", "respond"}
            if scripted:
                wanted |= {"answers", "list_agents", "send"}
            assert set(tools) == wanted, tools

            # Call. The SDK validates the result with the output schema.
            result = await session.call_tool("respond", {"prompt": "Rate it: good soup", "schema": SCHEMA})
            assert not result.is_error, text(result)
            output, task = result.structured_content["output"], result.structured_content["task"]
            assert json.loads(text(result)) == output and output["rating"] in range(1, 6), output
            assert task["output_validation"]["enforced_by"] == "mask", task

            # A tool that asks: the client's user decides.
            if scripted:
                assert text(await session.call_tool("respond", {"prompt": "look"})) == "I looked"
                denied = await session.call_tool("respond", {"prompt": "look"})
                assert denied.is_error and text(denied).startswith("policy_denied"), text(denied)
                assert len(asked) == 2 and 'list_folder with {"path": "."}' in asked[0], asked

            # Refuse, before a token.
            result = await session.call_tool(
                "respond",
                {"prompt": "List", "schema": {"properties": {"tags": {"type": "array", "uniqueItems": True}}}},
            )
            assert result.is_error and re.search(r"/properties/tags.*'uniqueItems'", text(result)), text(result)
            assert list(result.structured_content) == ["task"], result.structured_content
            assert result.structured_content["task"]["outcome"] is None

            # Progress.
            steps = []

            async def step(progress, total, message):
                steps.append(progress)

            result = await session.call_tool("respond", {"prompt": "slow", "max_output_tokens": 48}, progress_callback=step)
            assert len(steps) > 1 and steps == sorted(set(steps)), steps

            # Cancel: the call ends, and the model is free for the next one.
            forever = {"prompt": "forever", "thread": "t"}
            if not scripted:
                forever = {"prompt": "Tell a long story", "thread": "t", "regex": "[a-z ]{4000}", "max_output_tokens": 4000}
            with anyio.CancelScope() as scope:

                async def enough(progress, total, message):
                    scope.cancel()

                await session.call_tool("respond", forever, progress_callback=enough)
            assert scope.cancelled_caught
            start = time.monotonic()
            result = await session.call_tool("respond", {"prompt": "hello", "thread": "t", "regex": "[a-z]{1,4}"})
            took = time.monotonic() - start
            assert not result.is_error, text(result)
            messages = result.structured_content["task"]["request"]["messages"]
            assert [m["role"] for m in messages if m["role"] != "system"] == ["user"], messages
            assert took < 20, f"the model was busy for {took:.1f} s after the cancellation"

            # The graph.
            if scripted:
                agents = (await session.call_tool("list_agents", {})).structured_content["agents"]
                listed = next(a for a in agents if a["name"] == "rater")["answers_uri"]
                await session.subscribe_resource(listed)
                result = await session.call_tool("send", {"agent": "rater", "text": "Rate this soup", "wait": True})
                assert result.structured_content["output"]["rating"] == 4, text(result)
                with anyio.fail_after(60):
                    while "ResourceUpdatedNotification" not in notes or "ResourceListChangedNotification" not in notes:
                        await anyio.sleep(0.05)
                resources = (await session.list_resources()).resources
                answer = next(r for r in resources if "/rater/output/" in r.uri)
                content = (await session.read_resource(answer.uri)).contents[0]
                assert json.loads(content.text)["rating"] == 4, content
    # By the newest protocol, in which the question comes as the call's result.
    if scripted:
        asked.clear()
        async with Client(server, elicitation_callback=ask) as client:
            assert client.session.protocol_version >= "2026-07-28", client.session.protocol_version
            assert text(await client.call_tool("respond", {"prompt": "look"})) == "I looked"
            denied = await client.call_tool("respond", {"prompt": "look"})
            assert denied.is_error and len(asked) == 2, (text(denied), asked)
    print(json.dumps({"tools": sorted(tools), "progress": len(steps), "after_cancel_ms": round(took * 1000)}))


anyio.run(main)
