"""Answers: the files whose whole name is one that a schema file gives."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

from .schema import PathLike, Schema


@dataclass(frozen=True)
class Answer:
    """One answer. turn and timestamp are None where the name has none."""

    path: Path
    turn: Optional[int]
    timestamp: Optional[int]  # epoch milliseconds


def find_answers(output_dir: PathLike, schema: Optional[Schema] = None) -> List[Answer]:
    """Return the answers in a folder, in order of turn and time.

    Without a schema these are the files called out-<timestamp>.txt.
    """
    form, ext = (schema.format, schema.extension) if schema else ("out-{timestamp}", "txt")
    answers = []
    for entry in os.scandir(output_dir):
        numbers = parse_name(form, ext, entry.name)
        if numbers is not None and entry.is_file():
            answers.append(Answer(Path(entry.path), *numbers))
    return sorted(answers, key=lambda a: (a.turn or 0, a.timestamp or 0, a.path.name))


def parse_name(form: str, ext: str, name: str) -> Optional[Tuple[Optional[int], Optional[int]]]:
    """Return the turn and the timestamp in a name; None when it does not match."""
    for pattern in _patterns(form, ext):
        match = pattern.fullmatch(name)
        if match is None:
            continue
        groups = match.groupdict()
        turn = int(groups["turn"]) if "turn" in groups else None
        stamp = int(groups["timestamp"]) if "timestamp" in groups else None
        if (turn or 0) < 2**64 and (stamp or 0) < 2**63:
            return turn, stamp
    return None


def _patterns(form: str, ext: str) -> Iterator["re.Pattern[str]"]:
    if "{turn}" not in form and "{timestamp}" not in form:
        form += "_{turn}"
    # Where both numbers touch, a timestamp of the usual 13 digits comes first.
    lengths = [13, *range(14, 20), *range(12, 0, -1)] if "{timestamp}" in form else [0]
    for length in lengths:
        seen = set()
        text = ""
        for part in re.split(r"(\{turn\}|\{timestamp\})", form):
            name = part.strip("{}")
            if part not in ("{turn}", "{timestamp}"):
                text += re.escape(part)
            elif name in seen:
                text += f"(?P={name})"
            elif name == "turn":
                text += "(?P<turn>0|[1-9][0-9]{0,19})"
            elif length == 1:
                text += "(?P<timestamp>[0-9])"
            else:
                text += f"(?P<timestamp>[1-9][0-9]{{{length - 1}}})"
            seen.add(name)
        yield re.compile(text + re.escape("." + ext))
