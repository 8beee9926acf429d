// Writes safetensors files.
// Threads: callable from several threads on distinct files.
#pragma once

#include <vector>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"
#include "cicada/formats/tensor_source.h"
#include "cicada/platform/file.h"

namespace cicada::formats {

// Writes a whole file. Of each tensor name (as it shall stand in the file), dtype (f32, f16 or
// bf16) and shape count; data follows in list order without gaps, the first on a multiple of 8. The
// caller calls out.finish().
// Errors: kUnsupported for other types; kInvalidArgument for empty or double names and shapes;
// kInternal when the source gives too few or too many bytes; the source's; kIo.
Result<void> write_safetensors(platform::AtomicFileWriter& out,
                               const std::vector<TensorInfo>& tensors, const TensorSource& source);

}  // namespace cicada::formats
