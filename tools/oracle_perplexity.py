#!/usr/bin/env python3
"""Perplexity of a real model by the oracle: the exact figure, no activation quantisation.

  oracle_perplexity.py MODEL.gguf TEXT [--chunks 2] [--ctx 512] [--float64] [--kv f32|f16]

llama.cpp's protocol: chunks of ctx tokens, the first token of each replaced by BOS where the model
adds one, the second half of each scored. Ids come from llama.cpp's tokenizer (PyPI `xllamacpp`), so
the figure stands on nothing of ours. Slow and memory-hungry: weights are decoded to float32 (or
float64). Needs PyPI numpy, gguf, xllamacpp.
"""

import argparse
import json
import pathlib
import sys
import urllib.request

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "oracle"))
import oracle  # noqa: E402


def tokenize(model_path, text):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model_path
    params.n_ctx, params.n_parallel, params.warmup, params.fit_params, params.verbosity = (
        64,
        1,
        False,
        False,
        0,
    )
    server = xllamacpp.Server(params)
    body = json.dumps({"content": text, "add_special": True}).encode()
    request = urllib.request.Request(
        server.listening_address + "/tokenize", body, {"Content-Type": "application/json"}
    )
    return json.load(urllib.request.urlopen(request))["tokens"]


def log_probability(logits, targets):
    top = np.max(logits, axis=-1, keepdims=True)
    total = np.log(np.sum(np.exp((logits - top).astype(np.float64)), axis=-1))
    return logits[np.arange(len(targets)), targets] - top[:, 0] - total


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--chunks", type=int, default=2)
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--float64", action="store_true")
    parser.add_argument("--kv", choices=["f32", "f16"], default="f32")
    args = parser.parse_args()
    dtype = np.float64 if args.float64 else np.float32
    # Eight characters a token are more than enough for the start of the text.
    # newline="": the text's own line ends, which are \r\n in wiki.test.raw, are part of it.
    with open(args.text, encoding="utf-8", newline="") as file:
        text = file.read()[: args.chunks * args.ctx * 8]
    ids = tokenize(args.model, text)[: args.chunks * args.ctx]
    if len(ids) < args.chunks * args.ctx:
        sys.exit(f"{args.text} gives {len(ids)} tokens, {args.chunks * args.ctx} are needed")
    model = oracle.load(args.model, dtype)
    arithmetic = oracle.Exact(kv_f16=args.kv == "f16", dtype=dtype)
    first, losses = args.ctx // 2, []
    for chunk in range(args.chunks):
        tokens = ids[chunk * args.ctx : (chunk + 1) * args.ctx]
        targets = tokens[first + 1 :]
        if model.add_bos:
            tokens = [model.bos] + tokens[1:]
        logits = oracle.forward(model, tokens, arithmetic)[first:-1]
        losses.append(-np.mean(log_probability(logits, targets)))
        print(
            f"chunk {chunk + 1}: {np.exp(losses[-1]):.4f}, so far {np.exp(np.mean(losses)):.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
