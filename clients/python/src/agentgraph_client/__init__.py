"""Find the answers of an agentgraph folder, rebuild the messages behind them, and read what agentgraph sends."""

from .answers import Answer, find_answers
from .messages import rebuild_messages
from .response import META_KEY, SCHEMA_VERSION, Structured, structured_of, task_of, text_of
from .schema import Schema, SchemaError, discover_schema

__all__ = [
    "META_KEY",
    "SCHEMA_VERSION",
    "Answer",
    "Schema",
    "SchemaError",
    "Structured",
    "discover_schema",
    "find_answers",
    "rebuild_messages",
    "structured_of",
    "task_of",
    "text_of",
]
