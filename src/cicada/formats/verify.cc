#include "cicada/formats/verify.h"

#include <algorithm>
#include <cmath>

#include "cicada/formats/gguf_layout.h"
#include "cicada/formats/model_file.h"
#include "cicada/formats/quote.h"
#include "cicada/platform/sha256.h"
#include "cicada/tensor/dequantize.h"

namespace cicada::formats {
namespace {

constexpr std::size_t kMaxNamedTensors = 100;
constexpr std::uint64_t kPieceElements = std::uint64_t{1} << 16;  // whole blocks of any type

struct BadNumbers {
  std::uint64_t num_nan = 0;
  std::uint64_t num_infinite = 0;
  std::uint64_t first = 0;  // index of the first bad element

  void add(float value, std::uint64_t index) {
    if (num_nan + num_infinite == 0) first = index;
    ++(std::isnan(value) ? num_nan : num_infinite);
  }
};

// Counts the bytes of both passes (numbers, digest) as one.
class Progress {
 public:
  Progress(const VerifyOptions& options, std::uint64_t file_bytes)
      : options_(options), total_bytes_(options.sha256 ? 2 * file_bytes : file_bytes) {}

  Result<void> at(std::uint64_t done_bytes) const {
    // A broken file has no size of its own to announce.
    const std::uint64_t total_bytes = std::max(done_bytes, total_bytes_);
    if (!options_.progress || options_.progress(done_bytes, total_bytes)) return {};
    return fail(Code::kCancelled, "verification was stopped");
  }

 private:
  const VerifyOptions& options_;
  std::uint64_t total_bytes_;
};

Result<BadNumbers> scan(const ModelFile& file, const TensorInfo& tensor, const Progress& progress,
                        std::uint64_t& done_bytes) {
  BadNumbers bad;
  std::span<const std::byte> bytes = file.tensor_bytes(tensor);
  std::vector<float> values;
  for (std::uint64_t begin = 0; begin < tensor.num_elements(); begin += kPieceElements) {
    values.resize(
        static_cast<std::size_t>(std::min(kPieceElements, tensor.num_elements() - begin)));
    const std::size_t piece_bytes = tensor::row_bytes(tensor.dtype, values.size());
    tensor::dequantize_row(tensor.dtype, bytes.first(piece_bytes), values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) bad.add(values[i], begin + i);
    }
    bytes = bytes.subspan(piece_bytes);
    done_bytes += piece_bytes;
    CICADA_TRY(progress.at(done_bytes));
  }
  file.drop_pages(tensor);
  return bad;
}

Result<void> check_numbers(const ModelFile& file, const Progress& progress, VerifyReport& report) {
  std::uint64_t done_bytes = 0;
  std::size_t num_unnamed = 0;
  for (const TensorInfo& tensor : file.tensors()) {
    CICADA_ASSIGN(const BadNumbers bad, scan(file, tensor, progress, done_bytes));
    if (bad.num_nan + bad.num_infinite == 0) continue;
    if (report.problems.size() >= kMaxNamedTensors) {
      ++num_unnamed;
      continue;
    }
    report.problems.push_back(fmt::format(
        "tensor {}: {} NaN and {} infinite values of {}, the first at element {}",
        quote(tensor.name), bad.num_nan, bad.num_infinite, tensor.num_elements(), bad.first));
  }
  if (num_unnamed > 0) {
    report.problems.push_back(
        fmt::format("{} more tensors with NaN or infinite values", num_unnamed));
  }
  return {};
}

// Safetensors files cannot hold such bytes: their reader refuses holes.
Result<void> check_trailing_bytes(const ModelFile& file, VerifyReport& report) {
  if (file.container() != Container::kGguf || file.tensors().empty()) return {};
  std::uint64_t end = 0;
  for (const TensorInfo& tensor : file.tensors()) {
    end = std::max(end, tensor.offset_bytes + tensor.size_bytes);
  }
  CICADA_ASSIGN(const std::uint64_t alignment, gguf_alignment(file.metadata()));
  const std::uint64_t padded = end + (alignment - end % alignment) % alignment;
  if (file.size_bytes() > padded) {
    report.problems.push_back(fmt::format("{} bytes behind the last tensor belong to nothing",
                                          file.size_bytes() - padded));
  }
  return {};
}

Result<void> check_digest(const std::string& path, const std::string& expected,
                          const Progress& progress, std::uint64_t before_bytes,
                          VerifyReport& report) {
  CICADA_ASSIGN(report.sha256,
                platform::sha256_file(path, [&progress, before_bytes](std::uint64_t done) {
                  return progress.at(before_bytes + done).has_value();
                }));
  if (*report.sha256 != expected) {
    report.problems.push_back(
        fmt::format("SHA-256 is {}, {} is expected", *report.sha256, expected));
  }
  return {};
}

}  // namespace

Result<VerifyReport> verify(const std::string& path, const VerifyOptions& options) {
  VerifyReport report;
  std::string expected;
  if (options.sha256) {
    CICADA_ASSIGN(expected, parse_sha256(*options.sha256));
  }
  const auto file = ModelFile::open(path);
  if (!file && file.error().code() != Code::kCorrupt && file.error().code() != Code::kUnsupported) {
    return fail(file.error());
  }
  const std::uint64_t file_bytes = file ? file->size_bytes() : 0;
  const Progress progress(options, file_bytes);
  if (file) {
    CICADA_TRY(check_trailing_bytes(*file, report));
    CICADA_TRY(check_numbers(*file, progress, report));
  } else {
    report.problems.push_back(file.error().to_string());
  }
  if (options.sha256) CICADA_TRY(check_digest(path, expected, progress, file_bytes, report));
  return report;
}

}  // namespace cicada::formats
