// For benchmarks only: one case a runnable level, named like the tests' cases.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cicada/platform/cpu.h"

namespace cicada::kernels {

// Registers `<operation>/<level>/<shape>` for every level of this machine; body(state, level) runs
// it. Seven repetitions after a warm-up; median and spread are printed (see docs/benchmarks.md).
template <typename Body>
void add_benchmark(const std::string& operation, const std::string& shape, Body body) {
  for (const platform::IsaLevelInfo& entry : platform::kIsaLevels) {
    if (!platform::is_supported(entry.level, platform::detect_cpu_features())) continue;
    const platform::IsaLevel level = entry.level;
    std::string name = operation;
    name.append("/").append(entry.name).append("/").append(shape);
    benchmark::RegisterBenchmark(name.c_str(),
                                 [level, body](benchmark::State& state) { body(state, level); })
        ->MinWarmUpTime(0.02)
        ->MinTime(0.05)
        ->Repetitions(7)
        ->ReportAggregatesOnly(true);
  }
}

// Numbers beside the time: bytes an iteration must read, as GB/s, and multiply-adds a second.
inline void set_rates(benchmark::State& state, double bytes, double multiply_adds) {
  const auto rate = [](double amount) {
    return benchmark::Counter(amount / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  };
  state.counters["GB/s"] = rate(bytes);
  if (multiply_adds > 0) state.counters["Gmac/s"] = rate(multiply_adds);
}

}  // namespace cicada::kernels
