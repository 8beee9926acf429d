// How writers get tensor data: piece by piece, so that memory stays bounded whatever the size.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"
#include "cicada/platform/file.h"

namespace cicada::formats {

// Takes the next bytes of a tensor; an error stops the writing.
using ByteSink = std::function<Result<void>(std::span<const std::byte> bytes)>;

// Hands all bytes of tensor `index` of the writer's list to the sink, in order, in pieces of any
// size. Errors are passed on.
using TensorSource = std::function<Result<void>(std::size_t index, const ByteSink& sink)>;

// Writes the bytes of one tensor from its source.
// Errors: the source's; kInternal when it gives too few or too many bytes; kIo.
Result<void> write_tensor(platform::AtomicFileWriter& out, const TensorInfo& tensor,
                          std::size_t index, const TensorSource& source);

}  // namespace cicada::formats
