#!/usr/bin/env python3
"""Writes CHAIN, a tiny rigged GGUF whose greedy answer is a chosen row of tokens. No packages.

  make_chain.py OUT.gguf         alphabet CHAIN: `a` is answered by `bcdefghi…`
  make_chain.py OUT.gguf --order q ok '<0xF0>' '<0x9F>' '</s>'

It is a llama model in F32, about 100 KB. Attention and feed-forward outputs are zero, so a layer
adds nothing; the embedding is one-hot over the tokens of the order, and the head maps each to the
next one with a logit 32 above all others. All tokens outside the order share one more dimension,
which leads to the first token of the order. The end of the order leads to `--ending`:

  cycle   the first token of the order again (default)
  eos     the end token, as when `</s>` is the last element of the order
  stay    the last token for ever

Vocabulary (SPM): <unk>, <s>, </s>, 256 byte pieces, U+2581, a-z, `th`, `he`, then control pieces,
then every other piece that the order or `--piece` names. A space in a piece is written U+2581 in
the file, as SPM does. A start token is added (unless --no-bos), no space is put in front. Tokens of
an order are distinct, because each has one successor.
"""

import argparse
import pathlib
import struct

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WIDTH = 32  # at least; grows with the order
HEAD_DIM = 32
LOGIT = 32.0
UNK, BOS, EOS = 0, 1, 2


def vocabulary(order, control, extra):
    """[(text, type, score)], all texts distinct. SPM prefers the higher score: longer pieces."""
    tokens = [("<unk>", UNKNOWN, 0.0), ("<s>", CONTROL, 0.0), ("</s>", CONTROL, 0.0)]
    tokens += [(f"<0x{b:02X}>", BYTE, 0.0) for b in range(256)]
    known = {text for text, _, _ in tokens}

    def add(text, kind):
        text = text if kind == CONTROL else text.replace(" ", "\u2581")
        if not text:
            raise SystemExit("a piece is empty")
        if text not in known:
            known.add(text)
            tokens.append((text, kind, 0.0 if kind == CONTROL else float(len(text)) - 100.0))

    for text in ["\u2581", *LETTERS, "th", "he"]:
        add(text, NORMAL)
    for text in control:
        add(text, CONTROL)
    for text in [*extra, *order]:
        add(text, NORMAL)
    return tokens


def successors(tokens, order, ending):
    """(ids of the order, id that follows each)."""
    index = {text: i for i, (text, _, _) in enumerate(tokens)}
    ids = [index[piece if piece in index else piece.replace(" ", "\u2581")] for piece in order]
    if len(set(ids)) != len(ids):
        twice = next(p for p, i in zip(order, ids) if ids.count(i) > 1)
        raise SystemExit(f"piece {twice!r} occurs twice in the order; each has one successor")
    last = {"cycle": ids[0], "eos": EOS, "stay": ids[-1]}[ending]
    return ids, ids[1:] + [last]


def text_bytes(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value_bytes(kind, value):
    if kind == STRING:
        return text_bytes(value)
    return struct.pack({U32: "<I", F32: "<f", BOOL: "<?", I32: "<i"}[kind], value)


def key_value(key, kind, value, element=None):
    head = text_bytes(key) + struct.pack("<I", kind)
    if kind != ARRAY:
        return head + value_bytes(kind, value)
    items = b"".join(value_bytes(element, item) for item in value)
    return head + struct.pack("<IQ", element, len(value)) + items


def gguf_bytes(metadata, tensors):
    """metadata: arguments of key_value; tensors: (name, shape outermost first, list of floats)."""
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    out += b"".join(key_value(*entry) for entry in metadata)
    data = b""
    for name, shape, values in tensors:
        out += text_bytes(name) + struct.pack("<I", len(shape))
        out += struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", 0, len(data))
        raw = struct.pack(f"<{len(values)}f", *values)
        data += raw + bytes(-len(raw) % 32)
    return out + bytes(-len(out) % 32) + data


def chain(
    order=tuple(LETTERS),
    ending="cycle",
    control=(),
    extra=(),
    template=None,
    add_bos=True,
    n_ctx=4096,
    layers=1,
):
    """The bytes of a CHAIN file."""
    order = list(order)
    if len(order) > 1 and order[-1] == "</s>":
        order, ending = order[:-1], "eos"
    tokens = vocabulary(order, control, extra)
    ids, following = successors(tokens, order, ending)
    width = WIDTH
    while width < len(ids) + 1:
        width += HEAD_DIM
    num_tokens, ffn = len(tokens), HEAD_DIM
    embedding = [0.0] * (num_tokens * width)
    head = [0.0] * (num_tokens * width)
    place = {token: i for i, token in enumerate(ids)}
    for token in range(num_tokens):
        embedding[token * width + place.get(token, len(ids))] = 1.0
    # After the last norm a one-hot row is sqrt(width) high.
    for dim, token in enumerate([*following, ids[0]]):
        head[token * width + dim] = LOGIT / width**0.5
    heads = width // HEAD_DIM
    zero = lambda n, k: [0.0] * (n * k)  # noqa: E731
    tensors = [("token_embd.weight", (num_tokens, width), embedding)]
    for layer in range(layers):
        tensors += [
            (f"blk.{layer}.attn_norm.weight", (width,), [1.0] * width),
            (f"blk.{layer}.attn_q.weight", (width, width), zero(width, width)),
            (f"blk.{layer}.attn_k.weight", (HEAD_DIM, width), zero(HEAD_DIM, width)),
            (f"blk.{layer}.attn_v.weight", (HEAD_DIM, width), zero(HEAD_DIM, width)),
            (f"blk.{layer}.attn_output.weight", (width, width), zero(width, width)),
            (f"blk.{layer}.ffn_norm.weight", (width,), [1.0] * width),
            (f"blk.{layer}.ffn_gate.weight", (ffn, width), zero(ffn, width)),
            (f"blk.{layer}.ffn_up.weight", (ffn, width), zero(ffn, width)),
            (f"blk.{layer}.ffn_down.weight", (width, ffn), zero(width, ffn)),
        ]
    tensors += [
        ("output_norm.weight", (width,), [1.0] * width),
        ("output.weight", (num_tokens, width), head),
    ]
    metadata = [
        ("general.architecture", STRING, "llama"),
        ("general.name", STRING, "chain"),
        ("llama.block_count", U32, layers),
        ("llama.context_length", U32, n_ctx),
        ("llama.embedding_length", U32, width),
        ("llama.feed_forward_length", U32, ffn),
        ("llama.attention.head_count", U32, heads),
        ("llama.attention.head_count_kv", U32, 1),
        ("llama.attention.layer_norm_rms_epsilon", F32, 1e-6),
        ("llama.rope.dimension_count", U32, HEAD_DIM),
        ("llama.rope.freq_base", F32, 10000.0),
        ("llama.vocab_size", U32, num_tokens),
        ("tokenizer.ggml.model", STRING, "llama"),
        ("tokenizer.ggml.tokens", ARRAY, [text for text, _, _ in tokens], STRING),
        ("tokenizer.ggml.scores", ARRAY, [score for _, _, score in tokens], F32),
        ("tokenizer.ggml.token_type", ARRAY, [kind for _, kind, _ in tokens], I32),
        ("tokenizer.ggml.unknown_token_id", U32, UNK),
        ("tokenizer.ggml.bos_token_id", U32, BOS),
        ("tokenizer.ggml.eos_token_id", U32, EOS),
        ("tokenizer.ggml.add_bos_token", BOOL, add_bos),
        ("tokenizer.ggml.add_space_prefix", BOOL, False),
    ]
    if template is not None:
        metadata.append(("tokenizer.chat_template", STRING, template))
    return gguf_bytes(metadata, tensors)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out")
    parser.add_argument("--order", nargs="+", default=list(LETTERS), metavar="PIECE")
    parser.add_argument("--ending", choices=["cycle", "eos", "stay"], default="cycle")
    parser.add_argument("--control", nargs="*", default=[], metavar="PIECE", help="control pieces")
    parser.add_argument("--piece", nargs="*", default=[], help="more plain pieces")
    parser.add_argument("--template", help="chat template")
    parser.add_argument("--template-file", help="the same from a file")
    parser.add_argument("--no-bos", action="store_true", help="add_bos_token false")
    parser.add_argument("--n-ctx", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=1, help="more cost time where none is elided")
    args = parser.parse_args()
    template = args.template
    if args.template_file:
        template = pathlib.Path(args.template_file).read_text()
    data = chain(
        args.order,
        args.ending,
        args.control,
        args.piece,
        template,
        not args.no_bos,
        args.n_ctx,
        args.layers,
    )
    pathlib.Path(args.out).write_bytes(data)


if __name__ == "__main__":
    main()
