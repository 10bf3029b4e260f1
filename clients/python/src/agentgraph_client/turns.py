"""Turn records: what was asked, what came of it, and what it cost."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

from .schema import PathLike

Record = Dict[str, Any]

MAX_RECORD_BYTES = 64 << 20
MAX_SOURCE_BYTES = 16 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SKIPPED = ("system", "input", "output", "turns")


class RecordError(ValueError):
    """A turn record that cannot be used."""


@dataclass(frozen=True)
class Turn:
    """One turn. agent_dir is the folder whose turns/ holds the record."""

    path: Path
    agent_dir: Path
    record: Record

    @property
    def answer(self) -> Optional[str]:
        """The answer of a completed turn; None for every other one."""
        outcome = self.record.get("outcome") or {}
        if outcome.get("status") != "completed" or self.record["output_validation"]["status"] == "invalid":
            return None
        output: Optional[str] = outcome.get("output")
        return output

    @property
    def files(self) -> List[Path]:
        """The files of the answer. They may be gone, or be other texts: see validate."""
        names = [ref["path"].rsplit("/", 1)[-1] for ref in self.record["outputs"]]
        return [self.agent_dir / "output" / name for name in names if name not in ("", ".", "..")]


def read_record(path: PathLike) -> Record:
    """Return a whole record; the texts that it shares with others are put back."""
    path = Path(path)
    try:
        record = json.loads(read_bounded(path, MAX_RECORD_BYTES).decode("utf-8"))
    except ValueError as err:
        raise RecordError(f"{path}: torn, or no record: {err}") from None
    if not isinstance(record, dict) or record.get("schema_version") != "agentgraph.turn/1":
        raise RecordError(f"{path}: not a turn record")
    request = record.get("request")
    if request:
        request["prompt"] = _whole(path, request["prompt"])
        for message in request["messages"]:
            message["content"] = _whole(path, message["content"])
        if request["constraint"]:
            request["constraint"]["source"] = _whole(path, request["constraint"]["source"])
    return record


def iter_turns(graph: PathLike, on_error: Optional[Callable[[Exception], None]] = None) -> Iterator[Turn]:
    """Yield the turns of every agent below a folder, one agent after the other, oldest first.

    A record that cannot be used goes to on_error, or becomes a warning, and the
    rest goes on. Links are not followed.
    """
    report = on_error or (lambda err: warnings.warn(str(err), stacklevel=3))
    for agent_dir in agent_dirs(graph):
        for path in record_paths(agent_dir):
            try:
                record = read_record(path)
            except FileNotFoundError as err:
                if path.exists():  # a shared text is missing, not the record
                    report(RecordError(f"{path}: a text that it shares is missing: {err.filename}"))
                continue
            except (OSError, ValueError, KeyError, TypeError) as err:
                report(err if isinstance(err, RecordError) else RecordError(f"{path}: {err}"))
                continue
            yield Turn(path, agent_dir, record)


def agent_dirs(root: PathLike) -> Iterator[Path]:
    """Yield the folders below root, itself among them, that have turns/."""
    for folder, names, _ in os.walk(root):
        names.sort()
        here = Path(folder)
        if "turns" in names and not (here / "turns").is_symlink():
            yield here
        is_agent = any(name in names for name in ("system", "output", "turns"))
        names[:] = [n for n in names if not n.startswith(".") and not (is_agent and n in _SKIPPED)]


def record_paths(agent_dir: PathLike) -> List[Path]:
    """Return the records of one agent, in the order of their turns."""
    found = []
    with os.scandir(Path(agent_dir) / "turns") as entries:
        for entry in entries:
            if entry.name.endswith(".json") and not entry.name.startswith(".") and entry.is_file(follow_symlinks=False):
                found.append(Path(entry.path))
    return sorted(found)


def read_bounded(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file of at most so many."""
    if not path.is_file():
        if not path.exists():
            raise FileNotFoundError(2, "no such file", str(path))
        raise RecordError(f"{path}: not a regular file")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise RecordError(f"{path}: more than {most} bytes")
    return data


def _whole(record: Path, text: Any) -> Any:
    if not isinstance(text, list):
        return text
    return "".join(piece if isinstance(piece, str) else _source(record, piece["sha256"]) for piece in text)


def _source(record: Path, sha256: str) -> str:
    if not _SHA256.fullmatch(sha256):
        raise RecordError(f"{record}: {sha256!r} is no sha256")
    path = record.parent / "sources" / sha256
    data = b"" if path.is_symlink() else read_bounded(path, MAX_SOURCE_BYTES)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise RecordError(f"{path}: not the text it was")
    return data.decode("utf-8")
