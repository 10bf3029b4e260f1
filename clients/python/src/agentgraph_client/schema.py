"""Schema files: `.schema-<format>.<ext>` or `.schema-<format>.<ext>@<type>`."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

PathLike = Union[str, "os.PathLike[str]"]

KINDS = ("json", "regex", "lark", "llg")
_NAME = re.compile(r"\.schema-(.+)\.([a-z]+)(?:@([a-z]+))?")
_LOOKS_LIKE = re.compile(r"\.schema(?:[-._@].*)?", re.IGNORECASE | re.ASCII | re.DOTALL)
_LEFTOVER = re.compile(r"(.*)(?:~|\.swp|\.swo|\.swn|\.swx|\.tmp|\.part|\.bak|\.backup|\.orig|\.rej|\.save)", re.DOTALL)


class SchemaError(ValueError):
    """A schema file that agentgraph refuses."""


@dataclass(frozen=True)
class Schema:
    """A schema file as it was read."""

    path: Path
    format: str
    extension: str
    kind: str  # one of KINDS
    source: str  # without a byte-order mark; of a regex, without one trailing newline
    sha256: str  # of the file's bytes


def discover_schema(system_dir: PathLike) -> Optional[Schema]:
    """Return the one schema file of a system folder, or None."""
    names = set(os.listdir(system_dir))
    found = sorted(n for n in names if _LOOKS_LIKE.fullmatch(n) and not _is_leftover(n, names))
    if not found:
        return None
    if len(found) > 1:
        raise SchemaError(f"{system_dir}: more than one schema file: {', '.join(found)}; keep one")
    path = Path(system_dir) / found[0]
    match = _NAME.fullmatch(found[0])
    if match is None:
        raise SchemaError(f"{path}: name it .schema-<format>.<ext> or .schema-<format>.<ext>@<type>")
    form, ext, kind = match.groups()
    kind = kind or ("json" if ext == "json" else "")
    if kind not in KINDS:
        raise SchemaError(f"{path}: the type must be one of {', '.join(KINDS)}")
    if re.search(r"[{}]", form.replace("{turn}", "").replace("{timestamp}", "")):
        raise SchemaError(f"{path}: only {{turn}} and {{timestamp}} may stand in braces")
    raw = path.read_bytes()
    return Schema(path, form, ext, kind, _source(path, kind, raw), hashlib.sha256(raw).hexdigest())


def _is_leftover(name: str, names: set[str]) -> bool:
    match = _LEFTOVER.fullmatch(name)
    return match is not None and match[1] in names and _NAME.fullmatch(match[1]) is not None


def _source(path: Path, kind: str, raw: bytes) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as err:
        raise SchemaError(f"{path}: the file is not UTF-8: {err}") from None
    if "\0" in text:
        raise SchemaError(f"{path}: the file holds a NUL byte")
    text = text[1:] if text.startswith("\ufeff") else text
    if kind == "regex":
        text = text[:-2] if text.endswith("\r\n") else text[:-1] if text.endswith("\n") else text
    if not (text if kind == "regex" else text.strip()):
        raise SchemaError(f"{path}: the file is empty")
    return text
