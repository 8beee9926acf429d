#include "cicada/formats/tensor_source.h"

#include "cicada/formats/quote.h"

namespace cicada::formats {

Result<void> write_tensor(platform::AtomicFileWriter& out, const TensorInfo& tensor,
                          std::size_t index, const TensorSource& source) {
  const std::uint64_t begin = out.position();
  CICADA_TRY(source(index, [&out](std::span<const std::byte> bytes) { return out.write(bytes); }));
  CICADA_ASSIGN(const std::uint64_t size_bytes, checked_tensor_bytes(tensor));
  if (out.position() - begin != size_bytes) {
    return fail(Code::kInternal, "tensor {}: the source gave {} bytes, {} are needed",
                quote(tensor.name), out.position() - begin, size_bytes);
  }
  return {};
}

}  // namespace cicada::formats
