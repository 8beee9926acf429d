// For tests only: builds GGUF bytes by hand, right or deliberately wrong, and opens them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/formats/model_file.h"

namespace cicada::formats {

// Appends little-endian numbers and GGUF strings.
class Bytes {
 public:
  template <typename T>
  Bytes& number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  Bytes& raw(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }
  Bytes& string(std::string_view text) {
    return number(static_cast<std::uint64_t>(text.size())).raw(text);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class GgufBuilder {
 public:
  // Fields to get wrong on purpose.
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::optional<std::uint64_t> num_tensors;
  std::optional<std::uint64_t> num_keys;
  std::uint64_t alignment = 32;  // of the layout; write_alignment() states it in the file
  bool pad_last_tensor = true;

  // A key with its value as raw bytes: type number, then the value.
  GgufBuilder& key(std::string_view name, MetaType type, const Bytes& value) {
    keys_.string(name).number(static_cast<std::uint32_t>(type)).raw(value.text());
    ++key_count_;
    return *this;
  }
  GgufBuilder& key_u32(std::string_view name, std::uint32_t value) {
    return key(name, MetaType::kU32, Bytes().number(value));
  }
  GgufBuilder& key_f32(std::string_view name, float value) {
    return key(name, MetaType::kF32, Bytes().number(value));
  }
  GgufBuilder& key_string(std::string_view name, std::string_view value) {
    return key(name, MetaType::kString, Bytes().string(value));
  }
  GgufBuilder& key_strings(std::string_view name, const std::vector<std::string>& values) {
    Bytes bytes = array_head(MetaType::kString, values.size());
    for (const std::string& value : values) bytes.string(value);
    return key(name, MetaType::kArray, bytes);
  }
  template <typename T>
  GgufBuilder& key_array(std::string_view name, MetaType type, const std::vector<T>& values) {
    Bytes bytes = array_head(type, values.size());
    for (const T value : values) bytes.number(value);
    return key(name, MetaType::kArray, bytes);
  }
  GgufBuilder& write_alignment() {
    return key_u32("general.alignment", static_cast<std::uint32_t>(alignment));
  }

  // A tensor behind the last one; `dims` innermost first, as GGUF stores them. `offset` overrides.
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& dims,
                      std::uint32_t type, std::string_view data,
                      std::optional<std::uint64_t> offset = std::nullopt) {
    pad(data_, alignment);
    table_.string(name).number(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) table_.number(dim);
    table_.number(type).number(offset.value_or(data_.size()));
    data_ += data;
    ++tensor_count_;
    return *this;
  }
  GgufBuilder& tensor_f32(std::string_view name, const std::vector<std::uint64_t>& dims,
                          const std::vector<float>& values) {
    return tensor(name, dims, 0,
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }

  std::string build() const {
    std::string file = Bytes()
                           .raw(magic)
                           .number(version)
                           .number(num_tensors.value_or(tensor_count_))
                           .number(num_keys.value_or(key_count_))
                           .raw(keys_.text())
                           .raw(table_.text())
                           .text();
    if (tensor_count_ == 0) return file;
    pad(file, alignment);
    file += data_;
    if (pad_last_tensor) pad(file, alignment);
    return file;
  }

  static Bytes array_head(MetaType type, std::uint64_t count) {
    return Bytes().number(static_cast<std::uint32_t>(type)).number(count);
  }

 private:
  static void pad(std::string& text, std::uint64_t alignment) {
    while (text.size() % alignment != 0) text += '\0';
  }

  Bytes keys_;
  Bytes table_;
  std::string data_;
  std::uint64_t key_count_ = 0;
  std::uint64_t tensor_count_ = 0;
};

// A file in the test's own temporary folder, removed at the end.
class TempFile {
 public:
  explicit TempFile(std::string_view name, std::string_view bytes = {})
      : path_(testing::TempDir() + "/cicada_" + std::to_string(::getpid()) + "_" +
              std::string(name)) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Result<ModelFile> open_bytes(std::string_view bytes) {
  const TempFile file("open_bytes.gguf", bytes);  // the mapping outlives the name
  return ModelFile::open(file.path());
}

inline testing::AssertionResult has(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << '"' << text << "\" does not contain \"" << part << '"';
}

// The whole message of a refusal, or "" when the file was accepted.
inline std::string refusal(std::string_view bytes) {
  const auto model = open_bytes(bytes);
  return model ? std::string() : model.error().to_string();
}

}  // namespace cicada::formats
