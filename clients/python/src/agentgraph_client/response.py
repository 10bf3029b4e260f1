"""What a program gets back over MCP or ACP: the turn record and the answer in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Generic, Iterator, Optional, TypeVar, overload

from .validate import parse_json

T = TypeVar("T")

SCHEMA_VERSION = "agentgraph.turn/1"
META_KEY = "agentgraph/v1"
"""The member of `_meta` that agentgraph uses over ACP."""


@dataclass(frozen=True)
class Structured(Generic[T]):
    """A validated answer read as JSON, and the text it was read from."""

    value: T
    text: str


def task_of(response: object) -> Optional[Dict[str, Any]]:
    """Return the turn record in a response, or None where there is none.

    The response is the result of an MCP tool call, an ACP prompt response or a
    record itself; as parsed JSON or as an object of the SDKs. Never raises.
    """
    try:
        return next((place for place in map(_record, _places(response)) if place is not None), None)
    except Exception:  # an object of someone else's making, whose members raise
        return None


def text_of(response: object) -> Optional[str]:
    """Return the answer of a completed turn, asked to be valid or not.

    What was cut off, cancelled or invalid is no answer. Never raises.
    """
    task = task_of(response)
    if task is None or task["output_validation"]["status"] == "invalid":
        return None
    outcome = task["outcome"]
    if outcome is None or outcome["status"] != "completed":
        return None
    output: Optional[str] = outcome["output"]
    return output


@overload
def structured_of(response: object) -> Optional[Structured[Any]]: ...
@overload
def structured_of(response: object, parse: Callable[[str], T]) -> Optional[Structured[T]]: ...
def structured_of(response: object, parse: Optional[Callable[[str], Any]] = None) -> Optional[Structured[Any]]:
    """Return the answer read as JSON, or None.

    None unless the turn completed, the answer was validated against a schema or
    a grammar, and it is JSON. Integers are exact, other numbers become floats;
    for exact ones read `text`, or pass a parser such as
    `functools.partial(json.loads, parse_float=decimal.Decimal)`. An integer with
    more digits than `sys.get_int_max_str_digits()` is not read. Never raises.
    """
    task, text = task_of(response), text_of(response)
    if task is None or text is None or task["output_validation"]["status"] != "valid":
        return None
    try:
        return Structured((parse or parse_json)(text), text)
    except Exception:  # valid, but not JSON: held to a regex or a grammar
        return None


def _places(response: object) -> Iterator[object]:
    for name in ("structuredContent", "structured_content"):
        yield _member(_member(response, name), "task")
    for name in ("_meta", "field_meta", "meta"):
        yield _member(_member(_member(response, name), META_KEY), "task")
    yield response


def _member(value: object, name: str) -> object:
    if isinstance(value, dict):
        return value.get(name)
    return getattr(value, name, None) if name.isidentifier() else None


def _record(value: object) -> Optional[Dict[str, Any]]:
    """Return value when it says that it is a record and has what is decided by here."""
    if not isinstance(value, dict) or value.get("schema_version") != SCHEMA_VERSION or "outcome" not in value:
        return None
    outcome, validation = value["outcome"], value.get("output_validation")
    if outcome is not None:
        if not isinstance(outcome, dict) or not isinstance(outcome.get("status"), str):
            return None
        if "output" not in outcome or not isinstance(outcome["output"], (str, type(None))):
            return None
    if not isinstance(validation, dict) or not isinstance(validation.get("status"), str):
        return None
    return value
