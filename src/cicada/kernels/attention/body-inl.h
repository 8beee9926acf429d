// Attention of every level; see attention.h for the contract.
#pragma once

#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/simd-inl.h"

namespace cicada::kernels {
namespace {

inline constexpr std::size_t kRowBlock = 4;
inline constexpr std::size_t kTileVectors = kKeyTile / 16;

constexpr std::size_t round_up16(std::size_t n) { return (n + 15) / 16 * 16; }

// The second factor of a product, sixteen columns at a time: line(t, i) is columns 16 i … 16 i + 15
// of row t.
struct FloatRows {  // [rows][stride]
  const float* data;
  std::size_t stride;
  CICADA_INLINE F32x16 line(std::size_t t, std::size_t i) const {
    return load(data + t * stride + 16 * i);
  }
};
// The cache as it is. Each element asks for the one at its place in the next tile, which lies in
// another page, where the processor would not look; into the second cache, since the first is full
// of this tile (measured: the first one loses a quarter).
struct CachedKeys {  // 4 sub-tiles [head_dim][16]; row t is dimension t
  const std::uint16_t* data;
  const std::uint16_t* next;
  std::size_t head_dim;
  CICADA_INLINE F32x16 line(std::size_t t, std::size_t i) const {
    const std::size_t at = (i * head_dim + t) * 16;
    if (t % 2 == 0) __builtin_prefetch(next + at, 0, 2);
    return load_f16(data + at);
  }
};
struct CachedValues {  // [64][value_dim], a multiple of 16
  const std::uint16_t* data;
  const std::uint16_t* next;
  std::size_t value_dim;
  CICADA_INLINE F32x16 line(std::size_t t, std::size_t i) const {
    const std::size_t at = t * value_dim + 16 * i;
    if (i % 2 == 0) __builtin_prefetch(next + at, 0, 2);
    return load_f16(data + at);
  }
};

// c[r][16 * i + lane] += sum over t ascending of a[r][t] * b.line(t, first + i)[lane], one fma
// each.
template <std::size_t kRows, std::size_t kVectors, typename Factor>
CICADA_INLINE void multiply_add(const float* const (&a)[kRowBlock], std::size_t depth, Factor b,
                                std::size_t first, float* const (&c)[kRowBlock]) {
  F32x16 acc[kRows][kVectors];
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kVectors; ++i) acc[r][i] = load(c[r] + 16 * i);
  }
  for (std::size_t t = 0; t < depth; ++t) {
    F32x16 line[kVectors];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kVectors; ++i) line[i] = b.line(t, first + i);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRows; ++r) {
      const F32x16 factor = broadcast(a[r][t]);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kVectors; ++i) acc[r][i] = fma(factor, line[i], acc[r][i]);
    }
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kVectors; ++i) store(c[r] + 16 * i, acc[r][i]);
  }
}

// The same over `columns` (a multiple of 16) columns.
template <std::size_t kRows, typename Factor>
CICADA_INLINE void multiply_add_wide(const float* const (&a)[kRowBlock], std::size_t depth,
                                     Factor b, std::size_t columns, float* const (&c)[kRowBlock]) {
  std::size_t column = 0;
  float* at[kRowBlock];
  for (; column + 64 <= columns; column += 64) {
    for (std::size_t r = 0; r < kRows; ++r) at[r] = c[r] + column;
    multiply_add<kRows, 4>(a, depth, b, column / 16, at);
  }
  for (; column < columns; column += 16) {
    for (std::size_t r = 0; r < kRows; ++r) at[r] = c[r] + column;
    multiply_add<kRows, 1>(a, depth, b, column / 16, at);
  }
}

// Keys of one tile as float: [head_dim][64].
CICADA_INLINE void widen_keys(const std::uint16_t* keys, std::size_t head_dim, float* out) {
  for (std::size_t sub = 0; sub < kTileVectors; ++sub) {
    for (std::size_t d = 0; d < head_dim; ++d) {
      store(out + d * kKeyTile + 16 * sub, load_f16(keys + (sub * head_dim + d) * 16));
    }
  }
}

// Values of one tile as float: [64][value_dim rounded up to 16], filled with zeros.
CICADA_INLINE void widen_values(const std::uint16_t* values, std::size_t value_dim, float* out) {
  const std::size_t width = round_up16(value_dim);
  for (std::size_t j = 0; j < kKeyTile; ++j) {
    const std::uint16_t* row = values + j * value_dim;
    std::size_t d = 0;
    for (; d + 16 <= value_dim; d += 16) store(out + j * width + d, load_f16(row + d));
    if (d == value_dim) continue;
    std::uint16_t tail[16] = {};
    __builtin_memcpy(tail, row + d, (value_dim - d) * sizeof(std::uint16_t));
    store(out + j * width + d, load_f16(tail));
  }
}

// Sixteen biases of the keys first_key … first_key + 15 as seen from `position`.
CICADA_INLINE F32x16 bias_lanes(const DistanceBias& bias, std::int64_t position,
                                std::int64_t first_key) {
  const std::int64_t index = bias.limit - (position - first_key);
  if (index <= -16) return broadcast(bias.reversed[0]);
  // Past the end only lie keys after the position, which are masked.
  return load(bias.reversed + (index < bias.limit ? index : bias.limit));
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
    s[i] = select_range(s[i], none, first, row.first_key, row.position);
    largest = max(s[i], largest);
  }
  const float old_max = row.stats[0];
  const float tile_max = reduce_max(largest);
  const float new_max = tile_max > old_max ? tile_max : old_max;
  F32x16 sum = zero();
  for (std::size_t i = 0; i < kTileVectors; ++i) {
    const std::int64_t first = tile_begin + static_cast<std::int64_t>(16 * i);
    const F32x16 weight =
        select_range(exp(s[i] - broadcast(new_max)), zero(), first, row.first_key, row.position);
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

template <std::size_t kRows, typename Keys, typename Values>
CICADA_INLINE void attend_rows(const CachedTiles& cache, std::int64_t tile_begin,
                               const AttentionRow* rows, Keys keys, Values values) {
  const std::size_t width = round_up16(cache.value_dim);
  alignas(64) float scores[kRowBlock][kKeyTile] = {};
  const float* q[kRowBlock];
  const float* weights[kRowBlock];
  float* score_rows[kRowBlock];
  float* out[kRowBlock];
  for (std::size_t r = 0; r < kRows; ++r) {
    q[r] = rows[r].q;
    weights[r] = scores[r];
    score_rows[r] = scores[r];
    out[r] = rows[r].out;
  }
  multiply_add<kRows, kTileVectors>(q, cache.head_dim, keys, 0, score_rows);
  for (std::size_t r = 0; r < kRows; ++r) weigh(rows[r], tile_begin, width, scores[r]);
  multiply_add_wide<kRows>(weights, kKeyTile, values, width, out);
}

// All rows over the tile that begins at `begin`.
template <typename Keys, typename Values>
CICADA_INLINE void attend_tile(const CachedTiles& cache, std::int64_t begin,
                               const AttentionRow* rows, std::size_t num_rows, Keys keys,
                               Values values) {
  constexpr auto kTile = static_cast<std::int64_t>(kKeyTile);
  for (std::size_t r = 0; r < num_rows;) {
    // Rows are in ascending positions, so the first of a block that see nothing here are skipped.
    if (rows[r].position < begin || rows[r].first_key >= begin + kTile) {
      ++r;
      continue;
    }
    if (num_rows - r >= kRowBlock) {
      attend_rows<kRowBlock>(cache, begin, rows + r, keys, values);
      r += kRowBlock;
    } else if (num_rows - r == 3) {
      attend_rows<3>(cache, begin, rows + r, keys, values);
      r += 3;
    } else if (num_rows - r == 2) {
      attend_rows<2>(cache, begin, rows + r, keys, values);
      r += 2;
    } else {
      attend_rows<1>(cache, begin, rows + r, keys, values);
      r += 1;
    }
  }
}

// Up to this many rows read the cache as it is; more share a tile that was widened once.
inline constexpr std::size_t kDirectRows = 2 * kRowBlock;

void attend(const CachedTiles& cache, std::int64_t key_begin, std::int64_t key_end,
            const AttentionRow* rows, std::size_t num_rows, float* scratch) {
  constexpr auto kTile = static_cast<std::int64_t>(kKeyTile);
  const std::size_t width = round_up16(cache.value_dim);
  std::int64_t first = key_end;
  std::int64_t last = key_begin - 1;
  for (std::size_t r = 0; r < num_rows; ++r) {
    rows[r].stats[0] = kNoScore;
    rows[r].stats[1] = 0.0F;
    for (std::size_t d = 0; d < width; d += 16) store(rows[r].out + d, zero());
    if (rows[r].first_key < first) first = rows[r].first_key;
    if (rows[r].position > last) last = rows[r].position;
  }
  if (first < key_begin) first = key_begin;
  if (last >= key_end) last = key_end - 1;
  const bool is_direct = num_rows <= kDirectRows && width == cache.value_dim;
  float* keys = scratch;
  float* values = scratch + kKeyTile * cache.head_dim;
  for (std::int64_t begin = first / kTile * kTile; begin <= last; begin += kTile) {
    const auto index = static_cast<std::size_t>(begin / kTile);
    if (is_direct) {
      const std::size_t next = begin + kTile <= last ? index + 1 : index;
      attend_tile(cache, begin, rows, num_rows,
                  CachedKeys{cache.keys(index), cache.keys(next), cache.head_dim},
                  CachedValues{cache.values(index), cache.values(next), cache.value_dim});
      continue;
    }
    widen_keys(cache.keys(index), cache.head_dim, keys);
    widen_values(cache.values(index), cache.value_dim, values);
    attend_tile(cache, begin, rows, num_rows, FloatRows{keys, kKeyTile}, FloatRows{values, width});
  }
}

void merge(const float* out, const float* stats, std::size_t value_dim, float* total_out,
           float* total_stats) {
  const float new_max = stats[0] > total_stats[0] ? stats[0] : total_stats[0];
  alignas(64) float lanes[16];
  store(lanes, exp(broadcast(total_stats[0] - new_max)));
  const float keep = lanes[0];
  store(lanes, exp(broadcast(stats[0] - new_max)));
  const float take = lanes[0];
  total_stats[0] = new_max;
  total_stats[1] = total_stats[1] * keep + stats[1] * take;
  for (std::size_t d = 0; d < round_up16(value_dim); d += 16) {
    store(total_out + d, load(total_out + d) * broadcast(keep) + load(out + d) * broadcast(take));
  }
}

void finish(const float* total_out, const float* total_stats, std::size_t value_dim, float* y) {
  const F32x16 sum = broadcast(total_stats[1]);
  std::size_t d = 0;
  for (; d + 16 <= value_dim; d += 16) store(y + d, load(total_out + d) / sum);
  if (d == value_dim) return;
  alignas(64) float lanes[16];
  store(lanes, load(total_out + d) / sum);
  __builtin_memcpy(y + d, lanes, (value_dim - d) * sizeof(float));
}

}  // namespace
}  // namespace cicada::kernels
