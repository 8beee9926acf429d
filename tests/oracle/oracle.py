"""The float64 oracle: what each architecture computes, straight from the mathematics.

This file is the specification that the engine is tested against. It is plain numpy in float64, one
position after the other, no cache, no tricks. Weights are decoded by the PyPI package `gguf`.
Nothing here is shared with the engine.

  forward(model, ids)             logits [len(ids), vocab], exact except that keys and values
                                  are rounded to float16, the engine's default cache format
  forward(model, ids, Engine())   the same in simulated engine arithmetic, see arithmetic.py

Shapes are written as in the engine: a weight is [n, k] and y = x · Wᵀ.
"""

import dataclasses
import json
import pathlib

import gguf
import numpy as np
from gguf.quants import dequantize


def bucket(distance, dim, max_distance):
    """cicada-v1: the column of the relative-position weight for distance = i - j >= 0 (SPEC M1)."""
    half = dim // 2
    if distance < half:
        return distance
    steps = half * np.log(distance / half) / np.log(max_distance / half)
    return min(dim - 1, half + int(np.floor(steps)))


@dataclasses.dataclass
class Model:
    """Everything that decides the result, as plain data, so that tests can damage one thing."""

    arch: str
    num_layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    rope_halves: bool  # RoPE turns pairs (i, i + d/2); otherwise pairs (2i, 2i + 1)
    rope_base: list  # per layer
    window: list  # per layer: keys with i - j < window are seen; None = all
    embedding_scale: float
    activation: str  # of the gate: "silu" or "gelu" (tanh form)
    rel_pos_dim: int  # cicada-v1; 0 = no such layer
    rel_pos_max_distance: int
    add_bos: bool
    bos: int | None
    weights: dict  # name -> float64 array
    types: dict  # name -> gguf.GGMLQuantizationType of the file
    bucket: object = bucket


def load(path, dtype=np.float64):
    """Reads a GGUF file, or a Hugging Face folder of llama shape."""
    path = pathlib.Path(path)
    return load_hf(path, dtype) if path.is_dir() else load_gguf(path, dtype)


def load_gguf(path, dtype=np.float64):
    reader = gguf.GGUFReader(str(path))

    def get(key, default=None):
        field = reader.fields.get(key)
        return default if field is None else field.contents()

    arch = get("general.architecture")
    if arch not in ("llama", "qwen2", "gemma3", "cicada-v1"):
        raise ValueError(f"{path}: architecture {arch} is not in the oracle")
    if any(key.startswith((f"{arch}.rope.scaling.", f"{arch}.rope.scale_linear")) for key in reader.fields):
        raise ValueError(f"{path}: RoPE scaling is not in the oracle")
    weights, types = {}, {}
    for tensor in reader.tensors:
        weights[tensor.name] = dequantize(tensor.data, tensor.tensor_type).astype(dtype)
        types[tensor.name] = tensor.tensor_type
    layers, width = get(f"{arch}.block_count"), get(f"{arch}.embedding_length")
    heads = get(f"{arch}.attention.head_count")
    base = get(f"{arch}.rope.freq_base", 10000.0)
    is_gemma = arch == "gemma3"
    # Gemma-3: five local layers, then one that sees everything; local ones keep RoPE base 10000.
    is_local = [is_gemma and (layer + 1) % 6 != 0 for layer in range(layers)]
    rel_pos_dim = get(f"{arch}.rel_pos_dim", 0) if arch == "cicada-v1" else 0
    for layer in range(layers if rel_pos_dim else 0):
        if f"blk.{layer}.rel_pos_proj.weight" not in weights:
            raise ValueError(f"{path}: blk.{layer}.rel_pos_proj.weight is missing")
    return Model(
        arch=arch,
        num_layers=layers,
        width=width,
        heads=heads,
        kv_heads=get(f"{arch}.attention.head_count_kv", heads),
        head_dim=get(f"{arch}.attention.key_length", width // heads),
        eps=get(f"{arch}.attention.layer_norm_rms_epsilon"),
        # llama files (and cicada-v1, its relative) hold q and k rows permuted for adjacent pairs.
        rope_halves=arch in ("qwen2", "gemma3"),
        rope_base=[10000.0 if local else base for local in is_local],
        window=[get(f"{arch}.attention.sliding_window") if local else None for local in is_local],
        embedding_scale=np.sqrt(width) if is_gemma else 1.0,
        activation="gelu" if is_gemma else "silu",
        rel_pos_dim=rel_pos_dim,
        rel_pos_max_distance=get(f"{arch}.rel_pos_max_distance", 4 * rel_pos_dim),
        add_bos=bool(get("tokenizer.ggml.add_bos_token", get("tokenizer.ggml.model") == "llama")),
        bos=get("tokenizer.ggml.bos_token_id"),
        weights=weights,
        types=types,
    )


HF_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def load_hf(folder, dtype=np.float64):
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    weights = {}
    for name, value in load_file(folder / "model.safetensors").items():
        parts = name.split(".")
        if name.startswith("model.layers."):
            name = f"blk.{parts[2]}.{HF_NAMES['.'.join(parts[3:-1])]}.{parts[-1]}"
        else:
            name = {
                "model.embed_tokens.weight": "token_embd.weight",
                "model.norm.weight": "output_norm.weight",
                "lm_head.weight": "output.weight",
            }[name]
        weights[name] = value.astype(dtype)
    layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
    return Model(
        arch="llama",
        num_layers=layers,
        width=config["hidden_size"],
        heads=heads,
        kv_heads=config["num_key_value_heads"],
        head_dim=config.get("head_dim", config["hidden_size"] // heads),
        eps=config["rms_norm_eps"],
        rope_halves=True,  # checkpoints are not permuted
        rope_base=[config["rope_theta"]] * layers,
        window=[None] * layers,
        embedding_scale=1.0,
        activation="silu",
        rel_pos_dim=0,
        rel_pos_max_distance=0,
        add_bos=True,
        bos=config["bos_token_id"],
        weights=weights,
        types={name: gguf.GGMLQuantizationType.F32 for name in weights},
    )


class Exact:
    """The default arithmetic: float64 (or the dtype of the weights), keys and values in float16."""

    def __init__(self, kv_f16=True, dtype=np.float64):
        self.dtype = dtype
        self.kv_f16 = kv_f16

    def linear(self, x, weight, weight_type):
        return x @ weight.T

    def kv(self, x):
        return x.astype(np.float16).astype(self.dtype) if self.kv_f16 else x

    def scores(self, q, k):
        return q @ k.T

    def mix(self, p, v):
        return p @ v

    def gelu(self, x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    def silu(self, x):
        return x / (1 + np.exp(-x))


def rms_norm(x, gain, eps):
    """Over the last axis. Gemma's files hold 1 + w as the gain, so all architectures agree here."""
    mean_square = np.mean(x * x, axis=-1, keepdims=True)
    return x / np.sqrt(mean_square + x.dtype.type(eps)) * gain


def rope(x, base, halves):
    """Turns x [positions, heads, head_dim]: pair i at position p by the angle p · base^(-2i/d)."""
    positions, _, dim = x.shape
    frequency = base ** (-np.arange(0, dim, 2) / dim)
    angle = np.arange(positions)[:, None] * frequency[None, :]  # always in float64
    cos, sin = (f(angle)[:, None, :].astype(x.dtype) for f in (np.cos, np.sin))
    first, second = (
        (x[..., : dim // 2], x[..., dim // 2 :]) if halves else (x[..., 0::2], x[..., 1::2])
    )
    turned = first * cos - second * sin, second * cos + first * sin
    if halves:
        return np.concatenate(turned, axis=-1)
    return np.stack(turned, axis=-1).reshape(x.shape)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(model, layer, x, ar):
    """x [positions, width], already normed -> [positions, width]."""
    n, w, blk = x.shape[0], model.weights, f"blk.{layer}."

    def project(name, heads):
        y = ar.linear(x, w[blk + name + ".weight"], model.types[blk + name + ".weight"])
        if blk + name + ".bias" in w:
            y = y + w[blk + name + ".bias"]
        return y.reshape(n, heads, model.head_dim)

    q = project("attn_q", model.heads)
    k = project("attn_k", model.kv_heads)
    v = project("attn_v", model.kv_heads)
    if blk + "attn_q_norm.weight" in w:
        q = rms_norm(q, w[blk + "attn_q_norm.weight"], model.eps)
        k = rms_norm(k, w[blk + "attn_k_norm.weight"], model.eps)
    q = rope(q, model.rope_base[layer], model.rope_halves)
    k = ar.kv(rope(k, model.rope_base[layer], model.rope_halves))
    v = ar.kv(v)

    distance = np.arange(n)[:, None] - np.arange(n)[None, :]  # i - j
    seen = distance >= 0
    if model.window[layer] is not None:
        seen &= distance < model.window[layer]
    if model.rel_pos_dim:
        table = [model.bucket(d, model.rel_pos_dim, model.rel_pos_max_distance) for d in range(n)]
        column = np.array(table)[np.maximum(distance, 0)]
    out = np.empty((n, model.heads, model.head_dim), x.dtype)
    for head in range(model.heads):
        group = head // (model.heads // model.kv_heads)
        score = ar.scores(q[:, head], k[:, group]) / x.dtype.type(np.sqrt(model.head_dim))
        if model.rel_pos_dim:
            score = score + w[blk + "rel_pos_proj.weight"][head][column]
        p = softmax(np.where(seen, score, x.dtype.type(-np.inf)))
        out[:, head] = ar.mix(p, v[:, group])
    name = blk + "attn_output.weight"
    return ar.linear(out.reshape(n, -1), w[name], model.types[name])


def feed_forward(model, layer, x, ar):
    names = [f"blk.{layer}.ffn_{part}.weight" for part in ("gate", "up", "down")]
    gate, up, down = ((model.weights[name], model.types[name]) for name in names)
    act = ar.gelu if model.activation == "gelu" else ar.silu
    return ar.linear(act(ar.linear(x, *gate)) * ar.linear(x, *up), *down)


def forward(model, ids, arithmetic=None):
    """Logits [len(ids), vocab] of every position."""
    ar = arithmetic or Exact()
    w = model.weights
    x = w["token_embd.weight"][np.asarray(ids)].astype(ar.dtype) * ar.dtype(model.embedding_scale)
    for layer in range(model.num_layers):
        blk = f"blk.{layer}."

        def after(y, name):  # Gemma-3 norms what a sub-layer adds, too
            gain = w.get(blk + name)
            return y if gain is None else rms_norm(y, gain, model.eps)

        h = rms_norm(x, w[blk + "attn_norm.weight"], model.eps)
        x = x + after(attention(model, layer, h, ar), "post_attention_norm.weight")
        h = rms_norm(x, w[blk + "ffn_norm.weight"], model.eps)
        x = x + after(feed_forward(model, layer, h, ar), "post_ffw_norm.weight")
    head = "output.weight" if "output.weight" in w else "token_embd.weight"
    return ar.linear(rms_norm(x, w["output_norm.weight"], model.eps), w[head], model.types[head])
