// The safetensors container: a u64 header length, a JSON header, the data.
// Rules and limits: docs/formats/safetensors.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"

namespace cicada::formats {

// Parsing takes about 15 times this; 2^17 tensors of llama shape fit.
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = std::uint64_t{1} << 24;

// Files beside a safetensors file.
inline constexpr std::string_view kConfigName = "config.json";
inline constexpr std::string_view kSidecarName = "cicada_metadata.gguf";

// The path of a file in the folder of `path`.
std::string beside(const std::string& path, std::string_view name);

// The tensors of a whole container held in memory, with the names the file gives them, in the order
// of the header. They are checked: types, shapes, sizes, and that they cover the data without holes
// or overlaps. Errors: kCorrupt, kUnsupported.
Result<std::vector<TensorInfo>> parse_safetensors(std::span<const std::byte> bytes);

}  // namespace cicada::formats
