#include "cicada/formats/metadata.h"

#include <array>
#include <cstring>

#include "cicada/base/checked.h"
#include "cicada/formats/quote.h"

namespace cicada::formats {
namespace {

// A typed getter copies an array; this bounds the copy. Ten times the largest vocabulary known.
constexpr std::uint64_t kMaxArrayElements = std::uint64_t{1} << 24;

std::string describe(const MetaValue& value) {
  if (const auto* array = std::get_if<MetaArray>(&value.value)) {
    return fmt::format("an array of {}", meta_type_name(array->element_type));
  }
  return fmt::format("a {}", meta_type_name(value.type));
}

tl::unexpected<Error> wrong_type(std::string_view key, const MetaValue& value,
                                 std::string_view needed) {
  return fail(Code::kCorrupt, "key {}: is {}, {} is needed", quote(key), describe(value), needed);
}

template <typename T>
T load(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// One element of a fixed-size array as an int64; nothing for floats and numbers that do not fit.
std::optional<std::int64_t> int_at(MetaType type, const std::byte* at) {
  switch (type) {
    case MetaType::kU8:
      return load<std::uint8_t>(at);
    case MetaType::kI8:
      return load<std::int8_t>(at);
    case MetaType::kU16:
      return load<std::uint16_t>(at);
    case MetaType::kI16:
      return load<std::int16_t>(at);
    case MetaType::kU32:
      return load<std::uint32_t>(at);
    case MetaType::kI32:
      return load<std::int32_t>(at);
    case MetaType::kU64:
      return checked_cast<std::int64_t>(load<std::uint64_t>(at));
    case MetaType::kI64:
      return load<std::int64_t>(at);
    default:
      return std::nullopt;
  }
}

bool is_integer(MetaType type) {
  return meta_type_bytes(type) != 0 && type != MetaType::kF32 && type != MetaType::kF64 &&
         type != MetaType::kBool;
}

// The array under a key, of a length that may be copied; nothing when the key is missing.
Result<const MetaArray*> array_of(const Metadata& metadata, std::string_view key,
                                  std::string_view needed) {
  const MetaValue* found = metadata.find(key);
  if (found == nullptr) return nullptr;
  const auto* array = std::get_if<MetaArray>(&found->value);
  if (array == nullptr) return wrong_type(key, *found, needed);
  if (array->count > kMaxArrayElements) {
    return fail(Code::kCorrupt, "key {}: {} elements, at most {}", quote(key), array->count,
                kMaxArrayElements);
  }
  return array;
}

}  // namespace

std::string_view meta_type_name(MetaType type) {
  constexpr std::array<std::string_view, 13> kNames = {"u8",  "i8",  "u16",  "i16",    "u32",
                                                       "i32", "f32", "bool", "string", "array",
                                                       "u64", "i64", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

std::size_t meta_type_bytes(MetaType type) {
  constexpr std::array<std::size_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kBytes[static_cast<std::size_t>(type)];
}

const MetaValue* Metadata::find(std::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

Result<std::optional<std::uint64_t>> Metadata::get_u64(std::string_view key) const {
  const MetaValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (found->type == MetaType::kBool) return wrong_type(key, *found, "an unsigned integer");
  if (const auto* value = std::get_if<std::uint64_t>(&found->value)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&found->value)) {
    if (const auto fits = checked_cast<std::uint64_t>(*value)) return *fits;
    return fail(Code::kCorrupt, "key {}: is {}, an unsigned integer is needed", quote(key), *value);
  }
  return wrong_type(key, *found, "an unsigned integer");
}

Result<std::optional<double>> Metadata::get_f64(std::string_view key) const {
  const MetaValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<double>(&found->value)) return *value;
  return wrong_type(key, *found, "a float");
}

Result<std::optional<bool>> Metadata::get_bool(std::string_view key) const {
  const MetaValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (found->type != MetaType::kBool) return wrong_type(key, *found, "a bool");
  return std::get<std::uint64_t>(found->value) != 0;
}

Result<std::optional<std::string_view>> Metadata::get_string(std::string_view key) const {
  const MetaValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<std::string_view>(&found->value)) return *value;
  return wrong_type(key, *found, "a string");
}

Result<std::optional<std::vector<std::string_view>>> Metadata::get_strings(
    std::string_view key) const {
  constexpr std::string_view kNeeded = "an array of string";
  CICADA_ASSIGN(const MetaArray* array, array_of(*this, key, kNeeded));
  if (array == nullptr) return std::nullopt;
  if (array->element_type != MetaType::kString) return wrong_type(key, *find(key), kNeeded);
  std::vector<std::string_view> strings;
  strings.reserve(static_cast<std::size_t>(array->count));
  // The lengths were walked against the end of the array when the file was opened.
  const std::byte* at = array->bytes.data();
  for (std::uint64_t i = 0; i < array->count; ++i) {
    const auto length = static_cast<std::size_t>(load<std::uint64_t>(at));
    strings.emplace_back(reinterpret_cast<const char*>(at + sizeof(std::uint64_t)), length);
    at += sizeof(std::uint64_t) + length;
  }
  return strings;
}

Result<std::optional<std::vector<std::int64_t>>> Metadata::get_ints(std::string_view key) const {
  constexpr std::string_view kNeeded = "an array of integers";
  CICADA_ASSIGN(const MetaArray* array, array_of(*this, key, kNeeded));
  if (array == nullptr) return std::nullopt;
  if (!is_integer(array->element_type)) return wrong_type(key, *find(key), kNeeded);
  const std::size_t width = meta_type_bytes(array->element_type);
  std::vector<std::int64_t> ints;
  ints.reserve(static_cast<std::size_t>(array->count));
  for (std::uint64_t i = 0; i < array->count; ++i) {
    const auto value = int_at(array->element_type, array->bytes.data() + i * width);
    if (!value) {
      return fail(Code::kCorrupt, "key {}: element {} does not fit in a signed 64-bit integer",
                  quote(key), i);
    }
    ints.push_back(*value);
  }
  return ints;
}

Result<std::optional<std::vector<float>>> Metadata::get_floats(std::string_view key) const {
  constexpr std::string_view kNeeded = "an array of floats";
  CICADA_ASSIGN(const MetaArray* array, array_of(*this, key, kNeeded));
  if (array == nullptr) return std::nullopt;
  const MetaType type = array->element_type;
  if (type != MetaType::kF32 && type != MetaType::kF64) {
    return wrong_type(key, *find(key), kNeeded);
  }
  const std::size_t width = meta_type_bytes(type);
  std::vector<float> floats;
  floats.reserve(static_cast<std::size_t>(array->count));
  for (std::uint64_t i = 0; i < array->count; ++i) {
    const std::byte* at = array->bytes.data() + i * width;
    floats.push_back(type == MetaType::kF32 ? load<float>(at)
                                            : static_cast<float>(load<double>(at)));
  }
  return floats;
}

Result<std::optional<std::vector<bool>>> Metadata::get_bools(std::string_view key) const {
  constexpr std::string_view kNeeded = "an array of bool";
  CICADA_ASSIGN(const MetaArray* array, array_of(*this, key, kNeeded));
  if (array == nullptr) return std::nullopt;
  if (array->element_type != MetaType::kBool) return wrong_type(key, *find(key), kNeeded);
  std::vector<bool> bools;
  bools.reserve(static_cast<std::size_t>(array->count));
  for (const std::byte value : array->bytes) bools.push_back(value != std::byte{0});
  return bools;
}

}  // namespace cicada::formats
