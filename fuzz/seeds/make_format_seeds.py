"""Writes the seeds of gguf_fuzz and safetensors_fuzz: small valid files, a few hundred bytes each.

Run: python3 make_format_seeds.py
"""

import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(version, keys, tensors):
    """keys: (name, type, bytes); tensors: (name, dims innermost first, type, bytes)."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for name, kind, value in keys:
        out += text(name) + struct.pack("<I", kind) + value
    data = b""
    for name, dims, kind, value in tensors:
        out += text(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
        out += struct.pack("<IQ", kind, len(data))
        data += value + bytes(-len(value) % 32)
    return out + bytes(-len(out) % 32) + data


def gguf_seeds():
    scalars = [
        ("general.architecture", 8, text("llama")), ("a.u8", 0, b"\1"), ("a.i16", 3, b"\1\2"),
        ("a.f32", 6, struct.pack("<f", 1.5)), ("a.bool", 7, b"\1"), ("a.f64", 12, bytes(8)),
        ("a.i64", 11, b"\xff" * 8), ("general.alignment", 4, struct.pack("<I", 32)),
    ]
    arrays = [
        ("strings", 9, struct.pack("<IQ", 8, 2) + text("ab") + text("")),
        ("floats", 9, struct.pack("<IQ2f", 6, 2, 1.0, 2.0)),
        ("ints", 9, struct.pack("<IQ2i", 5, 2, 1, -2)),
        ("bools", 9, struct.pack("<IQ", 7, 2) + b"\0\1"),
    ]
    blocks = [("q", [32, 1], 2, bytes(18)), ("k", [256], 12, bytes(144)), ("n", [2], 0, bytes(8))]
    yield "scalars", gguf(3, scalars, [])
    yield "arrays", gguf(2, arrays, [])
    yield "tensors", gguf(3, scalars[:1], blocks)


def safetensors(header, data):
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + data


def safetensors_seeds():
    layer = "model.layers.0.self_attn.q_proj.weight"
    header = {
        "__metadata__": {"format": "pt"},
        "model.embed_tokens.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
        layer: {"dtype": "BF16", "shape": [2, 2], "data_offsets": [8, 16]},
    }
    config = {
        "model_type": "cicada-v1", "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16,
        "max_position_embeddings": 64, "vocab_size": 4, "rms_norm_eps": 1e-05,
        "rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 2.0}, "head_dim": 4,
        "tie_word_embeddings": True, "hidden_act": "silu", "rel_pos_dim": 8,
        "rel_pos_max_distance": 32, "sliding_window": 16, "partial_rotary_factor": 1.0,
    }
    yield "container", b"\0" + safetensors(header, bytes(16))
    yield "config", b"\1" + json.dumps(config).encode()


def main():
    for folder, seeds in [("gguf_fuzz", gguf_seeds()), ("safetensors_fuzz", safetensors_seeds())]:
        for name, data in seeds:
            (HERE / folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
