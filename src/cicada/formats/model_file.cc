#include "cicada/formats/model_file.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cicada/base/check.h"
#include "cicada/base/checked.h"
#include "cicada/formats/quote.h"

namespace cicada::formats {
namespace {

std::string shape_words(const TensorInfo& tensor) {
  std::string words;
  for (const std::uint64_t size : tensor.shape) {
    if (!words.empty()) words += ", ";
    words += std::to_string(size);
  }
  return words;
}

Result<ModelFile> read_by_magic(platform::MappedFile file) {
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.empty()) return fail(Code::kCorrupt, "the file is empty");
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()),
                               std::min<std::size_t>(bytes.size(), 9));
  if (begin.starts_with("GGUF")) return read_gguf(std::move(file));
  if (begin.starts_with("FUGG")) {
    return fail(Code::kUnsupported, "a big-endian GGUF; only little-endian files are read");
  }
  // A safetensors file begins with the u64 length of its JSON header.
  if (begin.size() == 9 && begin[8] == '{') return read_safetensors(std::move(file));
  return fail(Code::kUnsupported,
              "not a model file: it begins with \"{}\"; GGUF (v2, v3) and safetensors are read",
              quote(begin.substr(0, 4)));
}

}  // namespace

Result<std::uint64_t> checked_tensor_bytes(const TensorInfo& tensor) {
  const tensor::DTypeInfo& type = tensor::info(tensor.dtype);
  std::uint64_t elements = 1;
  for (const std::uint64_t size : tensor.shape) {
    const auto product = checked_mul(elements, size);
    if (!product) {
      return fail(Code::kCorrupt, "tensor {}: shape [{}] has more than 2^64 elements",
                  quote(tensor.name), shape_words(tensor));
    }
    elements = *product;
  }
  if (tensor.shape.back() % type.block_elements != 0) {
    return fail(Code::kCorrupt, "tensor {}: rows of {} elements are not whole blocks of {} ({})",
                quote(tensor.name), tensor.shape.back(), type.name, type.block_elements);
  }
  const auto size_bytes = checked_mul(elements / type.block_elements, type.block_bytes);
  if (!size_bytes) {
    return fail(Code::kCorrupt, "tensor {}: shape [{}] has more than 2^64 bytes",
                quote(tensor.name), shape_words(tensor));
  }
  return *size_bytes;
}

std::uint64_t TensorInfo::num_elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

Result<ModelFile> ModelFile::open(const std::string& path) {
  CICADA_ASSIGN(platform::MappedFile file, platform::MappedFile::open(path));
  Result<ModelFile> model = read_by_magic(std::move(file));
  if (!model) return fail(std::move(model).error().with_context(path));
  return model;
}

const TensorInfo* ModelFile::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

std::span<const std::byte> ModelFile::tensor_bytes(const TensorInfo& tensor) const {
  const auto bytes = file_.bytes();
  CICADA_CHECK(tensor.offset_bytes <= bytes.size() &&
                   tensor.size_bytes <= bytes.size() - tensor.offset_bytes,
               "the tensor is not of this file");
  return bytes.subspan(static_cast<std::size_t>(tensor.offset_bytes),
                       static_cast<std::size_t>(tensor.size_bytes));
}

void ModelFile::will_need(const TensorInfo& tensor) const {
  file_.will_need(static_cast<std::size_t>(tensor.offset_bytes),
                  static_cast<std::size_t>(tensor.size_bytes));
}

void ModelFile::drop_pages(const TensorInfo& tensor) const {
  drop_pages(tensor, 0, static_cast<std::size_t>(tensor.size_bytes));
}

void ModelFile::drop_pages(const TensorInfo& tensor, std::size_t begin_bytes,
                           std::size_t size_bytes) const {
  file_.drop_pages(static_cast<std::size_t>(tensor.offset_bytes) + begin_bytes, size_bytes);
}

Result<void> ModelFile::index_tensors() {
  const std::uint64_t file_bytes = size_bytes();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const TensorInfo& tensor = tensors_[i];
    const auto end = checked_add(tensor.offset_bytes, tensor.size_bytes);
    if (!end || *end > file_bytes) {
      return fail(Code::kCorrupt, "tensor {}: {} bytes at byte {} do not lie inside the file of {}",
                  quote(tensor.name), tensor.size_bytes, tensor.offset_bytes, file_bytes);
    }
    if (!by_name_.emplace(tensor.name, i).second) {
      return fail(Code::kCorrupt, "tensor {}: appears twice", quote(tensor.name));
    }
  }
  std::vector<std::size_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    return tensors_[a].offset_bytes < tensors_[b].offset_bytes;
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& left = tensors_[order[i - 1]];
    const TensorInfo& right = tensors_[order[i]];
    if (left.offset_bytes + left.size_bytes > right.offset_bytes) {
      return fail(Code::kCorrupt, "tensors {} (byte {}, {} bytes) and {} (byte {}) overlap",
                  quote(left.name), left.offset_bytes, left.size_bytes, quote(right.name),
                  right.offset_bytes);
    }
  }
  return {};
}

}  // namespace cicada::formats
