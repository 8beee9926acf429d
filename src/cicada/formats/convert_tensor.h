// One tensor's way through a conversion: rows in another order, elements in another type, in
// pieces. Threads: callable from several threads.
#pragma once

#include <cstdint>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"
#include "cicada/formats/rope_rows.h"
#include "cicada/formats/tensor_source.h"
#include "cicada/tensor/dtype.h"

namespace cicada::formats {

struct TensorWork {
  const TensorInfo* in = nullptr;  // borrowed from the input file
  tensor::DType to = tensor::DType::kF32;
  RowOrder order = RowOrder::kKeep;
  std::uint64_t head_dim = 0;  // rows of a head; only for another order
};

// Hands the converted bytes to `sink` in pieces of at most about a megabyte; working memory is of
// that order whatever the shape. Where the type stays, bytes are copied as they are.
// Preconditions: `to` can be quantised or is the input's own; rows are whole blocks of both types.
// Errors: the sink's. `num_overflowed` counts finite values that became infinite or NaN.
Result<void> convert_tensor(const ModelFile& file, const TensorWork& work, const ByteSink& sink,
                            std::uint64_t& num_overflowed);

}  // namespace cicada::formats
