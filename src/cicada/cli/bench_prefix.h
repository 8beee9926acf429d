// `cicada bench --prefix`: how long the first token of a prompt takes when its beginning is known.
// Threads: the main thread only.
#pragma once

#include <cstdint>

#include "cicada/base/result.h"
#include "cicada/cli/common.h"

namespace cicada::cli {

struct PrefixBenchArguments {
  std::uint32_t prefix = 0;  // tokens that are known, 0: not measured
  std::uint32_t tail = 16;   // tokens behind them, different in every prompt
  std::uint32_t repeats = 5;
};

// Medians over the repetitions, in milliseconds from the prompt to its first token.
struct PrefixTimes {
  double cold_ms = 0.0;
  double memory_ms = 0.0;
  double disk_ms = 0.0;   // a new cache that reads the pages from a folder
  double write_ms = 0.0;  // of the prefix to the folder, after the answer
  std::uint64_t stored_bytes = 0;
  std::uint64_t reused_tokens = 0;       // in memory
  std::uint64_t disk_reused_tokens = 0;  // whole pages only
};

// Random ids. Files are written to a folder of their own below the system's folder for temporary
// files, and removed.
// Errors: those of generating; kInternal when a known prefix is not found or gives another token.
Result<PrefixTimes> measure_prefix(const LoadedModel& loaded,
                                   const PrefixBenchArguments& arguments);

// A line each for cold, memory and disk, with their shares of cold.
std::string to_text(const PrefixTimes& times, const PrefixBenchArguments& arguments);
std::string to_json(const PrefixTimes& times, const PrefixBenchArguments& arguments,
                    const LoadedModel& loaded);

}  // namespace cicada::cli
