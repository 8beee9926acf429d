// Sixteen float or int32 lanes, written once for every kernel level.
//
// Included only by ISA files (x86_<level>.cc), each of which is compiled with its level's flags;
// all of it has internal linkage, so nothing leaks between levels. A level is told by the
// compiler's own macros. Every operation gives the same bits on every level: elementwise IEEE
// arithmetic, fused multiply-add where it says fma. reduce_add and reduce_max fold sixteen lanes in
// one fixed tree: lanes i and i + 8, then i and i + 4, 2, 1; a maximum takes the second of two
// lanes that do not compare. Reductions of integers are exact, so their order is free.
#pragma once

#if defined(__AVX512F__)
#include "cicada/kernels/simd_avx512-inl.h"
#elif defined(__AVX2__)
#include "cicada/kernels/simd_avx2-inl.h"
#else
#include "cicada/kernels/simd_scalar-inl.h"
#endif

namespace cicada::kernels {
namespace {

CICADA_INLINE F32x16 zero() { return broadcast(0.0F); }

// e^x to within 2 units in the last place for x in (-87, 88]; exactly 0 for x <= -87; e^88
// above 88. Cody-Waite reduction (ln 2 in two parts), then a polynomial of degree 7 on [-ln2/2,
// ln2/2].
CICADA_INLINE F32x16 exp(F32x16 x) {
  const F32x16 clamped = max(min(x, broadcast(88.0F)), broadcast(-87.0F));
  const F32x16 n = round(clamped * broadcast(1.44269504F));
  F32x16 r = fma(n, broadcast(-0.693145752F), clamped);
  r = fma(n, broadcast(-1.42860677e-6F), r);
  F32x16 p = broadcast(1.98756915e-4F);
  p = fma(p, r, broadcast(1.39819994e-3F));
  p = fma(p, r, broadcast(8.33345205e-3F));
  p = fma(p, r, broadcast(4.16657962e-2F));
  p = fma(p, r, broadcast(1.66666657e-1F));
  p = fma(p, r, broadcast(5.00000000e-1F));
  p = fma(p, r * r, r) + broadcast(1.0F);
  const F32x16 result = p * exp2_int(n);
  return select_greater(x, broadcast(-87.0F), result, zero());
}

// 2^x to within a unit in the last place for x in [-126, 0]; exactly 0 for x <= -127. A polynomial
// of degree 6 on [-1/2, 1/2] of the least relative error that is 1 at 0, its exponent moved by
// adding to its bits.
CICADA_INLINE F32x16 exp2_of_negative(F32x16 x) {
  const F32x16 clamped = max(x, broadcast(-127.0F));
  const F32x16 n = round(clamped);
  const F32x16 r = clamped - n;
  F32x16 p = broadcast(1.5353362e-4F);
  p = fma(p, r, broadcast(1.33988739e-3F));
  p = fma(p, r, broadcast(9.61843692e-3F));
  p = fma(p, r, broadcast(5.55033237e-2F));
  p = fma(p, r, broadcast(2.40226477e-1F));
  p = fma(p, r, broadcast(6.93147182e-1F));
  p = fma(p, r, broadcast(1.0F));
  return float_of(bits_of(p) + shift_left<23>(to_i32(n)));
}

}  // namespace
}  // namespace cicada::kernels
