#include "cicada/catalog/catalog.h"

#include <filesystem>
#include <system_error>

namespace cicada::catalog {
namespace {

// Nobody names a model like this, so a message about model names would only confuse.
bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".gguf") ||
         text.ends_with(".safetensors");
}

}  // namespace

Result<std::string> resolve(const std::string& name_or_path, const PullOptions& options) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(name_or_path, error);
  if (std::filesystem::exists(status)) return name_or_path;
  const KnownModel* model = find_known_model(name_or_path);
  if (model != nullptr) return pull(*model, options);
  if (error && error != std::errc::no_such_file_or_directory) {
    return fail(Code::kIo, "{}: cannot be opened: {}", name_or_path, error.message());
  }
  if (looks_like_path(name_or_path)) {
    return fail(Code::kNotFound, "{}: no such file", name_or_path);
  }
  return fail(Code::kNotFound, "'{}': neither a file nor a known model; known are {}", name_or_path,
              known_model_names());
}

}  // namespace cicada::catalog
