#include "cicada/metrics/metrics.h"

#include "cicada/base/check.h"

namespace cicada::metrics {

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1) {
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    CICADA_CHECK(std::isfinite(bounds_[i]), "the bucket without a bound is always there");
    CICADA_CHECK(i == 0 || bounds_[i - 1] < bounds_[i], "bounds ascend");
  }
}

void Histogram::observe(double value, std::uint64_t times) {
  if (!std::isfinite(value)) return;
  std::size_t idx = 0;
  while (idx < bounds_.size() && value > bounds_[idx]) ++idx;
  counts_[idx].fetch_add(times, std::memory_order_relaxed);
  sum_.fetch_add(value * static_cast<double>(times), std::memory_order_relaxed);
}

}  // namespace cicada::metrics
