"""Writes quantize_golden.bin: float32 blocks and what they become in each type `convert` writes.

Reference: the `gguf` package (0.19.0), gguf.quants.quantize.  Run: python3 make_quantize_golden.py
Layout, little-endian: u32 elements, the float32 values; then for F16, BF16, Q8_0, Q4_0:
  u32 GGUF type number, u32 bytes, the bytes.
"""

import pathlib
import struct

import gguf
import numpy as np

SEED = 20261130


def blocks():
    rng = np.random.default_rng(SEED)
    rows = [np.zeros(32), np.full(32, -0.0)]
    rows += [rng.standard_normal(32) * 10.0**e for e in range(-12, 6) for _ in range(2)]
    tie = rng.standard_normal(32)
    tie[3], tie[20] = 4.0, -4.0  # equal magnitudes: the first decides Q4_0's sign
    rows += [tie, -tie]
    rows.append(np.arange(32) - 15.5)  # halves in Q8_0 with the next line's largest value
    halves = np.arange(32) - 15.5
    halves[0] = 127.0
    rows += [halves, -halves]
    rows.append(np.full(32, 1e-40))  # denormals: every scale is 0
    rows.append(rng.standard_normal(32) * 1e-41)
    rows.append(rng.standard_normal(32) * 6e-8)  # half-precision denormals
    rows.append(np.where(np.arange(32) % 7 == 0, 0.0, rng.standard_normal(32)))
    rows.append(np.full(32, 65519.0))
    rows.append(np.full(32, 1e7))  # infinite in half precision
    rows += [rng.standard_normal(32) for _ in range(12)]
    return np.concatenate(rows).astype(np.float32).reshape(1, -1)


def main():
    values = blocks()
    path = pathlib.Path(__file__).with_name("quantize_golden.bin")
    with path.open("wb") as out:
        out.write(struct.pack("<I", values.size) + values.tobytes())
        for name in ["F16", "BF16", "Q8_0", "Q4_0"]:
            dtype = gguf.GGMLQuantizationType[name]
            with np.errstate(all="ignore"):
                data = gguf.quants.quantize(values, dtype).tobytes()
            out.write(struct.pack("<II", int(dtype), len(data)) + data)


if __name__ == "__main__":
    main()
