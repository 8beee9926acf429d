// For tests that need what the repository does not hold: downloaded models and the data beside the
// checkout. Without them the tests skip and say what is missing.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace cicada::tokenizer {

inline std::filesystem::path models_folder() {
  if (const char* home = std::getenv("CICADA_HOME")) return std::filesystem::path(home) / "models";
  const char* user = std::getenv("HOME");
  return std::filesystem::path(user == nullptr ? "." : user) / ".cache/cicada/models";
}

// `source_dir`: the checkout.
inline std::filesystem::path data_folder(const char* source_dir) {
  return std::filesystem::path(source_dir) / "../shared/data";
}

// Nothing when the file does not exist.
inline std::optional<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace cicada::tokenizer
