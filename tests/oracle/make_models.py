"""Writes the tiny random models of the oracle tests: make_models.py FOLDER [GROUP ...]

Seeded: the same files every time. Weights are scaled so that activations stay healthy (each product
keeps the size of its input, scores have a standard deviation of about 2), so that every part of a
layer matters to the logits and a fault in any of them is visible.
"""

import dataclasses
import json
import pathlib
import sys

import gguf
import numpy as np

import blocks
import vocabularies

Q = gguf.GGMLQuantizationType
CONTEXT = 256
TYPES_32 = [Q.F32, Q.F16, Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0, Q.IQ4_NL]
TYPES_256 = [Q.Q2_K, Q.Q3_K, Q.Q4_K, Q.Q5_K, Q.Q6_K, Q.IQ4_XS]


@dataclasses.dataclass
class Spec:
    name: str
    group: str
    arch: str = "llama"
    qtype: Q = Q.F32
    layers: int = 3
    width: int = 192
    heads: int = 6
    kv_heads: int = 2
    head_dim: int = 32
    ffn: int = 416
    tied: bool = False
    rope_base: float = 10000.0
    eps: float = 1e-5
    seed: int = 1
    # Tensors of another type than qtype: part of the name -> type.
    mix: dict = dataclasses.field(default_factory=dict)
    zero: tuple = ()  # tensors written as zeros
    # cicada-v1: None = the key is absent
    rel_pos_dim: int | None = None
    rel_pos_max_distance: int | None = None
    rel_pos_missing: bool = False  # the key without the tensor: a corrupt file


def specs():
    both = (Q.F32, Q.Q8_0)
    out = []

    def add(name, group, types, **fields):
        for qtype in types:
            out.append(Spec(f"{name}-{qtype.name.lower()}", group, qtype=qtype, **fields))

    add("llama", "llama", both)
    add("llama-tied", "llama", both, tied=True, seed=2)
    # Mistral-Nemo's shape: heads times head_dim is not the width; no sharing of keys and values.
    add("llama-nemo", "llama", both, width=160, heads=4, kv_heads=4, head_dim=48, ffn=224, seed=3)
    # No dimension is a multiple of anything, and eps is big enough to matter.
    odd = dict(width=60, heads=5, kv_heads=1, head_dim=12, ffn=83, eps=0.03)
    add("llama-odd", "llama", TYPES_32[:3], seed=4, **odd)
    zero = ("blk.1.attn_output", "blk.2.ffn_down", "blk.3.attn_output", "blk.3.ffn_down")
    add(
        "llama-zeros",
        "llama",
        both + (Q.Q4_0,),
        layers=5,
        width=96,
        heads=3,
        kv_heads=1,
        ffn=160,
        zero=zero,
        seed=5,
    )
    # SmolLM2's shape: 576 is not a multiple of 256.
    small = dict(layers=2, width=576, heads=9, kv_heads=3, head_dim=64, ffn=352, tied=True, seed=6)
    add("llama-b32", "llama-32", TYPES_32, **small)
    large = dict(layers=2, width=256, heads=4, kv_heads=2, head_dim=64, ffn=512, seed=7)
    add("llama-b256", "llama-256", TYPES_256, **large)
    mix = {
        "token_embd": Q.Q8_0,
        "output.": Q.Q6_K,
        "attn_k": Q.Q5_K,
        "attn_v": Q.Q6_K,
        "attn_output": Q.Q5_1,
        "ffn_gate": Q.IQ4_XS,
        "ffn_up": Q.BF16,
        "blk.1.ffn_down": Q.Q4_1,
    }
    out.append(Spec("llama-mix", "llama-256", qtype=Q.Q4_K, mix=mix, **large))
    qwen = dict(arch="qwen2", width=224, heads=7, kv_heads=1, ffn=320, rope_base=1e6)
    add("qwen2", "qwen2", both, seed=8, **qwen)
    add("qwen2-tied", "qwen2", both, tied=True, seed=9, **qwen)
    gemma = dict(arch="gemma3", layers=7, width=160, heads=4, kv_heads=1, head_dim=64, ffn=288)
    add("gemma3", "gemma3", both, tied=True, rope_base=1e6, seed=10, **gemma)
    cicada = dict(
        arch="cicada-v1", group="cicada-v1", width=128, heads=4, ffn=224, rope_base=5e5, seed=11
    )
    add("cicada", types=both, rel_pos_dim=8, **cicada)  # maximal distance by default: 32
    add("cicada-distance", types=both, rel_pos_dim=16, rel_pos_max_distance=24, **cicada)
    add("cicada-none", types=both, **cicada)
    add("cicada-r0", types=both[:1], rel_pos_dim=0, **cicada)
    rel = ".rel_pos_proj"
    add("cicada-zero", types=both, rel_pos_dim=8, zero=(rel,), **cicada)
    add("cicada-partial", types=both[:1], rel_pos_dim=8, zero=("blk.1" + rel,), **cicada)
    add("cicada-missing", types=both[:1], rel_pos_dim=8, rel_pos_missing=True, **cicada)
    return out


def draw_weights(spec):
    """name -> float32 array, q and k rows as in a Hugging Face checkpoint."""
    rng = np.random.default_rng(spec.seed)
    w = {}

    def matrix(name, n, k, gain=1.0):
        w[name + ".weight"] = (rng.standard_normal((n, k)) * gain / np.sqrt(k)).astype(np.float32)

    def norm(name, n):  # around 1, and uneven, so that a forgotten or doubled gain shows
        w[name + ".weight"] = (1 + 0.3 * rng.standard_normal(n)).astype(np.float32)

    is_gemma = spec.arch == "gemma3"
    q_rows, kv_rows = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    # An embedding row has elements of about 1 once it is in the residual stream.
    matrix("token_embd", vocabularies.SIZE, spec.width, 1.0 if is_gemma else np.sqrt(spec.width))
    for layer in range(spec.layers):
        blk = f"blk.{layer}."
        norm(blk + "attn_norm", spec.width)
        matrix(blk + "attn_q", q_rows, spec.width, 1.4)
        matrix(blk + "attn_k", kv_rows, spec.width, 1.4)
        matrix(blk + "attn_v", kv_rows, spec.width)
        matrix(blk + "attn_output", spec.width, q_rows, 1.5)
        norm(blk + "ffn_norm", spec.width)
        matrix(blk + "ffn_gate", spec.ffn, spec.width, 1.5)
        matrix(blk + "ffn_up", spec.ffn, spec.width)
        matrix(blk + "ffn_down", spec.width, spec.ffn, 1.5)
        if spec.arch == "qwen2":
            for part, rows in (("q", q_rows), ("k", kv_rows), ("v", kv_rows)):
                w[f"{blk}attn_{part}.bias"] = rng.standard_normal(rows).astype(np.float32)
        if is_gemma:
            norm(blk + "attn_q_norm", spec.head_dim)
            norm(blk + "attn_k_norm", spec.head_dim)
            norm(blk + "post_attention_norm", spec.width)
            norm(blk + "post_ffw_norm", spec.width)
    norm("output_norm", spec.width)
    if not spec.tied:
        matrix("output", vocabularies.SIZE, spec.width, 2.0)
    elif not is_gemma:  # a tied head has the size of the embedding; the last gain makes up for it
        w["output_norm.weight"] *= np.float32(2 / np.sqrt(spec.width))
    # Last, so that models with and without this layer share all other weights.
    for layer in range(spec.layers if spec.rel_pos_dim and not spec.rel_pos_missing else 0):
        table = 1.5 * rng.standard_normal((spec.heads, spec.rel_pos_dim))
        w[f"blk.{layer}.rel_pos_proj.weight"] = table.astype(np.float32)
    for name in w:
        if any(part in name for part in spec.zero):
            w[name][...] = 0
    return w


def permute(weight, heads):
    """Checkpoint rows (halves) to llama GGUF rows (adjacent pairs), head by head."""
    return weight.reshape(heads, 2, -1, weight.shape[-1]).swapaxes(1, 2).reshape(weight.shape)


def tensor_type(spec, name, value):
    if value.ndim == 1:
        return Q.F32
    if "rel_pos_proj" in name:  # short rows: never in blocks
        return Q.F32 if spec.qtype == Q.F32 else Q.F16
    return next((t for part, t in spec.mix.items() if part in name), spec.qtype)


def write_gguf(spec, weights, path):
    writer = gguf.GGUFWriter(path, spec.arch)
    a = spec.arch
    writer.add_name(spec.name)
    writer.add_uint32(f"{a}.block_count", spec.layers)
    writer.add_uint32(f"{a}.context_length", CONTEXT)
    writer.add_uint32(f"{a}.embedding_length", spec.width)
    writer.add_uint32(f"{a}.feed_forward_length", spec.ffn)
    writer.add_uint32(f"{a}.attention.head_count", spec.heads)
    writer.add_uint32(f"{a}.attention.head_count_kv", spec.kv_heads)
    writer.add_float32(f"{a}.attention.layer_norm_rms_epsilon", spec.eps)
    writer.add_float32(f"{a}.rope.freq_base", spec.rope_base)
    writer.add_uint32(f"{a}.vocab_size", vocabularies.SIZE)
    if spec.heads * spec.head_dim != spec.width:
        writer.add_uint32(f"{a}.attention.key_length", spec.head_dim)
        writer.add_uint32(f"{a}.attention.value_length", spec.head_dim)
        writer.add_uint32(f"{a}.rope.dimension_count", spec.head_dim)
    if a == "gemma3":
        writer.add_uint32(f"{a}.attention.sliding_window", 8)
    if spec.rel_pos_dim is not None:
        writer.add_uint32(f"{a}.rel_pos_dim", spec.rel_pos_dim)
    if spec.rel_pos_max_distance is not None:
        writer.add_uint32(f"{a}.rel_pos_max_distance", spec.rel_pos_max_distance)
    vocabularies.add(writer, spec.arch)
    rng = np.random.default_rng(spec.seed + 1000)
    for name, value in weights.items():
        if a in ("llama", "cicada-v1") and (".attn_q." in name or ".attn_k." in name):
            value = permute(value, spec.heads if ".attn_q." in name else spec.kv_heads)
        qtype = tensor_type(spec, name, value)
        writer.add_tensor(name, blocks.encode(rng, value, qtype), raw_dtype=qtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_checkpoint(spec, weights, folder):
    """The same weights as a Hugging Face folder."""
    from oracle import HF_NAMES
    from safetensors.numpy import save_file

    folder.mkdir(exist_ok=True)
    to_hf = {ours: theirs for theirs, ours in HF_NAMES.items()}
    top = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    tensors = {}
    for name, value in weights.items():
        parts = name.split(".")
        if parts[0] == "blk":
            tensors[f"model.layers.{parts[1]}.{to_hf[parts[2]]}.weight"] = value
        else:
            tensors[top[parts[0]] + ".weight"] = value
    save_file(tensors, folder / "model.safetensors")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": spec.width,
        "intermediate_size": spec.ffn,
        "num_hidden_layers": spec.layers,
        "num_attention_heads": spec.heads,
        "num_key_value_heads": spec.kv_heads,
        "head_dim": spec.head_dim,
        "rms_norm_eps": spec.eps,
        "rope_theta": spec.rope_base,
        "max_position_embeddings": CONTEXT,
        "vocab_size": vocabularies.SIZE,
        "tie_word_embeddings": spec.tied,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))


def ids_for(spec, count=71):
    """The text: 71 tokens (no round number), longer than Gemma's window and cicada's distances."""
    first = {"gemma3": 2, "qwen2": vocabularies.SIZE - 3}.get(spec.arch, 1)
    rng = np.random.default_rng(99)
    return [first] + [int(i) for i in rng.integers(8, vocabularies.SIZE - 3, count - 1)]


def path_of(spec, folder):
    return pathlib.Path(folder) / (spec.name + ".gguf")


def make(spec, folder):
    """Writes one model (and llama-f32's checkpoint) and returns its path."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = draw_weights(spec)
    path = path_of(spec, folder)
    write_gguf(spec, weights, path)
    if spec.name == "llama-f32":
        write_checkpoint(spec, weights, folder / "llama-hf")
    return path


def main():
    folder, groups = sys.argv[1], sys.argv[2:]
    for spec in specs():
        if not groups or spec.group in groups:
            path = make(spec, folder)
            print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
