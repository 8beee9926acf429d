// The models that are known by name: where their bytes come from and what they must hash to.
// Threads: constant after first use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cicada::catalog {

// One piece of a model file, as it lies in a wheel.
struct ModelPart {
  std::string package;  // name in the Python package index
  std::string version;
  std::string member;  // path inside the wheel
  std::uint64_t size_bytes = 0;
};

struct KnownModel {
  std::string name;              // what -m takes; also the file's name without ".gguf"
  std::string title;             // for people
  std::string terms;             // licence or terms of use, one sentence
  std::string sha256;            // of the parts joined in order, 64 lower-case hex digits
  std::vector<ModelPart> parts;  // in order, not empty

  std::uint64_t size_bytes() const;
};

const std::vector<KnownModel>& known_models();

// The model of that name, or null. Valid for the rest of the process.
const KnownModel* find_known_model(std::string_view name);

// "smollm2, gemma3-270m, …", for messages.
std::string known_model_names();

}  // namespace cicada::catalog
