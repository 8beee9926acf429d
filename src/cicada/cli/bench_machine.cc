#include "cicada/cli/bench_machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "cicada/kernels/machine/machine.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/terminal.h"
#include "cicada/tensor/buffer.h"

namespace cicada::cli {
namespace {

using platform::ThreadPool;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kWorkingSets[] = {1 * kMiB,  4 * kMiB,   16 * kMiB,  64 * kMiB,
                                          96 * kMiB, 256 * kMiB, 512 * kMiB, 1024 * kMiB};
constexpr std::uint64_t kUnitBytes = 256;  // what is read, and shares of threads, are whole ones
constexpr int kRepeats = 4;                // the best counts: a limit, not a typical value
constexpr double kRepeatSeconds = 0.04;    // at least

// Keeps the compiler from leaving work out whose result nobody reads.
std::atomic<std::uint32_t>& unread_results() {
  static std::atomic<std::uint32_t> results{0};
  return results;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Units per second of `work(worker, rounds)`, which does `units` in a round, by `workers` workers.
template <typename Work>
double best_rate(ThreadPool& pool, std::size_t workers, double units, const Work& work) {
  std::uint64_t rounds = 1;
  double best = 0.0;
  for (int repeat = 0; repeat < kRepeats && !platform::interrupted();) {
    const auto start = std::chrono::steady_clock::now();
    pool.run([&](std::size_t worker) {
      if (worker < workers) unread_results().fetch_add(work(worker, rounds));
    });
    const double seconds = seconds_since(start);
    if (seconds < kRepeatSeconds) {
      rounds *= 2;  // not yet long enough to be told from the start of a region
      continue;
    }
    best = std::max(best, units * static_cast<double>(rounds) / seconds);
    ++repeat;
  }
  return best;
}

// Reads a worker's share of `memory`, `rounds` times.
std::uint32_t read_share(std::span<const std::byte> memory, std::size_t worker, std::size_t workers,
                         std::uint64_t rounds, const kernels::MachineKernels& kernels) {
  const platform::Range share = platform::partition(memory.size() / kUnitBytes, worker, workers);
  const std::byte* const begin = memory.data() + share.begin * kUnitBytes;
  std::uint32_t sum = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    sum += kernels.read(begin, (share.end - share.begin) * kUnitBytes);
  }
  return sum;
}

// Bytes per second when `workers` workers read their shares of `memory`.
double read_rate(ThreadPool& pool, std::size_t workers, std::span<const std::byte> memory,
                 const kernels::MachineKernels& kernels) {
  return best_rate(pool, workers, static_cast<double>(memory.size()),
                   [&](std::size_t worker, std::uint64_t rounds) {
                     return read_share(memory, worker, workers, rounds, kernels);
                   });
}

// Products in registers, in 10^12 a second: `round(rounds)` does `round_ops` a round.
template <typename Round>
OneAndAll product_tops(ThreadPool& pool, std::uint64_t round_ops, const Round& round) {
  constexpr std::uint64_t kRounds = 10'000;
  static_assert(kRounds <= kernels::kMostRounds);
  const auto rate = [&](std::size_t workers) {
    const double ops = static_cast<double>(kRounds * round_ops * workers);
    return best_rate(pool, workers, ops, [&](std::size_t, std::uint64_t rounds) {
      std::uint32_t sum = 0;
      for (std::uint64_t i = 0; i < rounds; ++i) sum += round(kRounds);
      return sum;
    });
  };
  return {.one = rate(1) / 1e12, .all = rate(pool.size()) / 1e12};
}

OneAndAll tile_tops(ThreadPool& pool, std::uint64_t round_ops, void (*products)(std::uint64_t)) {
  if (products == nullptr) return {};
  return product_tops(pool, round_ops, [products](std::uint64_t rounds) {
    products(rounds);
    return std::uint32_t{0};
  });
}

double barrier_seconds(ThreadPool& pool) {
  constexpr std::uint64_t kBarriers = 1000;
  const double rate =
      best_rate(pool, pool.size(), kBarriers, [&pool](std::size_t, std::uint64_t rounds) {
        for (std::uint64_t i = 0; i < rounds * kBarriers; ++i) pool.barrier().wait();
        return std::uint32_t{0};
      });
  return rate > 0.0 ? 1.0 / rate : 0.0;
}

// Every page is the machine's memory near its reader from here on.
void touch(ThreadPool& pool, tensor::Buffer& memory) {
  pool.run([&](std::size_t worker) {
    const platform::Range share =
        platform::partition(memory.size_bytes() / kUnitBytes, worker, pool.size());
    for (std::size_t unit = share.begin; unit < share.end; ++unit) {
      memory.data()[unit * kUnitBytes] = std::byte{1};
    }
  });
}

void write_pair(json::Writer& writer, std::string_view name, const OneAndAll& pair) {
  writer.key(name).begin_object().field("one", pair.one).field("all", pair.all).end_object();
}

}  // namespace

double read_gb_per_s(ThreadPool& pool, platform::IsaLevel level,
                     std::span<const std::byte> memory) {
  constexpr double kSeconds = 0.05;
  const kernels::MachineKernels& kernels = kernels::machine_kernels(level);
  const std::size_t whole = memory.size() - memory.size() % kUnitBytes;
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0.0;
  double bytes = 0.0;
  while (seconds < kSeconds) {
    pool.run([&](std::size_t worker) {
      unread_results().fetch_add(read_share(memory, worker, pool.size(), 1, kernels));
    });
    bytes += static_cast<double>(whole);
    seconds = seconds_since(start);
  }
  return bytes / seconds / 1e9;
}

Result<MachineLimits> measure_machine(ThreadPool& pool, platform::IsaLevel level) {
  const kernels::MachineKernels& kernels = kernels::machine_kernels(level);
  MachineLimits limits{.threads = pool.size(), .level = level};
  auto buffer = tensor::Buffer::create(*std::rbegin(kWorkingSets));
  if (!buffer) return fail(std::move(buffer).error().with_context("memory to read"));
  tensor::Buffer memory = std::move(*buffer);
  touch(pool, memory);
  platform::Progress progress(STDERR_FILENO);
  for (const std::uint64_t bytes : kWorkingSets) {
    progress.update(fmt::format("reading {}", platform::format_bytes(bytes)));
    const std::span<const std::byte> set{memory.data(), bytes};
    const double one = read_rate(pool, 1, set, kernels);
    const double all = read_rate(pool, pool.size(), set, kernels);
    limits.reads.push_back({.bytes = bytes, .gb_per_s = {.one = one / 1e9, .all = all / 1e9}});
  }
  progress.update("multiplying");
  limits.int8_tops = product_tops(pool, kernels::kInt8RoundOps, kernels.int8_products);
  limits.int8_tile_tops = tile_tops(pool, kernels::kInt8TileRoundOps, kernels.int8_tile_products);
  limits.bf16_tile_tops = tile_tops(pool, kernels::kBf16TileRoundOps, kernels.bf16_tile_products);
  limits.barrier_ns = 1e9 * barrier_seconds(pool);
  progress.clear();
  if (platform::interrupted()) return fail(Code::kCancelled, "stopped");
  return limits;
}

void write_json(const MachineLimits& limits, json::Writer& writer) {
  writer.begin_object()
      .field("threads", limits.threads)
      .field("isa", platform::name(limits.level))
      .key("read")
      .begin_array();
  for (const ReadSpeed& read : limits.reads) {
    writer.begin_object().field("bytes", read.bytes);
    write_pair(writer, "gb_per_s", read.gb_per_s);
    writer.end_object();
  }
  writer.end_array();
  write_pair(writer, "int8_tops", limits.int8_tops);
  if (limits.bf16_tile_tops.all > 0.0) {
    write_pair(writer, "int8_tile_tops", limits.int8_tile_tops);
    write_pair(writer, "bf16_tile_tops", limits.bf16_tile_tops);
  }
  writer.field("barrier_ns", limits.barrier_ns).end_object();
}

std::string to_text(const MachineLimits& limits) {
  std::string text = fmt::format("limits of this machine, {}: 1 thread, {} threads\n",
                                 platform::name(limits.level), limits.threads);
  for (const ReadSpeed& read : limits.reads) {
    text += fmt::format("read {:>9}, over and over: {:>7.1f} {:>7.1f} GB/s\n",
                        platform::format_bytes(read.bytes), read.gb_per_s.one, read.gb_per_s.all);
  }
  const auto add_tops = [&text](const char* name, const OneAndAll& tops) {
    if (tops.all > 0.0)
      text += fmt::format("{:<26} {:>7.2f} {:>7.2f} TOPS\n", name, tops.one, tops.all);
  };
  add_tops("8-bit products:", limits.int8_tops);
  add_tops("8-bit products of tiles:", limits.int8_tile_tops);
  add_tops("BF16 products of tiles:", limits.bf16_tile_tops);
  return text + fmt::format("barrier:                           {:>7.0f} ns\n", limits.barrier_ns);
}

}  // namespace cicada::cli
