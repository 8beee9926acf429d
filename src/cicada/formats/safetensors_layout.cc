#include "cicada/formats/safetensors_layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>

#include "cicada/base/checked.h"
#include "cicada/formats/quote.h"
#include "cicada/json/parse.h"

namespace cicada::formats {
namespace {

constexpr std::size_t kMaxHeaderDepth = 4;  // the header, a tensor, its shape; one to spare

struct TypeName {
  std::string_view name;
  tensor::DType dtype;
};

constexpr std::array<TypeName, 3> kTypes = {{
    {"F32", tensor::DType::kF32},
    {"F16", tensor::DType::kF16},
    {"BF16", tensor::DType::kBF16},
}};

Result<json::Element> required(json::Element entry, std::string_view key, const std::string& what) {
  CICADA_ASSIGN(const auto found, json::find(entry, key, what));
  if (!found) return fail(Code::kCorrupt, "{}: has no {}", what, key);
  return *found;
}

Result<tensor::DType> read_dtype(json::Element entry, const std::string& what) {
  CICADA_ASSIGN(const auto element, required(entry, "dtype", what));
  CICADA_ASSIGN(const std::string_view name, json::as_string(element, what + " dtype"));
  for (const TypeName& type : kTypes) {
    if (type.name == name) return type.dtype;
  }
  return fail(Code::kUnsupported, "{}: type {} is not supported; supported: F32 F16 BF16", what,
              quote(name));
}

Result<std::vector<std::uint64_t>> read_shape(json::Element entry, const std::string& what) {
  CICADA_ASSIGN(const auto element, required(entry, "shape", what));
  CICADA_ASSIGN(const auto sizes, json::as_array(element, what + " shape"));
  std::vector<std::uint64_t> shape;
  for (const json::Element size : sizes) {
    if (shape.size() == kMaxDims) {
      return fail(Code::kCorrupt, "{}: more than {} dims", what, kMaxDims);
    }
    CICADA_ASSIGN(shape.emplace_back(), json::as_u64(size, what + " shape"));
    if (shape.back() == 0) {
      return fail(Code::kCorrupt, "{}: dimension {} is 0", what, shape.size() - 1);
    }
  }
  if (shape.empty()) {
    return fail(Code::kCorrupt, "{}: 0 dims, 1 to {} are allowed", what, kMaxDims);
  }
  return shape;
}

// Offsets are relative to the data, which begins at `data_begin` and ends with the file.
Result<void> read_offsets(json::Element entry, const std::string& what, TensorInfo& tensor,
                          std::uint64_t data_begin, std::uint64_t data_bytes) {
  CICADA_ASSIGN(const auto element, required(entry, "data_offsets", what));
  CICADA_ASSIGN(const auto offsets, json::as_array(element, what + " data_offsets"));
  if (offsets.size() != 2) {
    return fail(Code::kCorrupt, "{}: {} data_offsets, 2 are needed", what, offsets.size());
  }
  CICADA_ASSIGN(const std::uint64_t begin, json::as_u64(*offsets.begin(), what + " data_offsets"));
  CICADA_ASSIGN(const std::uint64_t end,
                json::as_u64(*(++offsets.begin()), what + " data_offsets"));
  if (begin > end || end > data_bytes) {
    return fail(Code::kCorrupt, "{}: bytes {} to {} do not lie inside the {} bytes of data", what,
                begin, end, data_bytes);
  }
  CICADA_ASSIGN(tensor.size_bytes, checked_tensor_bytes(tensor));
  if (end - begin != tensor.size_bytes) {
    return fail(Code::kCorrupt, "{}: {} bytes of data, its shape and type need {}", what,
                end - begin, tensor.size_bytes);
  }
  tensor.offset_bytes = data_begin + begin;
  return {};
}

// The format allows neither holes nor overlaps: in order of their offsets tensors touch, and the
// last one ends with the file.
Result<void> check_cover(const std::vector<TensorInfo>& tensors, std::uint64_t data_begin,
                         std::uint64_t file_bytes) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&tensors](std::size_t a, std::size_t b) {
    return tensors[a].offset_bytes < tensors[b].offset_bytes;
  });
  std::uint64_t end = data_begin;
  for (const std::size_t i : order) {
    const TensorInfo& tensor = tensors[i];
    if (tensor.offset_bytes != end) {
      return fail(
          Code::kCorrupt, "tensor {}: begins at byte {} of the data, {} at byte {}",
          quote(tensor.name), tensor.offset_bytes - data_begin,
          tensor.offset_bytes < end ? "inside another that ends" : "after a hole that begins",
          end - data_begin);
    }
    end += tensor.size_bytes;
  }
  if (end == file_bytes) return {};
  return fail(Code::kCorrupt, "{} bytes of data belong to no tensor", file_bytes - end);
}

}  // namespace

std::string beside(const std::string& path, std::string_view name) {
  const std::size_t slash = path.rfind('/');
  return (slash == std::string::npos ? std::string() : path.substr(0, slash + 1)) +
         std::string(name);
}

Result<std::vector<TensorInfo>> parse_safetensors(std::span<const std::byte> bytes) {
  std::uint64_t header_bytes = 0;
  if (bytes.size() < sizeof(header_bytes)) {
    return fail(Code::kCorrupt, "{} bytes are too few for a safetensors file", bytes.size());
  }
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const std::uint64_t rest = bytes.size() - sizeof(header_bytes);
  if (header_bytes > rest || header_bytes > kMaxSafetensorsHeaderBytes) {
    return fail(Code::kCorrupt, "header of {} bytes; the file has {}, at most {} are allowed",
                header_bytes, rest, kMaxSafetensorsHeaderBytes);
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof(header_bytes),
                              static_cast<std::size_t>(header_bytes));
  auto document =
      json::parse(text, {.max_bytes = kMaxSafetensorsHeaderBytes, .max_depth = kMaxHeaderDepth});
  if (!document) {
    return fail(Code::kCorrupt, "safetensors header: {}", document.error().message());
  }
  const std::uint64_t data_begin = sizeof(header_bytes) + header_bytes;
  CICADA_ASSIGN(const auto entries, json::as_object(document->root(), "safetensors header"));
  std::vector<TensorInfo> tensors;
  for (const auto& [name, entry] : entries) {
    if (name == "__metadata__") continue;  // free text of the writer
    if (name.empty() || name.size() > kMaxNameBytes) {
      return fail(Code::kCorrupt, "tensor {}: name of {} bytes, 1 to {} are allowed", quote(name),
                  name.size(), kMaxNameBytes);
    }
    if (tensors.size() == kMaxTensors) {
      return fail(Code::kCorrupt, "more than {} tensors", kMaxTensors);
    }
    const std::string what = "tensor " + quote(name);
    TensorInfo tensor;
    tensor.name = std::string(name);
    CICADA_ASSIGN(tensor.dtype, read_dtype(entry, what));
    CICADA_ASSIGN(tensor.shape, read_shape(entry, what));
    CICADA_TRY(read_offsets(entry, what, tensor, data_begin, bytes.size() - data_begin));
    tensors.push_back(std::move(tensor));
  }
  CICADA_TRY(check_cover(tensors, data_begin, bytes.size()));
  return tensors;
}

}  // namespace cicada::formats
