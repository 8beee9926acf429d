"""Writes dequantize_golden.bin: random blocks of every type with their float32 values.

Reference: the `gguf` package (0.19.0), gguf.quants.dequantize.  Run: python3 make_dequantize_golden.py
Layout, little-endian, one record a type in the order of cicada::tensor::kDTypes:
  u32 GGUF type number, u32 bytes, u32 elements, the bytes, the elements as float32.
"""

import pathlib
import struct

import gguf
import numpy as np

TYPES = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS".split()
SEED = 20261130


def main():
    rng = np.random.default_rng(SEED)
    path = pathlib.Path(__file__).with_name("dequantize_golden.bin")
    with path.open("wb") as out:
        for name in TYPES:
            dtype = gguf.GGMLQuantizationType[name]
            elements, size = gguf.GGML_QUANT_SIZES[dtype]
            blocks = {1: 64, 32: 12, 256: 3}[elements]
            data = rng.integers(0, 256, (1, blocks * size), dtype=np.uint8)
            values = np.asarray(gguf.quants.dequantize(data, dtype), dtype=np.float32).reshape(-1)
            assert values.size == blocks * elements
            out.write(struct.pack("<III", int(dtype), data.size, values.size))
            out.write(data.tobytes())
            out.write(values.tobytes())


if __name__ == "__main__":
    main()
