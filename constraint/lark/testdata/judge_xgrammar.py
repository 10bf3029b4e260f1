"""Judges EBNF by XGrammar itself, over a vocabulary of bytes.

usage: judge_xgrammar.py

Reads a JSON object a line from stdin, {"grammar": …, "texts": […]}, and
answers each with {"accepts": [true, …]} or {"error": …}.
"""
import json
import sys

import xgrammar

# The end token's bytes are no UTF-8: XGrammar would else take it as text.
words = [bytes([i]) for i in range(256)] + [b"\xff\xfe"]
end = 256
info = xgrammar.TokenizerInfo(
    words, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(words), stop_token_ids=[end]
)
compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)


def accepts(compiled, text):
    matcher = xgrammar.GrammarMatcher(compiled)
    return all(matcher.accept_token(b) for b in text.encode()) and matcher.accept_token(end)


for line in sys.stdin:
    request = json.loads(line)
    try:
        compiled = compiler.compile_grammar(xgrammar.Grammar.from_ebnf(request["grammar"]))
    except Exception as e:
        print(json.dumps({"error": str(e)}), flush=True)
        continue
    print(json.dumps({"accepts": [accepts(compiled, t) for t in request["texts"]]}), flush=True)
