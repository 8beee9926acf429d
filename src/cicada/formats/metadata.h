// Key-value metadata of a model file, as GGUF names it. Safetensors readers translate config.json
// into the same keys, so that everything above knows one vocabulary.
// Lifetime: string and array values are views into the file that owns the metadata.
// Threads: read-only after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cicada/base/result.h"

namespace cicada::formats {

// GGUF's numbers for value types.
enum class MetaType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// "u32", "string", …
std::string_view meta_type_name(MetaType type);

// Bytes of one element; 0 for strings and arrays, whose size varies.
std::size_t meta_type_bytes(MetaType type);

// An array whose elements were bounds-checked when the file was opened.
struct MetaArray {
  MetaType element_type = MetaType::kU8;
  std::uint64_t count = 0;
  std::span<const std::byte>
      bytes;  // the elements as GGUF stores them (strings: u64 length + bytes)
};

struct MetaValue {
  MetaType type = MetaType::kU8;
  // Unsigned integers and bool as uint64_t, signed as int64_t, floats as double.
  std::variant<std::uint64_t, std::int64_t, double, std::string_view, MetaArray> value;
};

class Metadata {
 public:
  void set(std::string key, MetaValue value) { values_.insert_or_assign(std::move(key), value); }
  const MetaValue* find(std::string_view key) const;
  const std::map<std::string, MetaValue, std::less<>>& values() const { return values_; }

  // Typed access. A missing key is nothing; a key of another type, or a number that does not fit,
  // is kCorrupt: "key llama.block_count: is a string, an unsigned integer is needed".
  // Integers of any width and signedness are accepted where the value fits; floats of either width.
  Result<std::optional<std::uint64_t>> get_u64(std::string_view key) const;
  Result<std::optional<double>> get_f64(std::string_view key) const;
  Result<std::optional<bool>> get_bool(std::string_view key) const;
  Result<std::optional<std::string_view>> get_string(std::string_view key) const;
  Result<std::optional<std::vector<std::string_view>>> get_strings(std::string_view key) const;
  Result<std::optional<std::vector<std::int64_t>>> get_ints(std::string_view key) const;
  Result<std::optional<std::vector<float>>> get_floats(std::string_view key) const;
  Result<std::optional<std::vector<bool>>> get_bools(std::string_view key) const;

 private:
  std::map<std::string, MetaValue, std::less<>> values_;
};

}  // namespace cicada::formats
