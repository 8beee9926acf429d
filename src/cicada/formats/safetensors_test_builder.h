// For tests only: builds safetensors bytes by hand, right or deliberately wrong, with a
// config.json.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/formats/gguf_test_builder.h"

namespace cicada::formats {

inline std::string with_length(std::string_view header, std::string_view data = {}) {
  return Bytes().string(header).raw(data).text();
}

class SafetensorsBuilder {
 public:
  SafetensorsBuilder& tensor(std::string_view name, std::string_view dtype, std::string_view shape,
                             std::string_view data) {
    if (!entries_.empty()) entries_ += ',';
    entries_ += fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name,
                            dtype, shape, data_.size(), data_.size() + data.size());
    data_ += data;
    return *this;
  }
  SafetensorsBuilder& tensor_f32(std::string_view name, std::string_view shape,
                                 const std::vector<float>& values) {
    return tensor(name, "F32", shape,
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  std::string build() const { return with_length("{" + entries_ + "}", data_); }

 private:
  std::string entries_;
  std::string data_;
};

// A folder of the test's own, removed at the end.
class TempFolder {
 public:
  explicit TempFolder(std::string_view name)
      : path_(testing::TempDir() + "/cicada_" + std::to_string(::getpid()) + "_" +
              std::string(name)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }

  std::string at(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string put(std::string_view name, std::string_view bytes) const {
    // A new file each time: some file systems write a truncated one back to disk at once.
    std::filesystem::remove(at(name));
    std::ofstream(at(name), std::ios::binary) << bytes;
    return at(name);
  }
  std::size_t num_files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  std::string path_;
};

inline std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Heads of 4, 2 of them, 1 for k and v; embedding 8.
inline constexpr std::string_view kSmallConfig = R"({
  "model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
  "num_key_value_heads": 1, "intermediate_size": 16, "max_position_embeddings": 64,
  "vocab_size": 4, "rms_norm_eps": 1e-05, "rope_theta": 500000, "tie_word_embeddings": true,
  "hidden_act": "silu", "head_dim": null})";

}  // namespace cicada::formats
