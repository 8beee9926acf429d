#include "cicada/formats/content_id.h"

#include <algorithm>
#include <vector>

#include "cicada/platform/sha256.h"

namespace cicada::formats {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// One line a key; lengths tell parts apart.
Result<std::string> describe(const MetaValue& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value.value)) {
    return fmt::format("{}", *number);
  }
  if (const auto* number = std::get_if<std::int64_t>(&value.value)) {
    return fmt::format("{}", *number);
  }
  if (const auto* number = std::get_if<double>(&value.value)) return fmt::format("{:a}", *number);
  if (const auto* text = std::get_if<std::string_view>(&value.value)) {
    return platform::sha256_hex(as_bytes(*text));
  }
  const MetaArray& array = std::get<MetaArray>(value.value);
  CICADA_ASSIGN(const std::string digest, platform::sha256_hex(array.bytes));
  return fmt::format("{} {} {}", meta_type_name(array.element_type), array.count, digest);
}

}  // namespace

Result<std::string> content_id(const ModelFile& file, platform::ThreadPool& pool) {
  const std::span<const std::byte> bytes = file.bytes();
  std::vector<Result<std::string>> pieces((bytes.size() + kPieceBytes - 1) / kPieceBytes);
  pool.run([&](std::size_t worker) {
    const platform::Range range = platform::partition(pieces.size(), worker, pool.size());
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const std::size_t begin = i * kPieceBytes;
      pieces[i] =
          platform::sha256_hex(bytes.subspan(begin, std::min(kPieceBytes, bytes.size() - begin)));
      file.drop_range(begin, kPieceBytes);
    }
  });
  std::string text = fmt::format("content of {} bytes\n", bytes.size());
  for (const Result<std::string>& piece : pieces) {
    if (!piece) return fail(piece.error());
    text += *piece + "\n";
  }
  // Of safetensors the metadata lies in another file.
  for (const auto& [key, value] : file.metadata().values()) {
    CICADA_ASSIGN(const std::string words, describe(value));
    text += fmt::format("{}:{} {} {}\n", key.size(), key, meta_type_name(value.type), words);
  }
  return platform::sha256_hex(as_bytes(text));
}

}  // namespace cicada::formats
