"""Find the answers of an agentgraph folder, rebuild the messages behind them, and read what agentgraph sends."""

from .answers import Answer, find_answers
from .messages import rebuild_messages
from .rebuild import find_record, rebuild_request
from .response import META_KEY, SCHEMA_VERSION, Structured, structured_of, task_of, text_of
from .schema import Schema, SchemaError, discover_schema
from .turns import RecordError, Turn, iter_turns, read_record
from .validate import Validation, validate

__all__ = [
    "META_KEY",
    "SCHEMA_VERSION",
    "Answer",
    "RecordError",
    "Schema",
    "SchemaError",
    "Structured",
    "Turn",
    "Validation",
    "discover_schema",
    "find_answers",
    "find_record",
    "iter_turns",
    "read_record",
    "rebuild_messages",
    "rebuild_request",
    "structured_of",
    "task_of",
    "text_of",
    "validate",
]
