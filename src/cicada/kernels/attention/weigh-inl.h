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
  if (!row.has_tile_of(first)) return none;
  const F32x16 seen = select_range(a, none, first, row.first_key, row.position);
  return row.sinks == 0 ? seen : select_range(a, seen, first, 0, row.last_sink());
}

// Adds to 64 scores of each of kRows rows what the static bias of the keys gives them
// (attention.h). The angle of a position is that of its tile plus that of its place in it, so the
// two tables are small.
template <std::size_t kRows>
CICADA_INLINE void add_key_bias(const KeyBias& bias, const AttentionRow* rows, std::size_t tile,
                                float (*scores)[kKeyTile]) {
  const std::size_t half = bias.half;
  alignas(64) float turned[kRows][2 * kMostRopePairs];
  const float* cosines = bias.tile_angles + tile * 2 * half;
  const float* sines = cosines + half;
  const float* a[kRowBlock];
  float* c[kRowBlock];
  for (std::size_t r = 0; r < kRows; ++r) {
    const float* query = rows[r].key_bias;
    for (std::size_t f = 0; f < half; f += 16) {
      const F32x16 cosine = load(cosines + f);
      const F32x16 sine = load(sines + f);
      const F32x16 x = load(query + f);
      const F32x16 y = load(query + half + f);
      store(turned[r] + f, fma(x, cosine, y * sine));
      store(turned[r] + half + f, y * cosine - x * sine);
    }
    const F32x16 constant = broadcast(query[2 * half]);
    for (std::size_t i = 0; i < kTileVectors; ++i) {
      store(scores[r] + 16 * i, load(scores[r] + 16 * i) + constant);
    }
    a[r] = turned[r];
    c[r] = scores[r];
  }
  multiply_add<kRows, kTileVectors>(a, 2 * half, FloatRows{bias.place_angles, kKeyTile}, 0, c);
}

// A block of rows over one tile.
struct WeighedRows {
  const AttentionRow* rows;
  std::int64_t tile_begin;
  alignas(64) float weights[kRowBlock][kKeyTile];  // scores before weigh()
  float largest[kRowBlock];                        // the largest weight of each
  bool sees_all[kRowBlock];                        // of the tile's keys
};

// Turns the scores of kRows rows into weights and updates their running maxima, sums and outputs.
template <std::size_t kRows>
CICADA_INLINE void weigh(std::size_t width, WeighedRows& weighed) {
  const AttentionRow* rows = weighed.rows;
  const std::int64_t tile_begin = weighed.tile_begin;
  auto& scores = weighed.weights;
  auto& sees_all = weighed.sees_all;
  constexpr auto kLast = static_cast<std::int64_t>(kKeyTile) - 1;
  alignas(64) float factors[16] = {};  // what the rows' sums shrink by, and their largest weights
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kRows; ++r) {
    const AttentionRow& row = rows[r];
    sees_all[r] = row.first_key <= tile_begin && row.position >= tile_begin + kLast &&
                  row.has_tile_of(tile_begin);
    const F32x16 none = broadcast(kNoScore);
    F32x16 most = none;
    for (std::size_t i = 0; i < kTileVectors; ++i) {
      const std::int64_t first = tile_begin + static_cast<std::int64_t>(16 * i);
      F32x16 s = load(scores[r] + 16 * i);
      if (row.bias.reversed != nullptr) s = s + bias_lanes(row.bias, row.position, first);
      if (!sees_all[r]) s = select_seen(row, s, none, first);
      if (!sees_all[r] || row.bias.reversed != nullptr) store(scores[r] + 16 * i, s);
      most = max(s, most);
    }
    const float old_max = row.stats[0];
    const float tile_max = reduce_max(most);
    row.stats[0] = tile_max > old_max ? tile_max : old_max;
    factors[r] = old_max - row.stats[0];
    factors[kRowBlock + r] = tile_max - row.stats[0];
  }
  store(factors, exp2_of_negative(load(factors)));
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kRows; ++r) {
    const AttentionRow& row = rows[r];
    const F32x16 top = broadcast(row.stats[0]);
    F32x16 sum = zero();
    for (std::size_t i = 0; i < kTileVectors; ++i) {
      F32x16 weight = exp2_of_negative(load(scores[r] + 16 * i) - top);
      if (!sees_all[r]) {
        const std::int64_t first = tile_begin + static_cast<std::int64_t>(16 * i);
        weight = select_seen(row, weight, zero(), first);
      }
      store(scores[r] + 16 * i, weight);
      sum = sum + weight;
    }
    if (factors[r] != 1.0F) {
      const F32x16 shrink = broadcast(factors[r]);
      for (std::size_t d = 0; d < width; d += 16) store(row.out + d, load(row.out + d) * shrink);
    }
    row.stats[1] = row.stats[1] * factors[r] + reduce_add(sum);
    weighed.largest[r] = factors[kRowBlock + r];
  }
}

}  // namespace
}  // namespace cicada::kernels
