// What reader and writer of GGUF share: the parsed parts of a file and its rules.
// Layout: docs/formats/gguf.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/formats/metadata.h"
#include "cicada/formats/model_file.h"

namespace cicada::formats {

inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint64_t kMinAlignment = 8;
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;

// The file's alignment of tensor data: key general.alignment, 32 when it is missing.
// Errors: kCorrupt unless it is a power of two in [8, 2^20].
Result<std::uint64_t> gguf_alignment(const Metadata& metadata);

struct GgufParts {
  std::uint32_t version = 0;
  std::uint64_t alignment = 0;
  Metadata metadata;                // views of the parsed bytes
  std::vector<TensorInfo> tensors;  // not yet checked against each other and the end of the file
};

// Parses a whole GGUF held in memory. Errors: kCorrupt, kUnsupported.
Result<GgufParts> parse_gguf(std::span<const std::byte> bytes);

}  // namespace cicada::formats
