// Conversion between containers and types: GGUF and safetensors, f32 f16 bf16 q8_0 q4_0.
// What happens to which tensor: docs/formats/safetensors.md, "Conversion".
// Threads: callable from several threads on distinct outputs; `progress` is called on the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"
#include "cicada/tensor/dtype.h"

namespace cicada::formats {

struct ConvertProgress {
  std::uint64_t done_bytes = 0;   // of tensor data of the output
  std::uint64_t total_bytes = 0;  //
  std::string_view tensor;        // being written; valid during the call
};

struct ConvertOptions {
  std::string input_path;
  std::string output_path;  // ends in .gguf or .safetensors, which decides the container
  // Type of the matrices. Neutral: each keeps its own (in safetensors quantised ones become f32).
  std::optional<tensor::DType> type;
  // Called after every piece of at most about a megabyte; false stops. May be empty.
  std::function<bool(const ConvertProgress&)> progress;
};

struct ConvertedTensor {
  std::string name;  // in the output
  tensor::DType from = tensor::DType::kF32;
  tensor::DType to = tensor::DType::kF32;
  bool fell_back = false;            // rows are not whole blocks of the asked type: f16 instead
  std::uint64_t num_overflowed = 0;  // finite values that became infinite or NaN
};

struct ConvertReport {
  Container from = Container::kGguf;
  Container to = Container::kGguf;
  std::vector<ConvertedTensor> tensors;
  std::uint64_t input_bytes = 0;   // whole file
  std::uint64_t output_bytes = 0;  // tensor data
  std::vector<std::string> files;  // written, the model first
};

// Reads one model file and writes another. The output appears whole or not at all; beside a
// safetensors file config.json and cicada_metadata.gguf are written. Links are followed.
// Errors: those of ModelFile::open; kInvalidArgument for an output without a known ending, an
// output that is the input or no regular file, or a config.json in the way that belongs to another
// file; kUnsupported for a type or an architecture that the output cannot hold; kCancelled; kIo.
Result<ConvertReport> convert(const ConvertOptions& options);

}  // namespace cicada::formats
