"""Find the answers of an agentgraph folder, and rebuild the messages behind them."""

from .answers import Answer, find_answers
from .messages import rebuild_messages
from .schema import Schema, SchemaError, discover_schema

__all__ = ["Answer", "Schema", "SchemaError", "discover_schema", "find_answers", "rebuild_messages"]
