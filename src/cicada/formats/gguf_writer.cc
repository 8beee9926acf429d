#include "cicada/formats/gguf_writer.h"

#include <set>
#include <string>
#include <string_view>

#include "cicada/base/checked.h"
#include "cicada/formats/gguf_layout.h"
#include "cicada/formats/quote.h"

namespace cicada::formats {
namespace {

constexpr std::uint32_t kVersion = 3;

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));  // a little-endian machine
}

void put_string(std::string& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  out += text;
}

void put_bytes(std::string& out, std::span<const std::byte> bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void put_array(std::string& out, const MetaArray& array) {
  put(out, static_cast<std::uint32_t>(array.element_type));
  put(out, array.count);
  put_bytes(out, array.bytes);
}

// The low bytes of an integer that was read from a field of this width.
void put_integer(std::string& out, std::uint64_t value, std::size_t width) {
  out.append(reinterpret_cast<const char*>(&value), width);
}

void put_value(std::string& out, const MetaValue& value) {
  put(out, static_cast<std::uint32_t>(value.type));
  if (const auto* text = std::get_if<std::string_view>(&value.value)) return put_string(out, *text);
  if (const auto* array = std::get_if<MetaArray>(&value.value)) return put_array(out, *array);
  if (const auto* number = std::get_if<double>(&value.value)) {
    if (value.type == MetaType::kF32) return put(out, static_cast<float>(*number));
    return put(out, *number);
  }
  const std::size_t width = meta_type_bytes(value.type);
  if (const auto* number = std::get_if<std::int64_t>(&value.value)) {
    return put_integer(out, static_cast<std::uint64_t>(*number), width);
  }
  put_integer(out, std::get<std::uint64_t>(value.value), width);
}

Result<void> check_names(const Metadata& metadata, const std::vector<TensorInfo>& tensors) {
  if (metadata.values().size() > kMaxMetadataKeys || tensors.size() > kMaxTensors) {
    return fail(Code::kInvalidArgument, "{} keys and {} tensors, at most {} and {}",
                metadata.values().size(), tensors.size(), kMaxMetadataKeys, kMaxTensors);
  }
  for (const auto& [key, value] : metadata.values()) {
    if (key.empty() || key.size() > kMaxKeyBytes) {
      return fail(Code::kInvalidArgument, "key {}: {} bytes, 1 to {} are allowed", quote(key),
                  key.size(), kMaxKeyBytes);
    }
  }
  std::set<std::string_view> names;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes) {
      return fail(Code::kInvalidArgument, "tensor {}: name of {} bytes, 1 to {} are allowed",
                  quote(tensor.name), tensor.name.size(), kMaxNameBytes);
    }
    if (!names.insert(tensor.name).second) {
      return fail(Code::kInvalidArgument, "tensor {}: is given twice", quote(tensor.name));
    }
    if (tensor.shape.empty() || tensor.shape.size() > kMaxDims) {
      return fail(Code::kInvalidArgument, "tensor {}: {} dims, 1 to {} are allowed",
                  quote(tensor.name), tensor.shape.size(), kMaxDims);
    }
  }
  return {};
}

// One line of the tensor table; returns the offset behind the tensor and its padding.
Result<std::uint64_t> put_tensor(std::string& out, const TensorInfo& tensor, std::uint64_t offset,
                                 std::uint64_t alignment) {
  put_string(out, tensor.name);
  put(out, static_cast<std::uint32_t>(tensor.shape.size()));
  for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) put(out, *size);
  put(out, tensor::info(tensor.dtype).gguf_type);
  put(out, offset);
  CICADA_ASSIGN(const std::uint64_t size_bytes, checked_tensor_bytes(tensor));
  const auto end = checked_add(offset, size_bytes);
  const auto next = end ? checked_round_up(*end, alignment) : std::nullopt;
  if (size_bytes == 0 || !next) {
    return fail(Code::kInvalidArgument, "tensor {}: {} bytes at offset {} cannot be written",
                quote(tensor.name), size_bytes, offset);
  }
  return *next;
}

Result<void> pad(platform::AtomicFileWriter& out, std::uint64_t alignment) {
  const std::uint64_t rest = out.position() % alignment;
  if (rest == 0) return {};
  return out.write(std::string(static_cast<std::size_t>(alignment - rest), '\0'));
}

}  // namespace

Result<void> write_gguf(platform::AtomicFileWriter& out, const Metadata& metadata,
                        const std::vector<TensorInfo>& tensors, const TensorSource& source) {
  CICADA_ASSIGN(const std::uint64_t alignment, gguf_alignment(metadata));
  CICADA_TRY(check_names(metadata, tensors));
  std::string head = "GGUF";
  put(head, kVersion);
  put<std::uint64_t>(head, tensors.size());
  put<std::uint64_t>(head, metadata.values().size());
  for (const auto& [key, value] : metadata.values()) {
    put_string(head, key);
    put_value(head, value);
  }
  std::uint64_t offset = 0;
  for (const TensorInfo& tensor : tensors) {
    CICADA_ASSIGN(offset, put_tensor(head, tensor, offset, alignment));
  }
  CICADA_TRY(out.write(head));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CICADA_TRY(pad(out, alignment));
    CICADA_TRY(write_tensor(out, tensors[i], i, source));
  }
  return tensors.empty() ? Result<void>() : pad(out, alignment);
}

}  // namespace cicada::formats
