// Writes GGUF v3, little-endian.
// Threads: callable from several threads on distinct files.
#pragma once

#include <vector>

#include "cicada/base/result.h"
#include "cicada/formats/metadata.h"
#include "cicada/formats/model_file.h"
#include "cicada/formats/tensor_source.h"
#include "cicada/platform/file.h"

namespace cicada::formats {

// Writes a whole file: metadata, tensor table, data. Of each tensor name, dtype and shape count;
// offsets are assigned here, in list order. The caller calls out.finish().
// Errors: kInvalidArgument when the reader would refuse what is asked (empty or double names,
// shapes, alignment); kInternal when the source gives too few or too many bytes; the source's; kIo.
Result<void> write_gguf(platform::AtomicFileWriter& out, const Metadata& metadata,
                        const std::vector<TensorInfo>& tensors, const TensorSource& source);

}  // namespace cicada::formats
