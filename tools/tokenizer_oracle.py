#!/usr/bin/env python3
"""Compares the ids of `cicada tokenize` with llama.cpp's and writes the golden files of the tests.

For each known model, every text goes through both, as plain text and with control tokens:
  multilingual, emoji    testdata/tokenizer/*.txt
  wiki                   all of wikitext-2-raw/wiki.test.raw
  gsm8k                  all of gsm8k/test.jsonl as it is, and the questions alone
  codepoints (--deep)    every assigned character up to U+10FFFF in seven surroundings
  random (--deep)        random mixtures of what pre-tokenizers tell apart; the seed is printed
llama.cpp is the PyPI package xllamacpp, asked through the server that it starts on this machine.
Status: 0 all equal, 3 some differ (the first differing lines are shown), 2 something is missing.

With --write, golden files come from llama.cpp's ids (never from ours):
  testdata/tokenizer/<model>.<text>[.special].ids   ids of the two small texts
  testdata/tokenizer/large_texts.txt                model, path, count, FNV-1a 64 of the ids
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import unicodedata
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "testdata" / "tokenizer"
MODELS = ["smollm2", "gemma3-270m", "qwen2.5-coder-1.5b"]
LARGE = ["wikitext-2-raw/wiki.test.raw", "gsm8k/test.jsonl"]


class LlamaCpp:
    """A server of xllamacpp for one model file."""

    def __init__(self, path):
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = 512
        params.n_parallel = 1
        params.n_gpu_layers = 0
        params.warmup = False
        params.cpuparams.n_threads = 1
        params.verbosity = 0
        self.server = xllamacpp.Server(params)

    def tokenize(self, text, special):
        body = {"content": text, "add_special": False, "parse_special": special}
        request = urllib.request.Request(
            self.server.listening_address + "/tokenize",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["tokens"]


def tokenize_ours(cicada, path, text, special):
    command = [cicada, "tokenize", "-m", str(path), "--json"] + (["--special"] if special else [])
    done = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["tokens"]


def fnv1a(ids):
    value = 0xCBF29CE484222325
    for token in ids:
        for byte in token.to_bytes(4, "little", signed=True):
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def codepoints_text():
    """Assigned characters, of the large uniform blocks only the ends."""
    uniform = [(0x3410, 0x4DB0), (0x4E10, 0x9FF0), (0xAC10, 0xD7A0), (0xE010, 0xF8F0),
               (0x17010, 0x187F0), (0x20010, 0x2A6D0), (0x2A710, 0x323A0), (0xF0010, 0xFFFF0),
               (0x100010, 0x10FFF0)]
    chars = [chr(c) for c in range(0x80, 0x110000)
             if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) != "Cn"
             and not any(low < c < high for low, high in uniform)]
    groups = [chars[i : i + 8] for i in range(0, len(chars), 8)]
    return "\n".join(" ".join(f"a{c}b1{c}2 {c}{c}.{c}" for c in group) for group in groups)


def random_text(seed):
    source = random.Random(seed)
    pools = [" " * 6 + "\n\r\t\u00a0\u3000\u2028\u0085\u000b", "abcdefgstmdrvl" * 2 + "ABSTLRV",
             "0123456789", "'''\u2019", ".,;:!?-_()[]{}$+<=>^~|`/\\@#%&*\"",
             "\u00e9\u00df\u00f1\u03b1\u0436\u4e2d\u306a\uac00\u0e44\u0939\u093f\u0639\u05d1",
             "\u00bd\u00b2\u0663\u0967\u2163", "\U0001f600\U0001f44d\U0001f3fd\u200d\ufe0f",
             "\u0301\u0308\u200b\0\u0004\u007f\ufffd",
             ["<|im_end|>", "<|im_start|>", "<eos>", "<unused3>", "<|endoftext|>", "<table>",
              "<|im_start|", "<unk>", "</tool_call>", "\t\t\t", "\n\n\n"]]
    lines = []
    for _ in range(3000):
        parts = []
        while len(parts) < source.randint(1, 60):
            pool = source.choice(pools)
            parts += [source.choice(pool) for _ in range(source.randint(1, source.choice([2, 6])))]
        lines.append("".join(parts))
    return "\n".join(lines)


def texts(data, deep):
    found = {name: (GOLDEN / f"{name}.txt").read_bytes().decode()
             for name in ["multilingual", "emoji"]}
    for path in LARGE:
        found[path] = (data / path).read_bytes().decode()
    lines = found["gsm8k/test.jsonl"].splitlines()
    found["gsm8k questions"] = "".join(json.loads(line)["question"] + "\n" for line in lines)
    if deep:
        seed = random.randrange(1 << 32)
        found["codepoints"] = codepoints_text()
        found[f"random, seed {seed}"] = random_text(seed)
    return found


def show_difference(text, theirs_of, ours_of):
    shown = 0
    for line in text.split("\n"):
        theirs, ours = theirs_of(line), ours_of(line)
        if theirs != ours:
            print(f"    {ascii(line[:80])}\n      llama.cpp {theirs[:16]}\n      cicada    {ours[:16]}")
            shown += 1
        if shown == 5:
            return


def check_model(args, name, path, golden):
    oracle = LlamaCpp(path)
    equal = True
    for text_name, text in texts(args.data, args.deep).items():
        for special in (False, True):
            theirs = oracle.tokenize(text, special)
            ours = tokenize_ours(args.cicada, path, text, special)
            same = theirs == ours
            equal &= same
            kind = "special" if special else "plain"
            print(f"{name} {text_name} ({kind}): {len(theirs)} ids,", "equal" if same else "DIFFER",
                  flush=True)
            if not same:
                show_difference(text, lambda t: oracle.tokenize(t, special),
                                lambda t: tokenize_ours(args.cicada, path, t, special))
            golden[(name, text_name, special)] = theirs
    return equal


def write_golden(golden):
    lines = []
    for (model, text_name, special), ids in golden.items():
        if text_name in ("multilingual", "emoji"):
            suffix = ".special" if special else ""
            rows = [" ".join(map(str, ids[i : i + 20])) for i in range(0, len(ids), 20)]
            (GOLDEN / f"{model}.{text_name}{suffix}.ids").write_text("\n".join(rows) + "\n")
        elif text_name in LARGE and not special:
            lines.append(f"{model} {text_name} {len(ids)} {fnv1a(ids)}\n")
    (GOLDEN / "large_texts.txt").write_text("".join(lines))


def main():
    home = pathlib.Path(os.environ.get("CICADA_HOME", pathlib.Path.home() / ".cache" / "cicada"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cicada", default=str(ROOT / "build" / "cicada"))
    parser.add_argument("--models", type=pathlib.Path, default=home / "models",
                        help="folder that holds smollm2.gguf, gemma3-270m.gguf, …")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--model", action="append", choices=MODELS, help="default: all three")
    parser.add_argument("--deep", action="store_true", help="also all characters and random text")
    parser.add_argument("--write", action="store_true", help="write the golden files (all models)")
    args = parser.parse_args()
    if args.write and args.model:
        parser.error("--write needs all models")
    golden = {}
    equal = True
    for name in args.model or MODELS:
        path = args.models / f"{name}.gguf"
        if not path.exists() or not args.data.exists():
            print(f"missing: {path if not path.exists() else args.data}", file=sys.stderr)
            return 2
        equal &= check_model(args, name, path, golden)
    if args.write:
        write_golden(golden)
    return 0 if equal else 3


if __name__ == "__main__":
    sys.exit(main())
