// Work on single rows and heads: normalising, quantising activations, rotary embedding,
// adding.
//
// Numbers: every function treats its row alone, with reductions over sixteen lanes (element i goes
// to
//          lane i mod 16, ascending) folded in a fixed tree; the bits are the same on every level.
// Threads: callable on distinct outputs at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cicada/kernels/activations.h"
#include "cicada/platform/cpu.h"

namespace cicada::kernels {

// The greatest of some values seen so far, with the lowest index among equals.
struct Peak {
  float value = -__builtin_inff();
  std::uint32_t index = 0;
  bool is_damaged = false;  // NaN or plus infinity was among them; then the others mean nothing

  // Whether it can be chosen: a number, and no damage anywhere.
  bool is_sound() const { return !is_damaged && value > -__builtin_inff(); }
  bool is_below(const Peak& other) const {
    return other.value > value || (other.value == value && other.index < index);
  }
};

struct RowKernels {
  // y[i] = x[i] * (1 / sqrt(mean(x²) + epsilon)) * gain[i]. Shapes: x, gain, y [n]; y may be x.
  void (*rms_norm)(const float* x, const float* gain, float epsilon, std::size_t n, float* y);

  // Quantises x [n], n a multiple of 32, into blocks out[b * stride]. A block with an infinity or
  // NaN gets a scale that is not finite.
  void (*quantize)(const float* x, std::size_t n, QuantBlock* out, std::size_t stride);

  // The same with integers of 15 bits.
  void (*quantize_wide)(const float* x, std::size_t n, WideQuantBlock* out, std::size_t stride);

  // Rounds x [n] to nearest even, NaN to NaN, as one row of tiles (activations.h); zeros up to a
  // whole tile.
  void (*to_bf16)(const float* x, std::size_t n, std::uint16_t* out);

  // y += x. Shapes: [n].
  void (*add)(const float* x, std::size_t n, float* y);

  // x *= factor. Shapes: [n].
  void (*scale)(float factor, std::size_t n, float* x);

  // Turns the pairs (x[i], x[i + half]) by the angles whose cosine and sine are given. Shapes: x
  // [2 * half] (elements behind it stay), cosines, sines [half].
  void (*rope)(const float* cosines, const float* sines, std::size_t half, float* x);

  // x = H x / sqrt(b) in every part of b elements, b the greatest power of two that divides n and H
  // the Hadamard matrix: its own inverse, so q · k is what H q · H k is. Shapes: x [n].
  void (*hadamard)(std::size_t n, float* x);

  // What a static bias of the keys needs of a query: with (q[i], q[i + half]) the pairs that RoPE
  // turns and b the bias, out[i] = q[i] b[i] + q[i + half] b[i + half] is times the cosine of a
  // key's angle and out[padded + i] = q[i + half] b[i] - q[i] b[i + half] times its sine, and
  // out[2 * padded] is the rest of q · b. Shapes: q, b [head_dim]; out [2 * padded + 1], padded
  // being half rounded up to 16, zeros in between.
  void (*key_bias)(const float* q, const float* b, std::size_t half, std::size_t head_dim,
                   float* out);

  // Takes x [n], whose indexes begin at `first`, into a peak; pieces may come in any order.
  void (*note_peak)(const float* x, std::size_t n, std::uint32_t first, Peak& peak);
};

// The functions of a level; platform::is_supported says which may be called.
const RowKernels& row_kernels(platform::IsaLevel level);

}  // namespace cicada::kernels
