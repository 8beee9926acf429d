"""Log-probabilities of every position by llama.cpp: llamacpp_logits.py MODEL IDS OUT.npy

IDS is a text file of token ids. xllamacpp has no call for logits, but its completion gives the
log-probabilities of the next token over the whole vocabulary (`n_probs`), so the prompt is grown
one token at a time; its prompt cache makes each step one token's work. The logits of a position are
known up to a constant, so OUT [ids, vocab] holds the log-softmax.

A program of its own, because llama.cpp stops the process where it finds a fault.
"""

import sys

import gguf
import numpy as np
import xllamacpp


def start(path):
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = 256
    params.n_parallel = 1
    params.warmup = False
    params.fit_params = False
    params.verbosity = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    # The plainest arithmetic it has: no flash attention, cache in float32.
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    return xllamacpp.Server(params)


def main():
    model, ids_path, out = sys.argv[1:4]
    ids = [int(word) for word in open(ids_path).read().split()]
    tokens = gguf.GGUFReader(model).fields["tokenizer.ggml.tokens"].contents()
    vocab = len(tokens)
    server = start(model)
    logprobs = np.full((len(ids), vocab), np.nan)
    for n in range(1, len(ids) + 1):
        request = {
            "prompt": ids[:n],
            "n_predict": 1,
            "n_probs": vocab,
            "temperature": 0,
            "cache_prompt": True,
            # No probabilities come with half a character, so a letter is forced. They are those of
            # the model all the same: the bias works on the sampler only.
            "logit_bias": {str(tokens.index("a")): 1000},
        }
        answer = server.handle_completions(request)
        if "choices" not in answer:
            sys.exit(f"llama.cpp refused {n} tokens: {answer}")
        if answer["usage"]["prompt_tokens"] != n:
            sys.exit(f"llama.cpp saw {answer['usage']['prompt_tokens']} tokens, not {n}")
        for entry in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
            logprobs[n - 1, entry["id"]] = entry["logprob"]
    np.save(out, logprobs)


if __name__ == "__main__":
    main()
