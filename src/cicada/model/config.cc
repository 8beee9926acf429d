#include "cicada/model/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cicada/model/arch/architectures.h"

namespace cicada::model {

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  names.reserve(kArchitectures.size());
  for (const Architecture& architecture : kArchitectures) names.push_back(architecture.name);
  return names;
}

Result<Config> read_config(const formats::ModelFile& file) {
  CICADA_ASSIGN(const auto name, file.metadata().get_string("general.architecture"));
  if (!name) return fail(Code::kCorrupt, "key general.architecture is missing");
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name != *name) continue;
    ConfigReader reader(file, std::string(*name));
    Config config = architecture.read(reader);
    if (reader.error()) return fail(*reader.error());
    return config;
  }
  // The name comes from the file: bounded before it is shown.
  return fail(Code::kUnsupported, "architecture '{}' is not known; known are: {}",
              name->substr(0, 64), fmt::join(known_architectures(), ", "));
}

std::uint32_t rel_pos_bucket(std::uint32_t distance, std::uint32_t rel_pos_dim,
                             std::uint32_t max_distance) {
  const std::uint32_t half = rel_pos_dim / 2;
  if (distance < half) return distance;
  const double h = half;
  const double steps = std::floor(h * std::log(distance / h) / std::log(max_distance / h));
  const double bucket = std::min<double>(rel_pos_dim - 1, h + steps);
  return static_cast<std::uint32_t>(bucket);
}

}  // namespace cicada::model
