// Fuzzes the safetensors container and config.json: the first byte says which of the two follows.
// Accepted containers cover their data; an accepted config.json survives being written again.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cicada/base/check.h"
#include "cicada/formats/hf_config.h"
#include "cicada/formats/hf_names.h"
#include "cicada/formats/safetensors_layout.h"

namespace {

using cicada::formats::TensorInfo;

void fuzz_container(std::span<const std::byte> bytes) {
  const auto tensors = cicada::formats::parse_safetensors(bytes);
  if (!tensors) return;
  std::uint64_t covered = 0;
  for (const TensorInfo& tensor : *tensors) {
    CICADA_CHECK(tensor.offset_bytes <= bytes.size(), "a tensor begins inside the file");
    CICADA_CHECK(tensor.size_bytes <= bytes.size() - tensor.offset_bytes, "and ends there");
    covered += tensor.size_bytes;
    const auto name = cicada::formats::hf_to_gguf_name(tensor.name);
    if (name) {
      CICADA_CHECK(cicada::formats::gguf_to_hf_name(*name).has_value(), "names go both ways");
    }
  }
  CICADA_CHECK(covered <= bytes.size(), "tensors do not overlap");
}

void fuzz_config(std::string_view text) {
  const auto config = cicada::formats::read_hf_config(text);
  if (!config) return;
  cicada::formats::HfConfigFacts facts;
  facts.vocab_size = 1;
  const auto written = cicada::formats::write_hf_config(config->metadata, facts);
  if (!written) return;  // heads that are odd or rotated in part
  const auto again = cicada::formats::read_hf_config(*written);
  CICADA_CHECK(again.has_value(), "what is written can be read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    fuzz_container(std::as_bytes(rest));
  } else {
    fuzz_config({reinterpret_cast<const char*>(rest.data()), rest.size()});
  }
  return 0;
}
