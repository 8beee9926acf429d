#include "cicada/tensor/buffer.h"

#include <sys/mman.h>

namespace cicada::tensor {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

}  // namespace

Result<Buffer> Buffer::create(std::size_t size_bytes) {
  if (size_bytes == 0) return Buffer();
  void* data =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return fail(Code::kOutOfMemory, "{} bytes of memory were refused by the system", size_bytes);
  }
  // Fewer TLB misses on long streams; a hint, so its failure does not matter.
  if (size_bytes >= kHugePageBytes) ::madvise(data, size_bytes, MADV_HUGEPAGE);
  return Buffer(static_cast<std::byte*>(data), size_bytes);
}

Buffer::~Buffer() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace cicada::tensor
