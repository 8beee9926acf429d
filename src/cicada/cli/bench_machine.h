// What this machine allows at most: `cicada bench --machine`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/json/writer.h"
#include "cicada/platform/cpu.h"
#include "cicada/platform/thread_pool.h"

namespace cicada::cli {

// On one thread, and on all of the pool.
struct OneAndAll {
  double one = 0.0;
  double all = 0.0;
};

struct ReadSpeed {
  std::uint64_t bytes = 0;  // the working set, read over and over
  OneAndAll gb_per_s;
};

struct MachineLimits {
  std::size_t threads = 0;
  platform::IsaLevel level = platform::IsaLevel::kScalar;
  std::vector<ReadSpeed> reads;  // working sets ascending
  OneAndAll int8_tops;           // 10^12 multiplications and additions a second
  OneAndAll int8_tile_tops;      // the same of tiles; 0: no tile instructions
  OneAndAll bf16_tile_tops;
  double barrier_ns = 0.0;  // from the first to come to the last to go
};

// Takes some seconds; nothing else should run. Errors: kOutOfMemory; kCancelled.
Result<MachineLimits> measure_machine(platform::ThreadPool& pool, platform::IsaLevel level);

// 10^9 bytes a second in which all threads read `memory` in order, over and over for a twentieth of
// a second; the mean of that time, not the best. What is left over of 256 bytes is not read.
double read_gb_per_s(platform::ThreadPool& pool, platform::IsaLevel level,
                     std::span<const std::byte> memory);

// The value of the JSON field "machine".
void write_json(const MachineLimits& limits, json::Writer& writer);
std::string to_text(const MachineLimits& limits);

}  // namespace cicada::cli
