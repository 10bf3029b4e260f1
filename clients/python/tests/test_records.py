"""Run with: PYTHONPATH=src python3 -m unittest discover tests"""

import hashlib
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, Optional
from unittest import mock

from agentgraph_client import RecordError, discover_schema, find_record, iter_turns, read_record, rebuild_request, validate


class RecordsTest(unittest.TestCase):
    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = Path(self._folder.name)
        self.agent = self.root / "agents" / "a"
        for name in ("system", "input", "output", "turns/sources"):
            (self.agent / name).mkdir(parents=True)

    def turn(self, id: str, answer: str, constraint: Optional[Dict[str, Any]] = None, **changes: Any) -> Path:
        """Write a turn's answer and its record."""
        path = self.agent / "output" / f"x_{id}.json"
        path.write_text(answer, encoding="utf-8")
        system = "long " * 500
        digest = hashlib.sha256(system.encode()).hexdigest()
        (self.agent / "turns" / "sources" / digest).write_text(system)
        piece = {"sha256": digest, "bytes": len(system)}
        record = {
            "schema_version": "agentgraph.turn/1",
            "turn_id": id,
            "outcome": {"status": "completed", "output": answer},
            "output_validation": {"status": "valid" if constraint else "not_requested"},
            "request": {
                "messages": [{"role": "system", "content": [piece]}, {"role": "user", "content": "in"}],
                "prompt": ["<s>", piece, "</s>in"],
                "constraint": constraint,
                "sampling": {"temperature": 0},
                "tools": [],
                "model": {"engine": "script", "name": "m"},
                "determinism": "fast",
            },
            "inputs": [],
            "outputs": [
                {"path": f"agents/a/output/{path.name}", "sha256": hashlib.sha256(answer.encode()).hexdigest(), "bytes": len(answer)}
            ],
            "tool_calls": [],
            "repair": None,
        }
        record.update(changes)
        (self.agent / "turns" / f"{id}.json").write_text(json.dumps(record), encoding="utf-8")
        return path

    def test_shared_texts_are_put_back(self) -> None:
        answer = self.turn("1", "{}")
        request = rebuild_request(answer)
        self.assertEqual(request["from"], "record")
        self.assertEqual(request["messages"][0]["content"], "long " * 500)
        self.assertEqual(request["prompt"], "<s>" + "long " * 500 + "</s>in")

    def test_turns_go_on_after_bad_records(self) -> None:
        self.turn("1", "{}")
        self.turn("3", "{}")
        turns = self.agent / "turns"
        (turns / "2.json").write_text((turns / "1.json").read_text()[:100])
        (turns / "4.json").write_text('{"schema_version": "other"}')
        (turns / "5.json").write_text('{"schema_version": "agentgraph.turn/1", "request": {"prompt": [{"sha256": "../../x"}]}}')
        os.symlink(turns / "1.json", turns / "6.json")
        errors: List[Exception] = []
        ids = [t.record["turn_id"] for t in iter_turns(self.root, errors.append)]
        self.assertEqual(ids, ["1", "3"])
        self.assertEqual([Path(str(e).split(":")[0]).name for e in errors], ["2.json", "4.json", "5.json"])
        with self.assertWarns(UserWarning):
            found = list(iter_turns(self.agent))
        self.assertEqual([t.answer for t in found], ["{}", "{}"])
        self.assertEqual([f.name for t in found for f in t.files], ["x_1.json", "x_3.json"])
        self.assertEqual([validate(f, record=t.record).ok for t in found for f in t.files], [True, True])
        self.assertFalse(validate(found[0].files[0], record=found[1].record).ok)
        self.assertEqual(rebuild_request(found[1].files[0], record=found[1].record)["turn_id"], "3")

    def test_a_shared_text_that_was_changed(self) -> None:
        self.turn("1", "{}")
        for path in (self.agent / "turns" / "sources").iterdir():
            path.write_text("other")
        with self.assertRaises(RecordError):
            read_record(self.agent / "turns" / "1.json")

    def test_last_request(self) -> None:
        call = {"id": "call00001", "name": "add", "arguments": {"a": 1}, "result": "2"}
        answer = self.turn(
            "1",
            "{}",
            tool_calls=[call],
            tool_rounds=[{"text": "", "calls": 1}],
            repair={"status": "succeeded", "rejected": "[]", "feedback": "Again."},
        )
        last, first = rebuild_request(answer), rebuild_request(answer, first=True)
        self.assertEqual([m["role"] for m in last["messages"]], ["system", "user", "assistant", "tool", "assistant", "user"])
        self.assertIsNone(last["prompt"])
        self.assertEqual(len(first["messages"]), 2)
        self.assertIsNotNone(first["prompt"])

    def test_without_a_record(self) -> None:
        (self.agent / "system" / ".schema-x.json").write_text('{"type": "object"}')
        (self.agent / "output" / "x_0.json").write_text("{}")
        answer = self.agent / "output" / "x_0.json"
        self.assertIsNone(find_record(answer))
        with self.assertRaises(RecordError):
            rebuild_request(answer)
        (self.agent / "input" / "a.txt").write_text("hello")
        request = rebuild_request(answer)
        self.assertEqual((request["from"], request["messages"][-1]["content"]), ("folder", "hello"))
        self.assertEqual(request["constraint"]["kind"], "json")
        (self.agent / "agent.yaml").write_text("prompt: more\n")
        with self.assertRaises(RecordError):
            rebuild_request(answer, "hello")

    def test_validate_without_packages(self) -> None:
        constraint = {"kind": "json", "source": '{"type": "object"}'}
        good, edited = self.turn("1", "{}", constraint), self.turn("2", "{}", constraint)
        edited.write_text("{} ")
        torn = self.turn("3", '{"a": ', constraint)
        regex = self.turn("4", "abc", {"kind": "regex", "source": "[a-z]+"})
        bare = self.agent / "output" / "x_9.json"
        bare.write_text('{"a": NaN}')
        (self.agent / "system" / ".schema-x.json").write_text('{"type": "array"}')
        schema = discover_schema(self.agent / "system")
        with mock.patch.dict(sys.modules, {"jsonschema": None}):
            self.assertEqual((validate(good).ok, validate(good).decided_by), (True, "record"))
            self.assertEqual((validate(edited).ok, validate(edited).decided_by), (False, "form"))
            self.assertFalse(validate(torn).ok)
            self.assertEqual((validate(regex).ok, validate(regex).decided_by), (True, "record"))
            self.assertEqual((validate(bare, schema).ok, validate(bare).ok), (False, True))
            bare.write_text("{}")
            self.assertEqual((validate(bare, schema).ok, validate(bare, schema).decided_by), (True, "form"))


if __name__ == "__main__":
    unittest.main()
