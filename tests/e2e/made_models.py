"""Tiny models and vocabularies made of plain numbers, for what CHAIN does not have."""

import os
import struct
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "testdata", "models"))

from make_chain import (  # noqa: E402, F401
    ARRAY, F32, I32, LETTERS, STRING, U32, chain, gguf_bytes, vocabulary,
)

WIDTH, FFN, VOCAB, HEADS = 32, 64, 8, 4


def layered(architecture="llama", layers=3, zero=(), without=(), rel_pos_dim=0, more=()):
    """The bytes of a model whose tensors are ones, but zeros where a name of `zero` says so; `more` names further
    tensors of one row."""
    prefix = architecture + "."
    metadata = [
        ("general.architecture", STRING, architecture),
        (prefix + "block_count", U32, layers),
        (prefix + "context_length", U32, 64),
        (prefix + "embedding_length", U32, WIDTH),
        (prefix + "feed_forward_length", U32, FFN),
        (prefix + "attention.head_count", U32, HEADS),
        (prefix + "attention.layer_norm_rms_epsilon", F32, 1e-5),
        (prefix + "rel_pos_dim", U32, rel_pos_dim),
    ]
    shapes = [("token_embd.weight", (VOCAB, WIDTH))]
    for layer in range(layers):
        shapes += [(f"blk.{layer}.{name}.weight", shape) for name, shape in (
            ("attn_norm", (WIDTH,)), ("attn_q", (WIDTH, WIDTH)), ("attn_k", (WIDTH, WIDTH)),
            ("attn_v", (WIDTH, WIDTH)), ("attn_output", (WIDTH, WIDTH)), ("ffn_norm", (WIDTH,)),
            ("ffn_gate", (FFN, WIDTH)), ("ffn_up", (FFN, WIDTH)), ("ffn_down", (WIDTH, FFN)),
            ("rel_pos_proj", (HEADS, rel_pos_dim)))
            if rel_pos_dim or name != "rel_pos_proj"]
    shapes.append(("output_norm.weight", (WIDTH,)))
    shapes += [(name, (WIDTH,)) for name in more]
    tensors = []
    for name, shape in shapes:
        if name in without:
            continue
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors.append((name, shape, [0.0 if name in zero else 1.0] * count))
    return gguf_bytes(metadata, tensors)


def chain_with_head(number):
    """The bytes of the alphabet CHAIN whose head, its last tensor, is this number alone."""
    data = chain()
    tokens = len(vocabulary(list(LETTERS), (), ()))
    return data[:-4 * tokens * WIDTH] + struct.pack("<f", number) * (tokens * WIDTH)


def chain_with_key(key, number):
    """The bytes of the alphabet CHAIN with another u32 under a key that it has."""
    data = chain()
    name = key.encode() + struct.pack("<I", U32)
    at = data.index(name) + len(name)
    return data[:at] + struct.pack("<I", number) + data[at + 4:]


def byte_alphabet():
    """GPT-2's printable stand-in for each byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def byte_bpe(pre):
    """The bytes of a vocabulary without a model: 256 bytes, a merge of each with itself, of pairs of
    those, and so on up to 16."""
    letters = byte_alphabet()
    tokens = [letters[byte] for byte in range(256)]
    merges = []
    for byte in range(256):
        piece = letters[byte]
        for _ in range(4):
            merges.append(f"{piece} {piece}")
            piece += piece
            tokens.append(piece)
    return gguf_bytes([
        ("general.architecture", STRING, "llama"),
        ("tokenizer.ggml.model", STRING, "gpt2"),
        ("tokenizer.ggml.pre", STRING, pre),
        ("tokenizer.ggml.tokens", ARRAY, tokens, STRING),
        ("tokenizer.ggml.token_type", ARRAY, [1] * len(tokens), I32),
        ("tokenizer.ggml.merges", ARRAY, merges, STRING),
    ], [])


def struct_dims(rows, columns):
    """A two-dimensional shape as a GGUF tensor entry holds it."""
    return struct.pack("<IQQ", 2, columns, rows)
