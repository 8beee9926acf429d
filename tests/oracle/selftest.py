"""Are the bounds tight enough, and not too tight? selftest.py FOLDER

Tight: each fault that an engine could have is put into the oracle, by damaging the model's data,
and must break the bound. Not too tight: one simulated engine must be within the bound that the
others give.
"""

import dataclasses
import sys

import numpy as np

import bounds
import make_models
import oracle


def edit(model, select, change):
    weights = {n: change(v) if select in n else v for n, v in model.weights.items()}
    return dataclasses.replace(model, weights=weights)


def roll(values):
    return values[-1:] + values[:-1]


def bucket_rounded(distance, dim, max_distance):
    half = dim // 2
    if distance < half:
        return distance
    return min(dim - 1, half + round(half * np.log(distance / half) / np.log(max_distance / half)))


def interleave_groups(model):
    """Query head h uses key head h mod kv_heads instead of h div (heads / kv_heads)."""
    order = np.arange(model.heads).reshape(model.kv_heads, -1).T.reshape(-1)
    weights = dict(model.weights)
    for name, value in model.weights.items():
        if "attn_q." in name:
            weights[name] = value.reshape(model.heads, model.head_dim, -1)[order].reshape(
                value.shape
            )
        if "attn_output." in name:
            by_head = value.reshape(value.shape[0], model.heads, model.head_dim)
            weights[name] = by_head[:, order].reshape(value.shape)
    return dataclasses.replace(model, weights=weights)


def scale_by_width(model):
    """Scores divided by sqrt(width / heads) instead of sqrt(head_dim)."""
    factor = np.sqrt(model.head_dim / (model.width / model.heads))
    name = "attn_q_norm.weight" if model.arch == "gemma3" else "attn_q."
    return edit(model, name, lambda w: w * factor)


replace = dataclasses.replace
LLAMA = {
    "q/k rows not permuted": lambda m: replace(m, rope_halves=not m.rope_halves),
    "RoPE base ignored": lambda m: replace(m, rope_base=[5e4] * m.num_layers),
    "last layer left out": lambda m: replace(m, num_layers=m.num_layers - 1),
    "gains of ffn_norm ignored": lambda m: edit(m, "ffn_norm", np.ones_like),
}
GROUPS = {"wrong key head of a group": interleave_groups}
FAULTS = {
    "llama-b32": LLAMA,
    "llama": {**LLAMA, **GROUPS},
    "llama-nemo": {"scores scaled by width": scale_by_width},
    "llama-odd": {"eps ignored": lambda m: replace(m, eps=1e-5)},
    "qwen2": {
        "RoPE pairs adjacent": LLAMA["q/k rows not permuted"],
        "no biases": lambda m: edit(m, ".bias", np.zeros_like),
        "no bias of v": lambda m: edit(m, "attn_v.bias", np.zeros_like),
    },
    "gemma3": {
        "1 added to gains again": lambda m: edit(m, "norm", lambda w: w + 1),
        "1 missing in gains": lambda m: edit(m, "norm", lambda w: w - 1),
        "no gain of post_attention_norm": lambda m: edit(m, "post_attention_norm", np.ones_like),
        "no embedding scale": lambda m: replace(m, embedding_scale=1.0),
        "window one too wide": lambda m: replace(m, window=[w and w + 1 for w in m.window]),
        "window one too narrow": lambda m: replace(m, window=[w and w - 1 for w in m.window]),
        "pattern off by one layer": lambda m: replace(
            m, window=roll(m.window), rope_base=roll(m.rope_base)
        ),
        "one RoPE base": lambda m: replace(m, rope_base=[1e6] * m.num_layers),
        "RoPE pairs adjacent": LLAMA["q/k rows not permuted"],
        "silu for gelu": lambda m: replace(m, activation="silu"),
        "q/k gains ignored": lambda m: edit(
            m, "_norm.weight", lambda w: np.ones_like(w) if w.size == 64 else w
        ),
        "scores scaled by width": scale_by_width,
    },
    "cicada": {
        "no relative positions": lambda m: replace(m, rel_pos_dim=0),
        "bucket rounded, not cut": lambda m: replace(m, bucket=bucket_rounded),
        "bucket off by one": lambda m: replace(
            m, bucket=lambda d, r, n: oracle.bucket(d + 1, r, n)
        ),
        "maximal distance 2 R": lambda m: replace(m, rel_pos_max_distance=2 * m.rel_pos_dim),
        "added before scaling": lambda m: edit(m, "rel_pos", lambda w: w / np.sqrt(m.head_dim)),
        "heads in wrong order": lambda m: edit(m, "rel_pos", lambda w: w[::-1]),
        **GROUPS,
    },
    "cicada-distance": {
        "maximal distance ignored": lambda m: replace(m, rel_pos_max_distance=4 * m.rel_pos_dim),
    },
}


def main():
    folder = sys.argv[1]
    bad = 0
    for spec in make_models.specs():
        base, _, kind = spec.name.rpartition("-")
        if base not in FAULTS or kind not in ("f32", "f16", "q8_0", "q4_0"):
            continue
        path = make_models.make(spec, folder)
        model, ids = oracle.load(path), make_models.ids_for(spec)
        exact = oracle.forward(model, ids)
        runs = bounds.simulations(model, ids)
        bound = bounds.bound_from(exact, runs)
        print(f"{spec.name}: bound max {bound.max:.2g} rms {bound.rms:.2g}")
        for i, run in enumerate(runs):
            others = bounds.bound_from(exact, runs[:i] + runs[i + 1 :])
            found = bounds.errors(exact, run)
            if not found.within(others):
                bad += 1
                print(f"  FAILED: honest run {i} is out of the others' bound: {found} {others}")
        for fault, damage in FAULTS[base].items():
            found = bounds.errors(exact, oracle.forward(damage(model), ids))
            caught = not found.within(bound)
            bad += not caught
            print(
                f"  {fault:32s} rms {found.rms:8.2g} = {found.rms / bound.rms:8.1f} bounds, "
                f"max {found.max:8.2g} = {found.max / bound.max:8.1f}  "
                f"{'caught' if caught else 'NOT CAUGHT'}"
            )
    print(f"{bad} failures" if bad else "every fault is caught, every honest run passes")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
