"""Random weights as quantised blocks.

Types that `gguf` can quantise are quantised from normal numbers. The others (K-quants, IQ4) are
random bytes: every bit pattern of quants and packed scales occurs, with half-precision block scales
chosen so that the decoded weights have mean about 0 and the wanted standard deviation. What they
mean is decided by `gguf`'s decoder alone.
"""

import gguf
import numpy as np
from gguf.quants import dequantize, quantize

Q = gguf.GGMLQuantizationType

# type -> (byte of the scale d, byte of the minimum's scale or None, their ratio for a zero mean)
RANDOM_BYTES = {
    Q.Q2_K: (80, 82, 1.5),  # mean of scale and of minimum are equal; mean quant is 1.5
    Q.Q3_K: (108, None, 0.0),
    Q.Q4_K: (0, 2, 7.5),
    Q.Q5_K: (0, 2, 15.5),
    Q.Q6_K: (208, None, 0.0),
    Q.IQ4_NL: (0, None, 0.0),
    Q.IQ4_XS: (0, None, 0.0),
}


def put_f16(blocks, offset, values):
    blocks[:, offset : offset + 2] = values.astype(np.float16).reshape(-1, 1).view(np.uint8)


def random_bytes(rng, rows, k, qtype, std):
    """uint8 [rows, bytes of a row] of type qtype."""
    elements, size = gguf.GGML_QUANT_SIZES[qtype]
    at_d, at_min, min_ratio = RANDOM_BYTES[qtype]
    count = rows * k // elements
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    # Block scales spread by a factor of two each way; signs vary where there is no minimum (files
    # have both). Decoding is linear in (d, min), so a first decoding with d about 1 gives the
    # factor.
    d = np.exp2(rng.uniform(-1, 1, count))
    signed = d if at_min is not None else d * rng.choice([-1.0, 1.0], count)

    def write(factor):
        put_f16(blocks, at_d, signed * factor)
        if at_min is not None:
            put_f16(blocks, at_min, d * factor * min_ratio)

    write(2.0**-6)
    write(2.0**-6 * std / np.std(dequantize(blocks, qtype)))
    return blocks.reshape(rows, -1)


def encode(rng, values, qtype):
    """values float32 [..., k] -> (array as GGUFWriter wants it, qtype).

    For random-byte types only shape and standard deviation of `values` are used; all-zero values
    become all-zero bytes, which decode to zero in every type (scales zero).
    """
    if qtype in RANDOM_BYTES:
        rows, k = values.shape
        if not np.any(values):
            elements, size = gguf.GGML_QUANT_SIZES[qtype]
            return np.zeros((rows, k // elements * size), np.uint8)
        return random_bytes(rng, rows, k, qtype, float(np.std(values)))
    return quantize(values.astype(np.float32), qtype)
