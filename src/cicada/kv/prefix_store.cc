#include "cicada/kv/prefix_store.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "cicada/platform/file.h"
#include "cicada/platform/sha256.h"

namespace cicada::kv {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::uint32_t kFormatVersion = 1;
constexpr std::string_view kMagic = "CICADAKV";
constexpr std::string_view kEnding = ".page";
constexpr std::size_t kDigestDigits = 64;
// Beyond this many damaged files their pages are no longer written anew.
constexpr std::size_t kMostDamaged = 4096;

template <typename T>
void append(std::string& text, T number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Parts are told apart by their lengths, so that no two lists give the same text.
void append_part(std::string& text, std::string_view part) {
  append(text, static_cast<std::uint64_t>(part.size()));
  text += part;
}

void append_ids(std::string& text, std::span<const TokenId> ids) {
  append(text, static_cast<std::uint64_t>(ids.size()));
  for (const TokenId id : ids) append(text, id.value);
}

std::string describe(const KvLayout& layout) {
  const KvShape& shape = layout.shape();
  std::string text =
      fmt::format("pages of {} tokens, {} bytes; {} heads of {} and {};", layout.page_tokens(),
                  layout.page_bytes(), shape.num_kv_heads, shape.head_dim, shape.value_dim);
  for (const LayerFormat& format : shape.layers) {
    text += fmt::format(" {}/{}", kernels::cache_type_name(format.keys),
                        kernels::cache_type_name(format.values));
  }
  return text;
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// A file of ours, by its name.
bool is_page_name(std::string_view name) {
  if (name.size() != kDigestDigits + kEnding.size() || !name.ends_with(kEnding)) return false;
  return std::all_of(name.begin(), name.begin() + kDigestDigits,
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

struct PageFile {
  fs::path path;
  fs::file_time_type used;
  std::uint64_t bytes = 0;
};

// Every page in the folder. What goes away meanwhile is left out.
Result<std::vector<PageFile>> list_pages(const std::string& folder) {
  std::vector<PageFile> files;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code gone;
    PageFile file{.path = at->path(), .used = {}};
    if (!is_page_name(file.path.filename().string()) || !at->is_regular_file(gone)) continue;
    file.bytes = at->file_size(gone);
    if (!gone) file.used = at->last_write_time(gone);
    if (!gone) files.push_back(std::move(file));
  }
  if (error) return fail(Code::kIo, "{}: {}", folder, error.message());
  return files;
}

Result<void> write_atomically(const std::string& path, Pieces pieces) {
  CICADA_ASSIGN(platform::AtomicFileWriter writer, platform::AtomicFileWriter::create(path));
  for (const std::span<const std::byte> piece : pieces) CICADA_TRY(writer.write(piece));
  // A page that a crash leaves incomplete is found out by its checksum.
  return writer.finish(platform::AtomicFileWriter::Flush::kLeaveToSystem);
}

Result<void> make_folder(const std::string& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (fs::is_directory(status)) return {};
  if (fs::exists(status)) {
    return fail(Code::kInvalidArgument, "{}: is a file, a folder for the prefix cache is needed",
                folder);
  }
  if (fs::create_directories(folder, error); !error) {
    // Prompts can be read in it.
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  if (error) return fail(Code::kIo, "{}: cannot be made: {}", folder, error.message());
  return {};
}

}  // namespace

Result<PrefixStore> PrefixStore::open(const KvLayout& layout, PrefixStoreOptions options) {
  CICADA_TRY(make_folder(options.folder));
  CICADA_ASSIGN(const std::vector<PageFile> files, list_pages(options.folder));
  if (!options.write) options.write = write_atomically;
  PrefixStore store(layout, std::move(options));
  for (const PageFile& file : files) store.stored_bytes_ += file.bytes;
  // More than is allowed now; a folder that may only be read stays as it is.
  if (store.stored_bytes_ > store.options_.max_bytes) (void)store.make_room(0);
  return store;
}

PrefixStore::PrefixStore(const KvLayout& layout, PrefixStoreOptions options)
    : options_(std::move(options)), page_bytes_(layout.page_bytes()) {
  append(identity_, kFormatVersion);
  append_part(identity_, options_.model_identity);
  append_part(identity_, options_.numerics_id);
  append_part(identity_, describe(layout));
}

Result<std::string> PrefixStore::root_key(std::string_view salt) const {
  std::string text = identity_;
  append_part(text, salt);
  return platform::sha256_hex(as_bytes(text));
}

Result<std::string> PrefixStore::next_key(std::string_view key, std::span<const TokenId> ids) {
  std::string text;
  append_part(text, key);
  append_ids(text, ids);
  return platform::sha256_hex(as_bytes(text));
}

std::string PrefixStore::path(std::string_view key) const {
  return fmt::format("{}/{}{}", options_.folder, key, kEnding);
}

bool PrefixStore::contains(std::string_view key) const {
  std::error_code error;
  return !damaged_.contains(key) && fs::exists(path(key), error);
}

// All that stands before the page: a file with another beginning is not the one that was meant.
std::string PrefixStore::header(std::string_view key, std::span<const TokenId> ids) const {
  std::string text(kMagic);
  append(text, kFormatVersion);
  append_part(text, key);
  append_ids(text, ids);
  append(text, static_cast<std::uint64_t>(page_bytes_));
  return text;
}

Result<void> PrefixStore::read_page(const std::string& path, std::string_view key,
                                    std::span<const TokenId> ids, std::span<std::byte> page) const {
  const std::string expected = header(key, ids);
  std::string found(expected.size(), '\0');
  std::string digest(kDigestDigits, '\0');
  const std::span<std::byte> pieces[] = {std::as_writable_bytes(std::span(found)), page,
                                         std::as_writable_bytes(std::span(digest))};
  CICADA_TRY(platform::read_exactly(path, pieces));
  if (found != expected) {
    return fail(Code::kCorrupt, "{}: its header is not that of the page of this name", path);
  }
  CICADA_ASSIGN(const std::string computed, platform::sha256_hex(page));
  if (digest != computed) return fail(Code::kCorrupt, "{}: its checksum is wrong", path);
  return {};
}

bool PrefixStore::load(std::string_view key, std::span<const TokenId> ids, std::size_t depth,
                       std::span<std::byte> page) {
  const std::string file = path(key);
  const auto read = read_page(file, key, ids, page);
  if (read) {
    mark_used(file, depth);
    return true;
  }
  if (read.error().code() == Code::kNotFound) return false;
  if (damaged_.size() < kMostDamaged) damaged_.emplace(key);
  log(fmt::format("prefix cache: {}; it is ignored", read.error().to_string()));
  return false;
}

void PrefixStore::save(std::string_view key, std::span<const TokenId> ids, std::size_t depth,
                       std::span<const std::byte> page) {
  if (!is_writable_) return;
  const std::string file = path(key);
  if (contains(key)) return mark_used(file, depth);
  std::error_code error;
  if (fs::is_directory(file, error)) return;  // somebody's; load() has said so
  const auto written = write_page(file, key, ids, page);
  if (!written) {
    is_writable_ = false;
    log(fmt::format("prefix cache: {}; nothing more is written", written.error().to_string()));
    return;
  }
  if (const auto damaged = damaged_.find(key); damaged != damaged_.end()) damaged_.erase(damaged);
  mark_used(file, depth);
}

Result<void> PrefixStore::write_page(const std::string& path, std::string_view key,
                                     std::span<const TokenId> ids,
                                     std::span<const std::byte> page) {
  const std::string begin = header(key, ids);
  CICADA_ASSIGN(const std::string digest, platform::sha256_hex(page));
  const std::uint64_t bytes = begin.size() + page.size() + digest.size();
  CICADA_TRY(make_room(bytes));
  const std::span<const std::byte> pieces[] = {as_bytes(begin), page, as_bytes(digest)};
  CICADA_TRY(options_.write(path, pieces));
  stored_bytes_ += bytes;
  return {};
}

// Removes what was not used for longest until `bytes` more are within the limit. Two processes that
// do this at once choose the same files.
Result<void> PrefixStore::make_room(std::uint64_t bytes) {
  if (bytes > options_.max_bytes) {
    return fail(Code::kOutOfCapacity, "a page of {} bytes, all may have {}", bytes,
                options_.max_bytes);
  }
  if (stored_bytes_ <= options_.max_bytes - bytes) return {};
  CICADA_ASSIGN(std::vector<PageFile> files, list_pages(options_.folder));
  stored_bytes_ = 0;
  for (const PageFile& file : files) stored_bytes_ += file.bytes;
  std::sort(files.begin(), files.end(), [](const PageFile& a, const PageFile& b) {
    return a.used != b.used ? a.used < b.used : a.path < b.path;
  });
  // A tenth more than needed, so that the folder is not listed for every page.
  const std::uint64_t target = options_.max_bytes - std::max(bytes, options_.max_bytes / 10);
  for (const PageFile& file : files) {
    if (stored_bytes_ <= target) break;
    std::error_code error;
    fs::remove(file.path, error);
    if (error) return fail(Code::kIo, "{}: {}", file.path.string(), error.message());
    stored_bytes_ -= file.bytes;
  }
  return {};
}

// Pages of one text are used at one time, however long it takes to read or write them; deeper ones
// count as a little older, since without the pages before them they would be of no use.
void PrefixStore::mark_used(const std::string& path, std::size_t depth) const {
  std::error_code error;  // a folder that may only be read: then ages stay
  fs::last_write_time(path, use_time_ - std::chrono::microseconds(static_cast<std::int64_t>(depth)),
                      error);
}

void PrefixStore::log(std::string_view line) const {
  if (options_.log) options_.log(line);
}

}  // namespace cicada::kv
