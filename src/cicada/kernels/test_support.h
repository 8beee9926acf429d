// For tests only: the levels of this machine, and memory that ends at a page nobody may touch.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "cicada/kernels/random_data.h"
#include "cicada/platform/cpu.h"

namespace cicada::kernels {

// Levels with kernels that this machine can run, lowest first; prints those it cannot.
inline std::vector<platform::IsaLevel> runnable_levels() {
  std::vector<platform::IsaLevel> levels;
  const std::uint32_t features = platform::detect_cpu_features();
  for (const platform::IsaLevelInfo& entry : platform::kIsaLevels) {
    if (platform::is_supported(entry.level, features)) {
      levels.push_back(entry.level);
    } else {
      std::printf("skipped: level %s, which this processor lacks\n",
                  std::string(entry.name).c_str());
    }
  }
  return levels;
}

// The level that a user of this machine gets.
inline platform::IsaLevel best_level() {
  return *platform::choose_isa_level(platform::detect_cpu_features(), "");
}

// `count` elements that end where an unreadable page begins, so that one element too far is a
// fault.
template <typename T>
class Guarded {
 public:
  explicit Guarded(std::size_t count) : count_(count) {
    constexpr std::size_t kPage = 4096;
    mapped_bytes_ = (count * sizeof(T) + kPage - 1) / kPage * kPage + kPage;
    void* memory =
        ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    base_ = static_cast<std::byte*>(memory);
    std::byte* guard = base_ + mapped_bytes_ - kPage;
    EXPECT_EQ(::mprotect(guard, kPage, PROT_NONE), 0);
    data_ = reinterpret_cast<T*>(guard - count * sizeof(T));
  }
  explicit Guarded(const std::vector<T>& values) : Guarded(values.size()) {
    std::copy(values.begin(), values.end(), data_);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { ::munmap(base_, mapped_bytes_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::span<T> span() { return {data_, count_}; }

 private:
  std::size_t count_;
  std::byte* base_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  T* data_ = nullptr;
};

}  // namespace cicada::kernels
