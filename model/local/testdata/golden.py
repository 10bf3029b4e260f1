"""Writes golden.json: every template of templates/ over every context of contexts.json, rendered by Python's jinja2 as
Hugging Face's transformers sets it up. Run it after a change of either: python3 golden.py (needs jinja2 3.1)."""
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2026, 3, 4, 15, 6, 7, 89)


class Generation(jinja2.ext.Extension):
    """{% generation %} marks an assistant's words for training; it prints them."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_inside"), [], [], body).set_lineno(line)

    def _inside(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


here = pathlib.Path(__file__).parent
env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = NOW.strftime
contexts = json.loads((here / "contexts.json").read_text())
golden = {}
for path in sorted((here / "templates").glob("*.jinja")):
    template = env.from_string(path.read_text())
    out = golden[path.stem] = {}
    for name, context in contexts.items():
        given = {"tools": None, "documents": None, "bos_token": "<s>", "eos_token": "</s>", **context}
        try:
            out[name] = {"text": template.render(**given)}
        except Exception as e:  # what matters is that it fails
            out[name] = {"error": str(e) if isinstance(e, jinja2.exceptions.TemplateError) else type(e).__name__}
(here / "golden.json").write_text(json.dumps(golden, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
