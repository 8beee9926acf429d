#include "cicada/formats/model_file.h"

namespace cicada::formats {

Result<ModelFile> read_safetensors(platform::MappedFile file) {
  return fail(Code::kUnsupported, "{}: safetensors files are not read yet", file.path());
}

}  // namespace cicada::formats
