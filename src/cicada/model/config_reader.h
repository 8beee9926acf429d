// Reads "<architecture>.<key>" metadata with bounds; the first problem is kept and reported once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"
#include "cicada/model/config.h"

namespace cicada::model {

class ConfigReader {
 public:
  ConfigReader(const formats::ModelFile& file, std::string architecture)
      : file_(&file), architecture_(std::move(architecture)) {}

  const formats::ModelFile& file() const { return *file_; }

  // A whole number in [low, high]; without a fallback the key must be there.
  std::uint32_t count(std::string_view key, std::uint32_t low, std::uint32_t high,
                      std::optional<std::uint32_t> fallback = std::nullopt);
  // A finite number in [low, high].
  double number(std::string_view key, double low, double high,
                std::optional<double> fallback = std::nullopt);
  std::string text(std::string_view key, std::string_view fallback);
  bool has(std::string_view key) const;

  void refuse(Error error) {
    if (!error_) error_ = std::move(error);
  }
  const std::optional<Error>& error() const { return error_; }

  // The fields that every decoder shares: widths, heads, RoPE, norms, vocabulary. Layers are filled
  // alike from rope.freq_base and rope.scaling.
  Config common();

 private:
  // What positions are divided by: 1 where nothing is scaled.
  double rope_factor();
  std::string full_key(std::string_view key) const;
  // What was read under `key`, or the fallback; `low` after a refusal.
  template <class Number>
  Number checked(const std::string& key, Result<std::optional<Number>> value, Number low,
                 Number high, std::optional<Number> fallback);
  void check_tensors_against(Config& config);

  const formats::ModelFile* file_;
  std::string architecture_;
  std::optional<Error> error_;
};

}  // namespace cicada::model
