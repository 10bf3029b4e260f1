"""Is an answer what it should be?"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, List, Optional, Tuple, Union

from .answers import Answer
from .rebuild import find_record
from .schema import PathLike, Schema
from .turns import Record, read_bounded

MAX_ANSWER_BYTES = 16 << 20


@dataclass(frozen=True)
class Validation:
    """What validate found. decided_by says how far to trust ok:

    - "schema": the JSON Schema was applied, by the jsonschema package;
    - "record": the file is, by its hash, the text that agentgraph validated;
    - "form": nothing but its form is known: text, and JSON where that is due.
    """

    ok: bool
    decided_by: str
    reasons: List[str] = field(default_factory=list)


def validate(answer: Union[Answer, PathLike], schema: Optional[Schema] = None, record: Optional[Record] = None) -> Validation:
    """Check one answer against its record and against its schema.

    The schema is the one that the answer's record has; schema, as
    discover_schema returns it, stands in where there is no record.

    This package needs nothing but Python, and so cannot apply a schema by
    itself. Where the jsonschema package can be imported it does that for JSON
    Schemas. Regular expressions and grammars are decided by agentgraph alone,
    as the languages of Python's re differ: use "agentgraph verify".

    Without record it is looked for among those of the agent, one by one; give
    it where there are many answers, as iter_turns does.
    """
    path = answer.path if isinstance(answer, Answer) else Path(answer)
    reasons: List[str] = []
    data = read_bounded(path, MAX_ANSWER_BYTES)
    record = record or find_record(path)
    decided_by = "form"
    kind, source = (schema.kind, schema.source) if schema else (None, None)
    if record is not None:
        decided_by = "record"
        sums = [r["sha256"] for r in record["outputs"] if r["path"].rsplit("/", 1)[-1] == path.name]
        if hashlib.sha256(data).hexdigest() not in sums:
            reasons.append("file and record disagree")
            decided_by = "form"
        constraint = record["request"]["constraint"] if record["request"] else None
        kind, source = (constraint["kind"], constraint["source"]) if constraint else (None, None)
        status = record["output_validation"]["status"]
        if constraint and status != "valid":
            reasons.append(f"the record says that the answer is {status}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as err:
        return Validation(False, decided_by, reasons + [f"not UTF-8: {err}"])
    if kind == "json" and source is not None:
        try:
            value = parse_json(text)
        except (ValueError, RecursionError) as err:
            return Validation(False, decided_by, reasons + [f"not JSON: {err}"])
        try:
            found = _apply(source, value)
        except Exception as err:  # a schema that leads elsewhere, or is none
            return Validation(False, decided_by, reasons + [f"its schema cannot be applied: {err}"])
        if found is not None:
            decided_by = "schema"
            reasons += found
    return Validation(not reasons, decided_by, reasons)


def parse_json(text: str) -> Any:
    """Parse one JSON value as agentgraph does: no NaN, and no member twice."""
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _no_duplicates(pairs: List[Tuple[str, Any]]) -> Any:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a member stands twice in one object")
    return out


def _apply(source: str, value: Any) -> Optional[List[str]]:
    """Return what is wrong with a value; None when no package can tell."""
    try:
        import jsonschema
        import referencing
    except ImportError:
        return None
    schema = json.loads(source)
    # An empty registry: no schema leads to the network.
    cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    checker = cls(schema, registry=referencing.Registry())
    # A message may quote the whole answer.
    return [f"not valid at {e.json_path}: {e.validator}" for e, _ in zip(checker.iter_errors(value), range(8))]
