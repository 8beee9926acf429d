// GGUF v2 and v3, little-endian. Layout and rules: docs/formats/gguf.md.

#include <algorithm>
#include <bit>
#include <cstring>

#include "cicada/base/checked.h"
#include "cicada/formats/byte_reader.h"
#include "cicada/formats/gguf_layout.h"
#include "cicada/formats/quote.h"

namespace cicada::formats {
namespace {

// The smallest a metadata entry and a tensor entry can be: counts are checked against what is left
// of the file before anything is reserved.
constexpr std::uint64_t kMinKeyEntryBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorEntryBytes = 8 + 1 + 4 + 8 + 4 + 8;

struct Header {
  std::uint32_t version = 0;
  std::uint64_t num_tensors = 0;
  std::uint64_t num_keys = 0;
};

Result<std::uint64_t> read_count(ByteReader& reader, std::string_view what, std::uint64_t max,
                                 std::uint64_t min_entry_bytes) {
  CICADA_ASSIGN(const std::uint64_t count, reader.read<std::uint64_t>(what));
  if (count > max) return fail(Code::kCorrupt, "{}: {}, at most {}", what, count, max);
  if (count > reader.remaining() / min_entry_bytes) {
    return fail(Code::kCorrupt, "{}: {}, but the file has only {} bytes left", what, count,
                reader.remaining());
  }
  return count;
}

Result<Header> read_header(ByteReader& reader) {
  CICADA_ASSIGN(const auto magic, reader.take(4, "magic"));
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) return fail(Code::kCorrupt, "magic: is not GGUF");
  Header header;
  CICADA_ASSIGN(header.version, reader.read<std::uint32_t>("version"));
  if (header.version != 2 && header.version != 3) {
    const std::uint32_t swapped = __builtin_bswap32(header.version);
    if (swapped == 2 || swapped == 3) {
      return fail(Code::kUnsupported, "a big-endian GGUF v{}; only little-endian files are read",
                  swapped);
    }
    return fail(Code::kUnsupported, "GGUF version {}; versions 2 and 3 are supported",
                header.version);
  }
  CICADA_ASSIGN(header.num_tensors,
                read_count(reader, "tensor count", kMaxTensors, kMinTensorEntryBytes));
  CICADA_ASSIGN(header.num_keys,
                read_count(reader, "metadata key count", kMaxMetadataKeys, kMinKeyEntryBytes));
  return header;
}

Result<MetaType> read_type(ByteReader& reader, const std::string& what) {
  CICADA_ASSIGN(const std::uint32_t number, reader.read<std::uint32_t>(what));
  if (number > static_cast<std::uint32_t>(MetaType::kF64)) {
    return fail(Code::kCorrupt, "{}: value type {}, at most 12", what, number);
  }
  return static_cast<MetaType>(number);
}

// Walks `count` strings, so that later readers need no checks.
Result<void> skip_strings(ByteReader& reader, std::uint64_t count, const std::string& what) {
  for (std::uint64_t i = 0; i < count; ++i) {
    CICADA_ASSIGN(const std::uint64_t length, reader.read<std::uint64_t>(what));
    CICADA_TRY(reader.take(length, what));
  }
  return {};
}

Result<MetaArray> read_array(ByteReader& reader, std::span<const std::byte> file,
                             const std::string& what) {
  MetaArray array;
  CICADA_ASSIGN(array.element_type, read_type(reader, what));
  if (array.element_type == MetaType::kArray) {
    return fail(Code::kUnsupported, "{}: an array of arrays; only flat arrays are read", what);
  }
  CICADA_ASSIGN(array.count, reader.read<std::uint64_t>(what));
  const bool is_string = array.element_type == MetaType::kString;
  const std::uint64_t min_bytes =
      is_string ? sizeof(std::uint64_t) : meta_type_bytes(array.element_type);
  if (array.count > reader.remaining() / min_bytes) {
    return fail(Code::kCorrupt, "{}: an array of {} {}, but the file has only {} bytes left", what,
                array.count, meta_type_name(array.element_type), reader.remaining());
  }
  const auto begin = static_cast<std::size_t>(reader.position());
  if (is_string) {
    CICADA_TRY(skip_strings(reader, array.count, what));
  } else {
    CICADA_TRY(reader.take(array.count * min_bytes, what));
  }
  array.bytes = file.subspan(begin, static_cast<std::size_t>(reader.position()) - begin);
  if (array.element_type == MetaType::kBool) {
    for (const std::byte value : array.bytes) {
      if (value > std::byte{1}) {
        return fail(Code::kCorrupt, "{}: a bool of {}, only 0 and 1 are allowed", what,
                    std::to_integer<int>(value));
      }
    }
  }
  return array;
}

template <typename Wide, typename T>
Result<MetaValue> read_number(ByteReader& reader, MetaType type, const std::string& what) {
  CICADA_ASSIGN(const T number, reader.read<T>(what));
  return MetaValue{type, static_cast<Wide>(number)};
}

Result<MetaValue> read_value(ByteReader& reader, std::span<const std::byte> file, MetaType type,
                             const std::string& what) {
  using U = std::uint64_t;
  using I = std::int64_t;
  switch (type) {
    case MetaType::kU8:
      return read_number<U, std::uint8_t>(reader, type, what);
    case MetaType::kI8:
      return read_number<I, std::int8_t>(reader, type, what);
    case MetaType::kU16:
      return read_number<U, std::uint16_t>(reader, type, what);
    case MetaType::kI16:
      return read_number<I, std::int16_t>(reader, type, what);
    case MetaType::kU32:
      return read_number<U, std::uint32_t>(reader, type, what);
    case MetaType::kI32:
      return read_number<I, std::int32_t>(reader, type, what);
    case MetaType::kU64:
      return read_number<U, std::uint64_t>(reader, type, what);
    case MetaType::kI64:
      return read_number<I, std::int64_t>(reader, type, what);
    case MetaType::kF32:
      return read_number<double, float>(reader, type, what);
    case MetaType::kF64:
      return read_number<double, double>(reader, type, what);
    case MetaType::kBool: {
      CICADA_ASSIGN(const std::uint8_t flag, reader.read<std::uint8_t>(what));
      if (flag <= 1) return MetaValue{type, U{flag}};
      return fail(Code::kCorrupt, "{}: a bool of {}, only 0 and 1 are allowed", what, flag);
    }
    case MetaType::kString: {
      CICADA_ASSIGN(const std::string_view text, reader.read_string(UINT64_MAX, what));
      return MetaValue{type, text};
    }
    case MetaType::kArray: {
      CICADA_ASSIGN(const MetaArray array, read_array(reader, file, what));
      return MetaValue{type, array};
    }
  }
  return fail(Code::kInternal, "{}: unknown value type", what);
}

Result<Metadata> read_metadata(ByteReader& reader, std::span<const std::byte> file,
                               std::uint64_t num_keys) {
  Metadata metadata;
  for (std::uint64_t i = 0; i < num_keys; ++i) {
    const std::string which = fmt::format("metadata key {} of {}", i + 1, num_keys);
    CICADA_ASSIGN(const std::string_view key, reader.read_string(kMaxKeyBytes, which));
    if (key.empty()) return fail(Code::kCorrupt, "{}: is empty, a name is needed", which);
    const std::string what = "key " + quote(key);
    if (metadata.find(key) != nullptr) return fail(Code::kCorrupt, "{}: appears twice", what);
    CICADA_ASSIGN(const MetaType type, read_type(reader, what));
    CICADA_ASSIGN(const MetaValue value, read_value(reader, file, type, what));
    metadata.set(std::string(key), value);
  }
  return metadata;
}

std::string supported_types() {
  std::string names;
  for (const tensor::DTypeInfo& type : tensor::kDTypes) {
    if (!names.empty()) names += ' ';
    names += type.name;
  }
  return names;
}

Result<tensor::DType> read_dtype(ByteReader& reader, const std::string& what) {
  CICADA_ASSIGN(const std::uint32_t number, reader.read<std::uint32_t>(what));
  if (const auto dtype = tensor::dtype_from_gguf(number)) return *dtype;
  const auto known = tensor::gguf_type_name(number);
  return fail(Code::kUnsupported, "{}: type {} is not supported; supported: {}", what,
              known ? std::string(*known) : fmt::format("number {}", number), supported_types());
}

// GGUF stores dimensions innermost first; shapes here are outermost first.
Result<std::vector<std::uint64_t>> read_shape(ByteReader& reader, const std::string& what) {
  CICADA_ASSIGN(const std::uint32_t num_dims, reader.read<std::uint32_t>(what));
  if (num_dims == 0 || num_dims > kMaxDims) {
    return fail(Code::kCorrupt, "{}: {} dims, 1 to {} are allowed", what, num_dims, kMaxDims);
  }
  std::vector<std::uint64_t> shape(num_dims);
  for (std::uint32_t d = 0; d < num_dims; ++d) {
    CICADA_ASSIGN(const std::uint64_t size, reader.read<std::uint64_t>(what));
    if (size == 0) return fail(Code::kCorrupt, "{}: dimension {} is 0", what, d);
    shape[num_dims - 1 - d] = size;
  }
  return shape;
}

// `data_begin` is not known before the last entry was read: offsets stay relative until then.
Result<TensorInfo> read_tensor(ByteReader& reader, const std::string& which) {
  CICADA_ASSIGN(const std::string_view name, reader.read_string(kMaxNameBytes, which));
  if (name.empty()) return fail(Code::kCorrupt, "{}: has an empty name", which);
  const std::string what = "tensor " + quote(name);
  TensorInfo tensor;
  tensor.name = std::string(name);
  CICADA_ASSIGN(tensor.shape, read_shape(reader, what));
  CICADA_ASSIGN(tensor.dtype, read_dtype(reader, what));
  CICADA_ASSIGN(tensor.size_bytes, checked_tensor_bytes(tensor));
  CICADA_ASSIGN(tensor.offset_bytes, reader.read<std::uint64_t>(what));
  return tensor;
}

// Turns offsets into positions in the file. That they lie inside it is index_tensors' to check.
Result<void> place_tensors(std::vector<TensorInfo>& tensors, std::uint64_t table_end,
                           std::uint64_t alignment) {
  const auto data_begin = checked_round_up(table_end, alignment);
  for (TensorInfo& tensor : tensors) {
    const std::string what = "tensor " + quote(tensor.name);
    if (tensor.offset_bytes % alignment != 0) {
      return fail(Code::kCorrupt, "{}: offset {} is not a multiple of the alignment {}", what,
                  tensor.offset_bytes, alignment);
    }
    const auto begin = data_begin ? checked_add(*data_begin, tensor.offset_bytes) : std::nullopt;
    if (!begin) {
      return fail(Code::kCorrupt, "{}: offset {} lies beyond any file", what, tensor.offset_bytes);
    }
    tensor.offset_bytes = *begin;
  }
  return {};
}

// Writers pad the last tensor like any other. A file that ends inside that padding was cut; one
// that ends with the tensor itself was written without it, which is harmless.
Result<void> check_final_padding(const std::vector<TensorInfo>& tensors, std::uint64_t file_bytes,
                                 std::uint64_t alignment) {
  std::uint64_t end = 0;
  for (const TensorInfo& tensor : tensors) {
    end = std::max(end, tensor.offset_bytes + tensor.size_bytes);
  }
  const auto padded = checked_round_up(end, alignment);
  if (tensors.empty() || file_bytes <= end || !padded || file_bytes >= *padded) return {};
  return fail(Code::kCorrupt, "ends after {} of the {} bytes of padding behind the last tensor",
              file_bytes - end, *padded - end);
}

}  // namespace

Result<std::uint64_t> gguf_alignment(const Metadata& metadata) {
  CICADA_ASSIGN(const auto alignment, metadata.get_u64("general.alignment"));
  if (!alignment) return kDefaultAlignment;
  if (!std::has_single_bit(*alignment) || *alignment < kMinAlignment ||
      *alignment > kMaxAlignment) {
    return fail(Code::kCorrupt,
                "key general.alignment: is {}, a power of two from {} to {} is needed", *alignment,
                kMinAlignment, kMaxAlignment);
  }
  return *alignment;
}

Result<GgufParts> parse_gguf(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  CICADA_ASSIGN(const Header header, read_header(reader));
  GgufParts parts;
  parts.version = header.version;
  CICADA_ASSIGN(parts.metadata, read_metadata(reader, bytes, header.num_keys));
  CICADA_ASSIGN(parts.alignment, gguf_alignment(parts.metadata));
  for (std::uint64_t i = 0; i < header.num_tensors; ++i) {
    const std::string which = fmt::format("tensor {} of {}", i + 1, header.num_tensors);
    CICADA_ASSIGN(TensorInfo tensor, read_tensor(reader, which));
    parts.tensors.push_back(std::move(tensor));
  }
  CICADA_TRY(place_tensors(parts.tensors, reader.position(), parts.alignment));
  return parts;
}

Result<ModelFile> read_gguf(platform::MappedFile file) {
  CICADA_ASSIGN(GgufParts parts, parse_gguf(file.bytes()));
  ModelFile model(std::move(file));
  model.container_ = Container::kGguf;
  model.version_ = parts.version;
  model.metadata_ = std::move(parts.metadata);
  model.tensors_ = std::move(parts.tensors);
  CICADA_TRY(model.index_tensors());
  CICADA_TRY(check_final_padding(model.tensors_, model.size_bytes(), parts.alignment));
  return model;
}

}  // namespace cicada::formats
