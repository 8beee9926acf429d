#include "cicada/server/random_id.h"

#include <random>

namespace cicada::server {

std::uint64_t random_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::string random_id(std::string_view prefix) {
  constexpr std::string_view kDigits =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr int kDigitsOfNumber = 8;  // 62^8 < 2^64
  std::string id(prefix);
  for (int i = 0; i < 3; ++i) {
    std::uint64_t number = random_number();
    for (int k = 0; k < kDigitsOfNumber; ++k, number /= kDigits.size()) {
      id += kDigits[number % kDigits.size()];
    }
  }
  return id;
}

}  // namespace cicada::server
