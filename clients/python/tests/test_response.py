"""Run with: PYTHONPATH=src python3 -m unittest discover tests"""

import functools
import json
import unittest
from decimal import Decimal
from typing import Any, Dict, Optional

from agentgraph_client import META_KEY, structured_of, task_of, text_of


def task(output: Optional[str], status: str = "completed", validation: str = "valid") -> Dict[str, Any]:
    return {
        "schema_version": "agentgraph.turn/1",
        "outcome": {"status": status, "output": output},
        "output_validation": {"status": validation},
    }


class Model:
    """An object as the SDKs make them, with attributes instead of members."""

    def __init__(self, **members: object) -> None:
        self.__dict__.update(members)


class Hostile:
    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)


class ResponseTest(unittest.TestCase):
    def test_where_records_stand(self) -> None:
        t = task('{"a": 1}')
        for response in (
            t,
            {"structuredContent": {"output": 0, "task": t}},
            {"_meta": {META_KEY: {"task": t}}},
            Model(structuredContent={"task": t}),
            Model(structured_content={"task": t}),
            Model(field_meta={META_KEY: {"task": t}}),
            Model(meta={META_KEY: {"task": t}}),
        ):
            self.assertIs(task_of(response), t)
            found = structured_of(response)
            assert found is not None
            self.assertEqual((found.value, found.text), ({"a": 1}, '{"a": 1}'))

    def test_only_completed_and_valid(self) -> None:
        for status in ("cancelled", "timed_out", "policy_denied", "limit_exceeded", "failed"):
            self.assertIsNone(structured_of(task("1", status=status)))
            self.assertIsNone(text_of(task("1", status=status)))
        self.assertIsNone(structured_of(task("1", validation="invalid")))
        self.assertIsNone(text_of(task("1", validation="invalid")))
        self.assertIsNone(structured_of(task("1", validation="not_requested")))
        self.assertEqual(text_of(task("1", validation="not_requested")), "1")

    def test_null_is_an_answer(self) -> None:
        found = structured_of(task("null"))
        assert found is not None
        self.assertIsNone(found.value)

    def test_numbers(self) -> None:
        text = '{"id": 9007199254740993, "price": 0.1000000000000000000001}'
        found = structured_of(task(text))
        assert found is not None
        self.assertEqual(found.value, {"id": 9007199254740993, "price": 0.1})
        exact = structured_of(task(text), functools.partial(json.loads, parse_float=Decimal))
        assert exact is not None
        self.assertEqual(exact.value["price"], Decimal("0.1000000000000000000001"))

    def test_not_json(self) -> None:
        for text in ("0042", "", "NaN", "[" * 100_000, "1" * 100_000):
            self.assertIsNone(structured_of(task(text)), text[:10])
            self.assertEqual(text_of(task(text)), text)

    def test_hostile(self) -> None:
        for response in (None, 1, "x", [], object(), Hostile(), {"structuredContent": Hostile()}, {"_meta": {META_KEY: 1}}):
            self.assertIsNone(task_of(response))
            self.assertIsNone(text_of(response))
            self.assertIsNone(structured_of(response))


if __name__ == "__main__":
    unittest.main()
