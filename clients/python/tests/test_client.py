"""Run with: PYTHONPATH=src python3 -m unittest discover tests"""

import os
import tempfile
import unittest
from pathlib import Path

from agentgraph_client import SchemaError, discover_schema, find_answers, rebuild_messages


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.agent = Path(self._folder.name) / "agents" / "a"
        self.system = self.agent / "system"
        self.output = self.agent / "output"
        self.system.mkdir(parents=True)
        self.output.mkdir()

    def put(self, name: str, text: str = "") -> None:
        (self.system / name).write_bytes(text.encode())

    def test_no_schema(self) -> None:
        self.put("10-role.md", "Be kind.\n")
        self.assertIsNone(discover_schema(self.system))

    def test_schema(self) -> None:
        self.put(".schema-out-{timestamp}.txt@regex", "\ufeff[a-z]+\r\n")
        self.put(".schema-out-{timestamp}.txt@regex~", "old")
        schema = discover_schema(self.system)
        assert schema is not None
        self.assertEqual(
            (schema.format, schema.extension, schema.kind, schema.source), ("out-{timestamp}", "txt", "regex", "[a-z]+")
        )

    def test_refusals(self) -> None:
        for name, text in [
            (".schema-a.txt", "x"),
            (".schema-a.txt@gbnf", "x"),
            (".schema_a.json", "{}"),
            (".Schema-a.json", "{}"),
            (".schema-a.json\n", "{}"),
            (".schema-{x}.json", "{}"),
            (".schema-a.json~", "{}"),
            (".schema-a.json", " \n"),
            (".schema-a.txt@regex", "\n"),
            (".schema-a.txt@lark", "a\0b"),
        ]:
            with self.subTest(name=name, text=text):
                self.put(name, text)
                with self.assertRaises(SchemaError):
                    discover_schema(self.system)
                os.remove(self.system / name)
        self.put(".schema-a.json", "{}")
        self.put(".schema-b.json", "{}")
        with self.assertRaises(SchemaError):
            discover_schema(self.system)

    def test_answers(self) -> None:
        self.put(".schema-rating.json", "{}")
        for name in ["rating_10.json", "rating_2.json", "rating_02.json", "ratings_3.json", "rating_4.json~", ".agentgraph-x.tmp"]:
            (self.output / name).touch()
        (self.output / "rating_99.json").mkdir()
        found = find_answers(self.output, discover_schema(self.system))
        self.assertEqual([(a.path.name, a.turn) for a in found], [("rating_2.json", 2), ("rating_10.json", 10)])
        (self.output / "out-1712345678000.txt").touch()
        self.assertEqual([a.timestamp for a in find_answers(self.output)], [1712345678000])

    def test_messages(self) -> None:
        self.assertEqual(rebuild_messages(self.agent, "hi\n"), [{"role": "user", "content": "hi\n"}])
        self.put("b.md", "two\n\n")
        self.put("B.md", "one\r\n")
        self.put("c.md~", "no")
        self.put(".d.md", "no")
        self.put(".schema-a.txt@regex", "x+\n")
        self.assertEqual(
            rebuild_messages(self.agent, "hi", [("q", "a")]),
            [
                {
                    "role": "system",
                    "content": "one\n\ntwo\n\nAnswer with text that matches this regular expression"
                    " from its first to its last character, and nothing else:\nx+",
                },
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": "a"},
                {"role": "user", "content": "hi"},
            ],
        )


if __name__ == "__main__":
    unittest.main()
