"""Judges GBNF by llama.cpp itself, through llama-cpp-python.

usage: judge_llamacpp.py MODEL.gguf      (only the model's vocabulary is used)

Reads a JSON object a line from stdin, {"grammar": …, "texts": […]}, and
answers each with {"accepts": [true, …]} or {"error": …}; null stands for a
text that the vocabulary cannot spell.
"""
import ctypes
import json
import sys

import llama_cpp as l


def log_nothing(level, text, data):
    pass


callback = l.llama_log_callback(log_nothing)
l.llama_log_set(callback, ctypes.c_void_p(0))
params = l.llama_model_default_params()
params.vocab_only = True
model = l.llama_model_load_from_file(sys.argv[1].encode(), params)
if not model:
    sys.exit("the model cannot be loaded")
vocab = l.llama_model_get_vocab(model)
end = l.llama_vocab_eos(vocab)


def tokens(text):
    raw = text.encode()
    out = (l.llama_token * (len(raw) + 8))()
    n = l.llama_tokenize(vocab, raw, len(raw), out, len(out), False, False)
    return list(out[:n])


def piece(token):
    buffer = ctypes.create_string_buffer(256)
    n = l.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, False)
    return buffer.raw[:n]


def allowed(sampler, token):
    one = (l.llama_token_data * 1)(l.llama_token_data(token, 0.0, 0.0))
    array = l.llama_token_data_array(one, 1, -1, False)
    l.llama_sampler_apply(sampler, ctypes.byref(array))
    return one[0].logit == 0.0


def accepts(base, text):
    spelt = tokens(text)
    if b"".join(map(piece, spelt)) != text.encode():
        return None
    sampler = l.llama_sampler_clone(base)
    try:
        for token in spelt:
            if not allowed(sampler, token):
                return False
            l.llama_sampler_accept(sampler, token)
        return allowed(sampler, end)
    finally:
        l.llama_sampler_free(sampler)


for line in sys.stdin:
    request = json.loads(line)
    base = l.llama_sampler_init_grammar(vocab, request["grammar"].encode(), b"root")
    if not base:
        print(json.dumps({"error": "llama.cpp refuses the grammar"}), flush=True)
        continue
    print(json.dumps({"accepts": [accepts(base, t) for t in request["texts"]]}), flush=True)
    l.llama_sampler_free(base)
