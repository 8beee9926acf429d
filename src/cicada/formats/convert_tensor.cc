#include "cicada/formats/convert_tensor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cicada/tensor/dequantize.h"
#include "cicada/tensor/quantize.h"

namespace cicada::formats {
namespace {

using tensor::DType;

// A multiple of every block length, so that a piece of a row is whole blocks of any type.
constexpr std::uint64_t kPieceElements = std::uint64_t{1} << 15;
constexpr std::size_t kFlushBytes = std::size_t{1} << 20;

class TensorConverter {
 public:
  TensorConverter(const TensorWork& work, const ByteSink& sink, std::uint64_t& num_overflowed)
      : from_(work.in->dtype), to_(work.to), sink_(sink), num_overflowed_(num_overflowed) {}

  // `elements` in a run, whole blocks of both types.
  Result<void> add(std::span<const std::byte> bytes, std::uint64_t elements) {
    while (elements > 0) {
      const auto piece = static_cast<std::size_t>(std::min(elements, kPieceElements));
      const std::size_t piece_bytes = tensor::row_bytes(from_, piece);
      append(bytes.first(piece_bytes), piece);
      if (out_.size() >= kFlushBytes) CICADA_TRY(flush());
      bytes = bytes.subspan(piece_bytes);
      elements -= piece;
    }
    return {};
  }

  Result<void> flush() {
    if (out_.empty()) return {};
    CICADA_TRY(sink_(out_));
    out_.clear();
    return {};
  }

 private:
  void append(std::span<const std::byte> bytes, std::size_t elements) {
    const std::size_t begin = out_.size();
    if (from_ == to_) {
      out_.insert(out_.end(), bytes.begin(), bytes.end());
      return;
    }
    values_.resize(elements);
    tensor::dequantize_row(from_, bytes, values_);
    out_.resize(begin + tensor::row_bytes(to_, elements));
    const std::span<std::byte> encoded = std::span(out_).subspan(begin);
    tensor::quantize_row(to_, values_, encoded);
    if (to_ != DType::kF32) count_overflows(encoded);
  }

  // What is read back decides: a block type may lose numbers to a scale that overflows, and to a
  // neighbour that is infinite or NaN.
  void count_overflows(std::span<const std::byte> encoded) {
    read_back_.resize(values_.size());
    tensor::dequantize_row(to_, encoded, read_back_);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (std::isfinite(values_[i]) && !std::isfinite(read_back_[i])) ++num_overflowed_;
    }
  }

  DType from_;
  DType to_;
  const ByteSink& sink_;
  std::uint64_t& num_overflowed_;
  std::vector<float> values_;
  std::vector<float> read_back_;
  std::vector<std::byte> out_;
};

}  // namespace

Result<void> convert_tensor(const ModelFile& file, const TensorWork& work, const ByteSink& sink,
                            std::uint64_t& num_overflowed) {
  const TensorInfo& in = *work.in;
  const std::span<const std::byte> bytes = file.tensor_bytes(in);
  TensorConverter converter(work, sink, num_overflowed);
  if (work.order == RowOrder::kKeep) {
    CICADA_TRY(converter.add(bytes, in.num_elements()));
    return converter.flush();
  }
  // A bias of q or k is one element a row.
  const std::uint64_t rows = in.shape.front();
  const std::uint64_t row_elements = in.num_elements() / rows;
  const auto row_bytes = static_cast<std::size_t>(in.size_bytes / rows);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto source = static_cast<std::size_t>(source_row(work.order, work.head_dim, row));
    CICADA_TRY(converter.add(bytes.subspan(source * row_bytes, row_bytes), row_elements));
  }
  return converter.flush();
}

}  // namespace cicada::formats
