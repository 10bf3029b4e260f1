"""The request behind an answer."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath
from typing import Any, Dict, List, Optional

from .messages import rebuild_messages
from .schema import PathLike, discover_schema
from .turns import Record, RecordError, read_bounded, read_record, record_paths

_COPIED = ("prompt", "template_sha256", "clock", "constraint", "sampling", "tools", "model", "determinism")
_DEFAULT_SHAPED_TOKENS = 1024


def rebuild_request(
    answer: PathLike, text: Optional[str] = None, first: bool = False, record: Optional[Record] = None
) -> Dict[str, Any]:
    """Return the request that an answer answers, with the members of a record's request.

    "from" is "record" where the turn has one. Otherwise it is "folder": the
    messages and the constraint are made from the agent's folder by the rule of
    SCHEMA.md, for an agent without an agent.yaml; text is then the input, which
    may be left out when input/ holds one file.

    With first it is the turn's first request; without, the last one, which has
    the tool calls and the rejected answer, if there were any.

    Without record it is looked for among those of the agent, one by one; give
    it where there are many answers, as iter_turns does.
    """
    path = Path(answer)
    agent_dir = path.parent.parent
    record = record or find_record(path)
    if record is None:
        return _from_folder(agent_dir, text)
    request = record["request"]
    if request is None:
        raise RecordError(f"{path}: its turn was refused before there was a request")
    out: Dict[str, Any] = {"from": "record", "turn_id": record["turn_id"], "inputs": record["inputs"]}
    out["messages"] = request["messages"]
    out.update({key: request.get(key) for key in _COPIED})
    if not first:
        messages = last_messages(record)
        if len(messages) > len(out["messages"]):
            out["messages"], out["prompt"] = messages, None  # the record has the first one's
    return out


def find_record(answer: PathLike) -> Optional[Record]:
    """Return the record of the turn that made an answer, or None."""
    path = Path(answer)
    turns = path.parent.parent / "turns"
    if not turns.is_dir() or turns.is_symlink():
        return None
    needle = path.name.encode() if path.name.isascii() and path.name.isprintable() else b""
    for file in record_paths(path.parent.parent):
        try:
            # Most records are of other answers: look for the name before parsing.
            if needle and needle not in read_bounded(file, 64 << 20):
                continue
            record = read_record(file)
        except FileNotFoundError:
            continue
        except RecordError:
            continue  # iter_turns tells of it
        if any(_names(ref["path"], path) for ref in record["outputs"]):
            return record
    return None


def last_messages(record: Record) -> List[Dict[str, Any]]:
    """Return the messages of a turn's last request: with tool rounds and repair."""
    messages = list(record["request"]["messages"])
    calls = list(record.get("tool_calls") or [])
    for round_ in record.get("tool_rounds") or []:
        own, calls = calls[: round_["calls"]], calls[round_["calls"] :]
        own = [c for c in own if c["result"] is not None]
        reply: Dict[str, Any] = {"role": "assistant", "content": round_["text"]}
        if round_.get("reasoning"):
            reply["reasoning"] = round_["reasoning"]
        if own:
            reply["tool_calls"] = [{k: c[k] for k in ("id", "name", "arguments")} for c in own]
        messages.append(reply)
        messages += [{"role": "tool", "content": c["result"], "tool_call_id": c["id"], "name": c["name"]} for c in own]
    repair = record.get("repair") or {}
    if repair.get("rejected") is not None and repair.get("feedback") is not None:
        messages.append({"role": "assistant", "content": repair["rejected"]})
        messages.append({"role": "user", "content": repair["feedback"]})
    return messages


def _names(recorded: str, answer: Path) -> bool:
    path = PurePosixPath(recorded)
    return path.name == answer.name and path.parent.name == answer.parent.name


def _from_folder(agent_dir: Path, text: Optional[str]) -> Dict[str, Any]:
    if (agent_dir / "agent.yaml").exists():
        raise RecordError(f"{agent_dir}: it has settings, which only agentgraph reads; use: agentgraph rebuild --from folder")
    if text is None:
        text = _only_input(agent_dir)
    schema = discover_schema(agent_dir / "system")
    sampling: Dict[str, Any] = {"temperature": 0}
    constraint = None
    if schema is not None:
        sampling["max_tokens"] = _DEFAULT_SHAPED_TOKENS
        constraint = {
            "kind": schema.kind,
            "file": schema.path.name,
            "source": schema.source,
            "sha256": hashlib.sha256(schema.source.encode("utf-8")).hexdigest(),
            "enforce": "mask",
            "formats": "mask",
        }
    return {
        "from": "folder",
        "turn_id": None,
        "inputs": [],
        "messages": rebuild_messages(agent_dir, text),
        "prompt": None,
        "template_sha256": None,
        "clock": None,
        "constraint": constraint,
        "sampling": sampling,
        "tools": [],
        "model": None,
        "determinism": "fast",
    }


def _only_input(agent_dir: Path) -> str:
    folder = agent_dir / "input"
    files = [p for p in folder.iterdir() if p.is_file() and not p.name.startswith(".")] if folder.is_dir() else []
    if len(files) != 1:
        raise RecordError(f"{agent_dir}: what the answer answers is not known; give its text")
    return files[0].read_bytes().decode("utf-8")
