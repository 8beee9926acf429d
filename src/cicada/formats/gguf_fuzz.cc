// Fuzzes the GGUF reader: any bytes give a checked ModelFile or an error, and all of what was
// accepted can be read.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cicada/base/check.h"
#include "cicada/formats/model_file.h"
#include "cicada/tensor/dequantize.h"

namespace {

using cicada::formats::Metadata;
using cicada::formats::ModelFile;
using cicada::formats::TensorInfo;

// The reader maps files; this one lives in memory and is filled anew for every input.
std::string memory_file(const std::uint8_t* data, std::size_t size) {
  static const int kFile = ::memfd_create("gguf_fuzz", MFD_CLOEXEC);
  CICADA_CHECK(kFile >= 0 && ::ftruncate(kFile, 0) == 0, "a memory file is needed");
  CICADA_CHECK(::pwrite(kFile, data, size, 0) == static_cast<ssize_t>(size),
               "it must take the input");
  return "/proc/self/fd/" + std::to_string(kFile);
}

void read_metadata(const Metadata& metadata) {
  for (const auto& [key, value] : metadata.values()) {
    static_cast<void>(metadata.get_u64(key));
    static_cast<void>(metadata.get_f64(key));
    static_cast<void>(metadata.get_bool(key));
    static_cast<void>(metadata.get_string(key));
    static_cast<void>(metadata.get_ints(key));
    static_cast<void>(metadata.get_floats(key));
    static_cast<void>(metadata.get_bools(key));
    const auto strings = metadata.get_strings(key);
    if (!strings) continue;
    for (const std::string_view text : strings->value_or(std::vector<std::string_view>{})) {
      CICADA_CHECK(text.empty() || text.front() == text.front(), "every string can be touched");
      CICADA_CHECK(text.empty() || text.back() == text.back(), "to its end");
    }
  }
}

void read_tensors(const ModelFile& file) {
  for (const TensorInfo& tensor : file.tensors()) {
    CICADA_CHECK(file.find(tensor.name) == &tensor, "every tensor is found by its name");
    const std::span<const std::byte> bytes = file.tensor_bytes(tensor);
    CICADA_CHECK(tensor.num_rows() * tensor.row_elements() == tensor.num_elements(), "whole rows");
    const std::size_t block = cicada::tensor::info(tensor.dtype).block_elements;
    std::vector<float> values(block);
    const std::size_t block_bytes = cicada::tensor::row_bytes(tensor.dtype, block);
    cicada::tensor::dequantize_row(tensor.dtype, bytes.first(block_bytes), values);
    cicada::tensor::dequantize_row(tensor.dtype, bytes.last(block_bytes), values);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = ModelFile::open(memory_file(data, size));
  if (!file) {
    CICADA_CHECK(!file.error().message().empty(), "an error has words");
    return 0;
  }
  read_metadata(file->metadata());
  read_tensors(*file);
  return 0;
}
