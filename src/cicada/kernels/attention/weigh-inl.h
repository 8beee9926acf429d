// Softmax of a row's scores over one tile: what does not depend on how the tile is held.
#pragma once

#include "cicada/kernels/attention/multiply-inl.h"
#include "cicada/kernels/attention/tile-inl.h"

namespace cicada::kernels {
namespace {

// Sixteen biases of the keys first_key … first_key + 15 as seen from `position`.
CICADA_INLINE F32x16 bias_lanes(const DistanceBias& bias, std::int64_t position,
                                std::int64_t first_key) {
  const std::int64_t index = bias.limit - (position - first_key);
  if (index <= -16) return broadcast(bias.reversed[0]);
  // Past the end only lie keys after the position, which are masked.
  return load(bias.reversed + (index < bias.limit ? index : bias.limit));
}

// a where the row sees the keys first … first + 15, none elsewhere.
CICADA_INLINE F32x16 select_seen(const AttentionRow& row, F32x16 a, F32x16 none,
                                 std::int64_t first) {
  const F32x16 seen = select_range(a, none, first, row.first_key, row.position);
  return row.sinks == 0 ? seen : select_range(a, seen, first, 0, row.last_sink());
}

// Adds to a row's 64 scores what the static bias of the keys gives them (attention.h). The angle of
// a position is that of its tile plus that of its place in it, so the two tables are small.
CICADA_INLINE void add_key_bias(const KeyBias& bias, const float* query, std::size_t tile,
                                float* scores) {
  const std::size_t half = bias.half;
  alignas(64) float turned[2 * kMostRopePairs];
  const float* cosines = bias.tile_angles + tile * 2 * half;
  const float* sines = cosines + half;
  for (std::size_t f = 0; f < half; f += 16) {
    const F32x16 c = load(cosines + f);
    const F32x16 s = load(sines + f);
    const F32x16 a = load(query + f);
    const F32x16 b = load(query + half + f);
    store(turned + f, fma(a, c, b * s));
    store(turned + half + f, b * c - a * s);
  }
  const float* const a[kRowBlock] = {turned};
  float* const c[kRowBlock] = {scores};
  const F32x16 constant = broadcast(query[2 * half]);
  for (std::size_t i = 0; i < kTileVectors; ++i) {
    store(scores + 16 * i, load(scores + 16 * i) + constant);
  }
  multiply_add<1, kTileVectors>(a, 2 * half, FloatRows{bias.place_angles, kKeyTile}, 0, c);
}

// Turns a row's 64 scores into weights and updates its running maximum, sum and output.
CICADA_INLINE void weigh(const AttentionRow& row, std::int64_t tile_begin, std::size_t width,
                         float* scores) {
  F32x16 s[kTileVectors];
  const F32x16 none = broadcast(kNoScore);
  F32x16 largest = none;
  for (std::size_t i = 0; i < kTileVectors; ++i) {
    const std::int64_t first = tile_begin + static_cast<std::int64_t>(16 * i);
    s[i] = load(scores + 16 * i);
    if (row.bias.reversed != nullptr) s[i] = s[i] + bias_lanes(row.bias, row.position, first);
    s[i] = select_seen(row, s[i], none, first);
    largest = max(s[i], largest);
  }
  const float old_max = row.stats[0];
  const float tile_max = reduce_max(largest);
  const float new_max = tile_max > old_max ? tile_max : old_max;
  F32x16 sum = zero();
  for (std::size_t i = 0; i < kTileVectors; ++i) {
    const std::int64_t first = tile_begin + static_cast<std::int64_t>(16 * i);
    const F32x16 weight = select_seen(row, exp(s[i] - broadcast(new_max)), zero(), first);
    store(scores + 16 * i, weight);
    sum = sum + weight;
  }
  if (new_max > old_max) {
    alignas(64) float lanes[16];
    store(lanes, exp(broadcast(old_max - new_max)));
    const F32x16 shrink = broadcast(lanes[0]);
    row.stats[1] = row.stats[1] * lanes[0];
    for (std::size_t d = 0; d < width; d += 16) store(row.out + d, load(row.out + d) * shrink);
  }
  row.stats[0] = new_max;
  row.stats[1] = row.stats[1] + reduce_add(sum);
}

}  // namespace
}  // namespace cicada::kernels
