#include "cicada/formats/safetensors_writer.h"

#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "cicada/base/checked.h"
#include "cicada/formats/quote.h"
#include "cicada/formats/safetensors_layout.h"
#include "cicada/json/writer.h"

namespace cicada::formats {
namespace {

Result<std::string_view> type_name(const TensorInfo& tensor) {
  switch (tensor.dtype) {
    case tensor::DType::kF32:
      return std::string_view("F32");
    case tensor::DType::kF16:
      return std::string_view("F16");
    case tensor::DType::kBF16:
      return std::string_view("BF16");
    default:
      return fail(Code::kUnsupported,
                  "tensor {}: type {} cannot be written as safetensors; supported: f32 f16 bf16",
                  quote(tensor.name), tensor::name(tensor.dtype));
  }
}

Result<std::string> header_json(const std::vector<TensorInfo>& tensors) {
  json::Writer json;
  json.begin_object();
  // Readers of the transformers package ask for this.
  json.key("__metadata__").begin_object().field("format", "pt").end_object();
  std::set<std::string_view> names = {"__metadata__"};
  std::uint64_t offset = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.name.empty() || tensor.shape.empty() || !names.insert(tensor.name).second) {
      return fail(Code::kInvalidArgument, "tensor \"{}\": is given twice, or has no name or shape",
                  quote(tensor.name));
    }
    CICADA_ASSIGN(const std::string_view type, type_name(tensor));
    CICADA_ASSIGN(const std::uint64_t size_bytes, checked_tensor_bytes(tensor));
    const auto end = checked_add(offset, size_bytes);
    if (!end) return fail(Code::kInvalidArgument, "more than 2^64 bytes of tensors");
    json.key(tensor.name).begin_object().field("dtype", type);
    json.key("shape").begin_array();
    for (const std::uint64_t size : tensor.shape) json.number(size);
    json.end_array();
    json.key("data_offsets").begin_array().number(offset).number(*end).end_array().end_object();
    offset = *end;
  }
  json.end_object();
  std::string header = json.take();
  while (header.size() % 8 != 0) header += ' ';
  if (header.size() > kMaxSafetensorsHeaderBytes) {
    return fail(Code::kInvalidArgument, "header of {} bytes, at most {}", header.size(),
                kMaxSafetensorsHeaderBytes);
  }
  return header;
}

}  // namespace

Result<void> write_safetensors(platform::AtomicFileWriter& out,
                               const std::vector<TensorInfo>& tensors, const TensorSource& source) {
  CICADA_ASSIGN(const std::string header, header_json(tensors));
  const std::uint64_t header_bytes = header.size();
  CICADA_TRY(out.write(std::as_bytes(std::span(&header_bytes, 1))));
  CICADA_TRY(out.write(header));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CICADA_TRY(write_tensor(out, tensors[i], i, source));
  }
  return {};
}

}  // namespace cicada::formats
