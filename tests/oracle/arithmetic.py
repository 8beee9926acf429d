"""Simulated arithmetic of an engine, so that error bounds are measured and not guessed.

Float32 everywhere, sums in sequence over k, activations of quantised weights in int8. The oracle
run with this differs from the exact one by what an honest engine of that kind must differ.
"""

import dataclasses

import gguf
import numpy as np

Q = gguf.GGMLQuantizationType
FLOAT_TYPES = (Q.F32, Q.F16, Q.BF16)
F32 = np.float32


def to_bf16(x):
    bits = x.astype(F32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(F32)


def to_f16(x):
    return x.astype(np.float16).astype(F32)


def quantize_int8(x, group, steps, scale_f16=False):
    """x [m, k] -> integers (as float64) [m, k/group, group] and scales [m, k/group, 1].

    `steps` is the number of steps from 0 to the greatest magnitude: 127 in an engine. Another
    number gives rounding errors of the same size that are independent of the engine's.
    """
    blocks = x.reshape(x.shape[0], -1, group)
    scale = (np.max(np.abs(blocks), axis=-1, keepdims=True) / F32(steps)).astype(F32)
    inverse = np.where(scale > 0, F32(1) / np.where(scale > 0, scale, F32(1)), F32(0))
    integers = np.rint(blocks * inverse).astype(np.float64)
    return integers, to_f16(scale) if scale_f16 else scale


def dot_in_sequence(x, weight):
    """x · weightᵀ in float32, k ascending: the worst honest order for rounding."""
    acc = np.zeros((x.shape[0], weight.shape[0]), F32)
    columns = np.ascontiguousarray(weight.T)
    for k in range(x.shape[1]):
        acc += x[:, k : k + 1] * columns[k]
    return acc


@dataclasses.dataclass
class Engine:
    """Cicada: int8 in groups of 32 with float32 scales for quantised weights, else float32."""

    steps: float = 127.0
    kv_f16: bool = True
    kv_noise: np.random.Generator | None = None  # see bounds.py
    dtype = F32

    def linear(self, x, weight, weight_type):
        if weight_type in FLOAT_TYPES:
            return dot_in_sequence(x, weight.astype(F32))
        return self.blocks(x, weight, 32, False)

    def blocks(self, x, weight, group, scale_f16):
        """One exact dot product a group, one float32 multiply-add a group, groups ascending."""
        integers, scales = quantize_int8(x, group, self.steps, scale_f16)
        acc = np.zeros((x.shape[0], weight.shape[0]), F32)
        for b in range(integers.shape[1]):
            dot = integers[:, b] @ weight[:, b * group : (b + 1) * group].T.astype(np.float64)
            acc = (acc + dot * scales[:, b]).astype(F32)
        return acc

    def kv(self, x):
        if self.kv_noise is not None:
            x = x * (1 + self.kv_noise.uniform(-1, 1, x.shape).astype(F32) * F32(2.0**-18))
        return to_f16(x) if self.kv_f16 else x

    def scores(self, q, k):
        return dot_in_sequence(q, k)

    def mix(self, p, v):
        return dot_in_sequence(p, np.ascontiguousarray(v.T))

    def gelu(self, x):
        inner = F32(np.sqrt(2 / np.pi)) * (x + F32(0.044715) * x * x * x)
        return F32(0.5) * x * (F32(1) + np.tanh(inner))

    def silu(self, x):
        return x / (F32(1) + np.exp(-x))


@dataclasses.dataclass
class LlamaCpp(Engine):
    """llama.cpp's CPU backend: activations take the form its dot product of a weight type wants."""

    kv_f16: bool = False  # compare_llamacpp.py asks for a float32 cache

    def linear(self, x, weight, weight_type):
        if weight_type == Q.F16:
            return dot_in_sequence(to_f16(x), weight.astype(F32))
        if weight_type == Q.BF16:
            return dot_in_sequence(to_bf16(x), weight.astype(F32))
        if weight_type == Q.F32:
            return dot_in_sequence(x, weight.astype(F32))
        if gguf.GGML_QUANT_SIZES[weight_type][0] == 256:  # q8_K: one float32 scale for 256
            return self.blocks(x, weight, 256, False)
        return self.blocks(x, weight, 32, True)  # q8_0, q8_1: half-precision scales

    def gelu(self, x):  # a table over float16
        return to_f16(super().gelu(to_f16(x)))


@dataclasses.dataclass
class TileEngine(Engine):
    """Cicada's prefill role on tile instructions: activations of BF16 weights in BF16.

    They are rounded as multiples of 1 / `factor`: another factor gives rounding errors of the same
    size that are independent of the engine's.
    """

    factor: float = 1.0

    def linear(self, x, weight, weight_type):
        if weight_type == Q.BF16:
            x = to_bf16(x * F32(self.factor)) / F32(self.factor)
        return super().linear(x, weight, weight_type)
