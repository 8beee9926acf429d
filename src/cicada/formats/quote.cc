#include "cicada/formats/quote.h"

#include <fmt/format.h>

namespace cicada::formats {

std::string quote(std::string_view text) {
  constexpr std::size_t kMaxShownBytes = 80;
  std::string shown;
  for (const char c : text.substr(0, kMaxShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\\') {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", byte);
    }
  }
  if (text.size() > kMaxShownBytes) shown += "…";
  return shown;
}

}  // namespace cicada::formats
