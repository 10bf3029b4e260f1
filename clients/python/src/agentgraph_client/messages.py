"""The messages a model got, for an agent that has no agent.yaml."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Dict, Iterable, List, Tuple

from .schema import PathLike, discover_schema

_PARAGRAPHS = {
    "json": "Answer with one JSON value and nothing else. It must be valid against this JSON Schema:",
    "regex": "Answer with text that matches this regular expression from its first to its last character, and nothing else:",
    "lark": "Answer with text that follows this Lark grammar, and nothing else:",
    "llg": "Answer with text that follows this llguidance grammar, and nothing else:",
}
_NOT_A_PART = re.compile(
    r"\..*|#.*#|~\$.*|4913|thumbs\.db|desktop\.ini|.*[\x00-\x1f\x7f-\x9f\ud800-\udfff].*|.*(?:~|\.swp|\.swo|\.swn|\.swx"
    r"|\.tmp|\.temp|\.part|\.partial|\.filepart|\.crdownload|\.download|\.opdownload|\.bak|\.backup|\.old|\.orig|\.rej"
    r"|___jb_tmp___|___jb_old___)",
    re.DOTALL | re.IGNORECASE | re.ASCII,
)


def rebuild_messages(agent_dir: PathLike, text: str, history: Iterable[Tuple[str, str]] = ()) -> List[Dict[str, str]]:
    """Return the messages of the turn that answers text.

    history holds earlier turns, oldest first, as (input, answer).
    """
    system, graph = Path(agent_dir) / "system", Path(agent_dir).resolve().parent.parent
    parts = []
    for path in sorted(system.iterdir(), key=lambda p: os.fsencode(p.name)):
        if path.is_file() and not _NOT_A_PART.fullmatch(path.name) and graph in path.resolve().parents:
            try:
                part = path.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                continue
            parts += [part] if "\0" not in part else []
    schema = discover_schema(system)
    if schema is not None:
        parts.append(_PARAGRAPHS[schema.kind] + "\n" + schema.source)
    parts = [part.rstrip("\r\n") for part in parts]
    content = "\n\n".join(part for part in parts if part)
    messages = [{"role": "system", "content": content}] if content else []
    for question, answer in history:
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return messages + [{"role": "user", "content": text}]
