"""Asks mistral.rs under grammars, one JSON object a line: {"type", "value"} as
its server takes them. Prints each answer as a JSON string.
Usage: judge_mistralrs.py MODEL.gguf <grammars >answers"""
import json
import os
import sys

from mistralrs import ChatCompletionRequest, Runner, Which

path = os.path.abspath(sys.argv[1])
runner = Runner(
    which=Which.GGUF(quantized_model_id=os.path.dirname(path), quantized_filename=os.path.basename(path)),
    no_paged_attn=True,
)
for line in sys.stdin:
    grammar = json.loads(line)
    value = grammar["value"]
    reply = runner.send_chat_completion_request(
        ChatCompletionRequest(
            model="default",
            messages=[{"role": "user", "content": "Greet me in one short sentence."}],
            max_tokens=48,
            temperature=0.0,
            grammar=value if isinstance(value, str) else json.dumps(value),
            grammar_type=grammar["type"],
        )
    )
    print(json.dumps(reply.choices[0].message.content), flush=True)
