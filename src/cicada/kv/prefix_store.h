// Pages of prefixes in a folder, so that another process or a later one finds them again.
//
// A page is a file named by a key: the SHA-256 of everything that its bits depend on (the model,
// numerics_id, the layout of pages, the salt, the key of the page before it, its ids). Another
// model, another way to compute or another layout leads to other names, so nothing foreign is ever
// asked for. What is read is believed only when size, header and checksum are right; else it is one
// line in the log, and the page is computed. Format: docs/formats/prefix-cache.md.
//
// Writing stops for good at the first failure (a full disk), with one line. The folder is kept
// below a size by removing the files that were not used for longest. Processes may share it.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/kv/layout.h"

namespace cicada::kv {

using Pieces = std::span<const std::span<const std::byte>>;

struct PrefixStoreOptions {
  std::string folder;          // made where it is missing, for this user only
  std::string model_identity;  // of the model's bytes: never equal for two models
  std::string numerics_id;
  std::uint64_t max_bytes = std::uint64_t{4} << 30;  // of all files; the newest stay
  // Takes a line about what was ignored or stopped; may be empty.
  std::function<void(std::string_view)> log;
  // Puts a file in its place, whole or not at all; tests have one that fails. Empty: as it should.
  std::function<Result<void>(const std::string& path, Pieces pieces)> write;
};

class PrefixStore {
 public:
  // Errors: kInvalidArgument when the folder is something else; kIo when it cannot be made or read.
  static Result<PrefixStore> open(const KvLayout& layout, PrefixStoreOptions options);

  // Key of the pages that begin a text, and of the page with these ids behind another.
  Result<std::string> root_key(std::string_view salt) const;
  static Result<std::string> next_key(std::string_view key, std::span<const TokenId> ids);

  // Where a page lies, or would.
  std::string path(std::string_view key) const;
  bool contains(std::string_view key) const;

  // The page behind a key. `depth` is its index in the text: deeper pages are removed first.
  // Shapes: page [page_bytes]. Returns false, and says why once, when there is none to be trusted;
  // the page then holds anything.
  bool load(std::string_view key, std::span<const TokenId> ids, std::size_t depth,
            std::span<std::byte> page);

  // Writes a page unless it is there.
  void save(std::string_view key, std::span<const TokenId> ids, std::size_t depth,
            std::span<const std::byte> page);

  bool is_writable() const { return is_writable_; }

  // The pages that are loaded and saved from now on are those of another text.
  void begin_text() { use_time_ = std::filesystem::file_time_type::clock::now(); }

 private:
  PrefixStore(const KvLayout& layout, PrefixStoreOptions options);

  std::string header(std::string_view key, std::span<const TokenId> ids) const;
  Result<void> read_page(const std::string& path, std::string_view key,
                         std::span<const TokenId> ids, std::span<std::byte> page) const;
  Result<void> write_page(const std::string& path, std::string_view key,
                          std::span<const TokenId> ids, std::span<const std::byte> page);
  Result<void> make_room(std::uint64_t bytes);
  void mark_used(const std::string& path, std::size_t depth) const;
  void log(std::string_view line) const;

  PrefixStoreOptions options_;
  std::string identity_;  // what every key depends on
  std::size_t page_bytes_ = 0;
  std::uint64_t stored_bytes_ = 0;  // as far as this process knows
  bool is_writable_ = true;
  std::set<std::string, std::less<>> damaged_;  // keys of files that may be replaced
  std::filesystem::file_time_type use_time_ = std::filesystem::file_time_type::clock::now();
};

}  // namespace cicada::kv
