// The row functions of every level; see rows.h for the contract.
#pragma once

#include "cicada/kernels/rows/rows.h"
#include "cicada/kernels/simd-inl.h"

namespace cicada::kernels {
namespace {

// Lanes [0, n) of p, the others 0. Only reads n elements.
CICADA_INLINE F32x16 load_first(const float* p, std::size_t n) {
  alignas(64) float lanes[16] = {};
  __builtin_memcpy(lanes, p, n * sizeof(float));
  return load(lanes);
}

CICADA_INLINE void store_first(float* p, F32x16 a, std::size_t n) {
  alignas(64) float lanes[16];
  store(lanes, a);
  __builtin_memcpy(p, lanes, n * sizeof(float));
}

// Calls body(i, count) for every sixteen elements of n; count is 16 but for the last.
template <typename Body>
CICADA_INLINE void for_lanes(std::size_t n, const Body& body) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, std::size_t{16});
  if (i < n) body(i, n - i);
}

CICADA_INLINE F32x16 load_n(const float* p, std::size_t n) {
  return n == 16 ? load(p) : load_first(p, n);
}
CICADA_INLINE void store_n(float* p, F32x16 a, std::size_t n) {
  if (n == 16) {
    store(p, a);
  } else {
    store_first(p, a, n);
  }
}

void rms_norm(const float* x, const float* gain, float epsilon, std::size_t n, float* y) {
  F32x16 squares = zero();
  for_lanes(n, [&](std::size_t i, std::size_t count) {
    const F32x16 v = load_n(x + i, count);
    squares = fma(v, v, squares);
  });
  const float mean = reduce_add(squares) / static_cast<float>(n);
  const F32x16 inverse = broadcast(1.0F / __builtin_sqrtf(mean + epsilon));
  for_lanes(n, [&](std::size_t i, std::size_t count) {
    store_n(y + i, load_n(x + i, count) * inverse * load_n(gain + i, count), count);
  });
}

// The largest size of 32 values. Compared as integers, whose order without the sign is that of
// floats, with infinity and then NaN on top: neither is ever lost.
CICADA_INLINE float largest_size(F32x16 a, F32x16 b) {
  const std::int32_t bits = reduce_max(max(bits_of(abs(a)), bits_of(abs(b))));
  float largest = 0.0F;
  __builtin_memcpy(&largest, &bits, sizeof largest);
  return largest;
}

// Blocks no larger than this count as zeros: most / largest would overflow.
inline constexpr float kSmallestBlock = 1e-33F;

// The integers of one block: round(x * largest integer / max |x|). With an infinity or NaN in the
// block the scale is infinite or NaN, and so is every product of it: nothing is hidden.
struct Integers {
  I32x16 low_half;
  I32x16 high_half;
  float scale;
};

CICADA_INLINE Integers to_integers(const float* x, float most) {
  const F32x16 a = load(x);
  const F32x16 b = load(x + 16);
  const float largest = largest_size(a, b);
  const F32x16 inverse = broadcast(largest > kSmallestBlock ? most / largest : 0.0F);
  const F32x16 limit = broadcast(most);
  const F32x16 floor = broadcast(-most);
  return {.low_half = to_i32(min(max(a * inverse, floor), limit)),
          .high_half = to_i32(min(max(b * inverse, floor), limit)),
          .scale = largest / most};
}

CICADA_INLINE void store_sums(const Integers& integers, QuantBlock& out) {
  out.scale = integers.scale;
  out.negative_half_sums[0] = -reduce_add(integers.low_half);
  out.negative_half_sums[1] = -reduce_add(integers.high_half);
  out.negative_sum = out.negative_half_sums[0] + out.negative_half_sums[1];
  out.sum = integers.scale * static_cast<float>(-out.negative_sum);
}

void quantize(const float* x, std::size_t n, QuantBlock* out, std::size_t stride) {
  for (std::size_t i = 0; i < n; i += 32, out += stride) {
    const Integers integers = to_integers(x + i, 127.0F);
    store_i8(out->q, integers.low_half);
    store_i8(out->q + 16, integers.high_half);
    store_sums(integers, *out);
  }
}

void quantize_wide(const float* x, std::size_t n, WideQuantBlock* out, std::size_t stride) {
  for (std::size_t i = 0; i < n; i += 32, out += stride) {
    const Integers integers = to_integers(x + i, 127.0F * 128.0F);
    const I32x16 halves[2] = {integers.low_half, integers.high_half};
    for (std::size_t h = 0; h < 2; ++h) {
      const I32x16 high = shift_right<7>(halves[h] + broadcast_i32(64));
      store_i8(out->high.q + 16 * h, high);
      store_i8(out->low + 16 * h, halves[h] - shift_left<7>(high));
    }
    store_sums(integers, out->high);
  }
}

void to_bf16(const float* x, std::size_t n, std::uint16_t* out) {
  const std::size_t padded = (n + kBf16TileColumns - 1) / kBf16TileColumns * kBf16TileColumns;
  for (std::size_t i = 0; i < padded; i += 16) {
    std::uint16_t* at = out + i / kBf16TileColumns * kBf16TileElements + i % kBf16TileColumns;
    if (i + 16 <= n) {
      store_bf16(at, load(x + i));
    } else {
      store_bf16(at, i < n ? load_first(x + i, n - i) : zero());
    }
  }
}

void add(const float* x, std::size_t n, float* y) {
  for_lanes(n, [&](std::size_t i, std::size_t count) {
    store_n(y + i, load_n(y + i, count) + load_n(x + i, count), count);
  });
}

void scale(float factor, std::size_t n, float* x) {
  const F32x16 all = broadcast(factor);
  for_lanes(n, [&](std::size_t i, std::size_t count) {
    store_n(x + i, load_n(x + i, count) * all, count);
  });
}

void rope(const float* cosines, const float* sines, std::size_t half, float* x) {
  for_lanes(half, [&](std::size_t i, std::size_t count) {
    const F32x16 c = load_n(cosines + i, count);
    const F32x16 s = load_n(sines + i, count);
    const F32x16 a = load_n(x + i, count);
    const F32x16 b = load_n(x + half + i, count);
    store_n(x + i, a * c - b * s, count);
    store_n(x + half + i, b * c + a * s, count);
  });
}

// One step inside a vector: lanes i and i + kDistance become their sum and difference.
template <int kDistance>
CICADA_INLINE F32x16 fold_lanes(F32x16 a) {
  alignas(64) float signs[16];
  for (int i = 0; i < 16; ++i) signs[i] = (i & kDistance) == 0 ? 1.0F : -1.0F;
  return fma(load(signs), a, swap_lanes<kDistance>(a));
}

void hadamard(std::size_t n, float* x) {
  const std::size_t part = n & (~n + 1);
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(part));
  for (std::size_t begin = 0; begin < n; begin += part) {
    float* p = x + begin;
    for (std::size_t d = 0; part >= 16 && d < part; d += 16) {
      store(p + d, fold_lanes<8>(fold_lanes<4>(fold_lanes<2>(fold_lanes<1>(load(p + d))))));
    }
    for (std::size_t step = part >= 16 ? 16 : 1; step < part; step *= 2) {
      for (std::size_t i = 0; i < part; i += 2 * step) {
        for (std::size_t j = i; j < i + step;) {
          if (step >= 16) {
            const F32x16 a = load(p + j);
            const F32x16 b = load(p + j + step);
            store(p + j, a + b);
            store(p + j + step, a - b);
            j += 16;
          } else {
            const float a = p[j];
            const float b = p[j + step];
            p[j] = a + b;
            p[j + step] = a - b;
            ++j;
          }
        }
      }
    }
  }
  for_lanes(n, [&](std::size_t i, std::size_t count) {
    store_n(x + i, load_n(x + i, count) * broadcast(scale), count);
  });
}

void key_bias(const float* q, const float* b, std::size_t half, std::size_t head_dim, float* out) {
  const std::size_t padded = (half + 15) / 16 * 16;
  for_lanes(half, [&](std::size_t i, std::size_t count) {
    const F32x16 q0 = load_n(q + i, count);
    const F32x16 q1 = load_n(q + half + i, count);
    const F32x16 b0 = load_n(b + i, count);
    const F32x16 b1 = load_n(b + half + i, count);
    store(out + i, fma(q0, b0, q1 * b1));
    store(out + padded + i, q1 * b0 - q0 * b1);
  });
  F32x16 rest = zero();
  for_lanes(head_dim - 2 * half, [&](std::size_t i, std::size_t count) {
    rest = fma(load_n(q + 2 * half + i, count), load_n(b + 2 * half + i, count), rest);
  });
  out[2 * padded] = reduce_add(rest);
}

void note_peak(const float* x, std::size_t n, std::uint32_t first, Peak& peak) {
  const F32x16 infinity = broadcast(__builtin_inff());
  F32x16 largest = zero() - infinity;
  F32x16 damage = zero();
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const F32x16 v = load(x + i);
    damage = damage + select_greater(infinity, v, zero(), broadcast(1.0F));
    largest = max(v, largest);
  }
  bool is_damaged = reduce_add(damage) > 0.0F;
  float piece = reduce_max(largest);
  for (; i < n; ++i) {
    is_damaged |= !(x[i] < __builtin_inff());
    if (x[i] > piece) piece = x[i];
  }
  peak.is_damaged |= is_damaged;
  Peak found{.value = piece, .index = first};
  if (is_damaged || !peak.is_below(found)) return;  // later equals cannot lie before `first`
  while (x[found.index - first] != piece) ++found.index;
  if (peak.is_below(found)) {
    peak.value = found.value;
    peak.index = found.index;
  }
}

}  // namespace
}  // namespace cicada::kernels
