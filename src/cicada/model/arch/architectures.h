// The table of architectures. Adding one: write arch/<name>.cc with a function that turns metadata
// into a Config, and add its line here (docs/adding-a-model.md).
#pragma once

#include <array>
#include <string_view>

#include "cicada/model/config_reader.h"

namespace cicada::model {

Config read_llama(ConfigReader& reader);
Config read_qwen2(ConfigReader& reader);
Config read_gemma3(ConfigReader& reader);
Config read_cicada_v1(ConfigReader& reader);

struct Architecture {
  std::string_view name;                 // general.architecture
  Config (*read)(ConfigReader& reader);  // problems go to reader.refuse()
};

inline constexpr std::array<Architecture, 4> kArchitectures = {{
    {"llama", read_llama},
    {"qwen2", read_qwen2},
    {"gemma3", read_gemma3},
    {"cicada-v1", read_cicada_v1},
}};

}  // namespace cicada::model
