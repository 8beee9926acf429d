// What a running server counts and measures. Setting one costs a few instructions: no lock, no
// allocation, no I/O. They live in a Registry (registry.h), which writes them out.
// Threads: all of them from any. Relaxed order throughout: no number says anything about another.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cicada::metrics {

// Only grows.
class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Goes up and down. Not a number is not taken: the value stays.
class Gauge {
 public:
  void set(double value) {
    if (!std::isnan(value)) value_.store(value, std::memory_order_relaxed);
  }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// A counter that somebody else counts, as the kernel does processor time: its total is set.
class Total : public Gauge {};

// How often values fell into fixed buckets, and their sum.
class Histogram {
 public:
  // Upper bounds of the buckets, ascending and finite; a value that equals one is in its bucket.
  // Above the last there is one without a bound.
  explicit Histogram(std::span<const double> bounds);

  // Infinities and what is not a number are not taken.
  void observe(double value) { observe(value, 1); }
  // The same value so many times.
  void observe(double value, std::uint64_t times);

  std::span<const double> bounds() const { return bounds_; }
  // Of one bucket, not of those below; `idx` up to bounds().size(), which is the last one.
  std::uint64_t count_in(std::size_t idx) const {
    return counts_[idx].load(std::memory_order_relaxed);
  }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double> bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;
  std::atomic<double> sum_{0};
};

}  // namespace cicada::metrics
