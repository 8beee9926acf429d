// Fuzzes parse(): any bytes give a document or an error, and what parses can be walked.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cicada/base/check.h"
#include "cicada/json/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const cicada::json::Limits limits{.max_bytes = 1 << 16, .max_depth = 16};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = cicada::json::parse(text, limits);
  if (!document) {
    CICADA_CHECK(!document.error().message().empty(), "an error has words");
    return 0;
  }
  if (const auto members = cicada::json::as_object(document->root(), "root")) {
    for (const auto& member : *members) {
      static_cast<void>(cicada::json::as_string(member.value, member.key));
      static_cast<void>(cicada::json::as_u64(member.value, member.key));
    }
  }
  return 0;
}
