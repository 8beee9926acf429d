#include "cicada/metrics/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace cicada::metrics {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

std::vector<std::uint64_t> counts(const Histogram& histogram) {
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) {
    result.push_back(histogram.count_in(i));
  }
  return result;
}

TEST(Counter, AddsUp) {
  Counter counter;
  EXPECT_EQ(counter.value(), 0U);
  counter.add();
  counter.add(41);
  counter.add(0);
  EXPECT_EQ(counter.value(), 42U);
}

TEST(Gauge, KeepsTheLastNumber) {
  Gauge gauge;
  gauge.set(2.5);
  gauge.set(-1);
  EXPECT_EQ(gauge.value(), -1);
  gauge.set(kNotANumber);
  EXPECT_EQ(gauge.value(), -1);
}

TEST(Histogram, BoundsAreInclusive) {
  Histogram histogram(std::array{0.5, 1.0, 2.0});
  for (const double value : {-3.0, 0.5, std::nextafter(0.5, 1.0), 1.0, 2.0, 2.0, 2.5, 1e300}) {
    histogram.observe(value);
  }
  EXPECT_EQ(counts(histogram), (std::vector<std::uint64_t>{2, 2, 2, 2}));
}

TEST(Histogram, SumIsThatOfTheValues) {
  Histogram histogram(std::array{1.0});
  histogram.observe(0.25);
  histogram.observe(4, 3);
  EXPECT_EQ(histogram.sum(), 12.25);
  EXPECT_EQ(counts(histogram), (std::vector<std::uint64_t>{1, 3}));
}

TEST(Histogram, WhatIsNoNumberIsNotTaken) {
  Histogram histogram(std::array{1.0});
  for (const double value : {kNotANumber, kInfinity, -kInfinity}) histogram.observe(value);
  EXPECT_EQ(histogram.sum(), 0);
  EXPECT_EQ(counts(histogram), (std::vector<std::uint64_t>{0, 0}));
}

TEST(Histogram, WithoutBoundsHasOneBucket) {
  Histogram histogram(std::span<const double>{});
  histogram.observe(7);
  EXPECT_EQ(counts(histogram), (std::vector<std::uint64_t>{1}));
}

TEST(Metrics, NothingIsLostWhenSeveralThreadsCount) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 5000;
  Counter counter;
  Histogram histogram(std::array{0.0, 1.0});
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        counter.add(2);
        histogram.observe(static_cast<double>(i % 3));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 2 * kThreads * kEach);
  const std::uint64_t zeros = (kEach + 2) / 3;
  const std::uint64_t ones = (kEach + 1) / 3;
  const std::uint64_t twos = kEach / 3;
  EXPECT_EQ(counts(histogram),
            (std::vector<std::uint64_t>{kThreads * zeros, kThreads * ones, kThreads * twos}));
  EXPECT_EQ(histogram.sum(), static_cast<double>(kThreads * (ones + 2 * twos)));
}

}  // namespace
}  // namespace cicada::metrics
