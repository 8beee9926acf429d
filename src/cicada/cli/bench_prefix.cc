#include "cicada/cli/bench_prefix.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <vector>

#include "cicada/cli/messages.h"
#include "cicada/engine/generator.h"
#include "cicada/json/writer.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::uint64_t bytes_in(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    bytes += at->file_size(error);
  }
  return bytes;
}

// A folder that is removed with what is in it.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(fs::temp_directory_path(error_) / fmt::format("cicada-bench-{}", ::getpid())) {}
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { clear(); }

  void clear() { fs::remove_all(path_, error_); }
  std::string path() const { return path_.string(); }

 private:
  std::error_code error_;
  fs::path path_;
};

class PrefixBench {
 public:
  PrefixBench(const LoadedModel& loaded, const PrefixBenchArguments& arguments)
      : loaded_(&loaded), arguments_(&arguments) {}

  // A repetition of all three; the first, which warms up, is not kept.
  Result<void> repeat(bool is_kept) {
    const std::vector<TokenId> prefix = random_ids(arguments_->prefix);
    const std::vector<TokenId> prompt = with_tail(prefix);
    std::vector<double> times;
    CICADA_TRY(time_all(prefix, prompt, times));
    folder_.clear();
    CICADA_ASSIGN(const auto generator, create(false));
    CICADA_ASSIGN(const First check, first_token(*generator, prompt));
    if (memory_.token != check.token || disk_.token != check.token) {
      return fail(Code::kInternal,
                  "a known prefix gives token {} from memory, {} from disk, not {}",
                  memory_.token.value, disk_.token.value, check.token.value);
    }
    if (!is_kept) {
      write_.clear();
      return {};
    }
    for (std::size_t i = 0; i < times.size(); ++i) times_[i].push_back(times[i]);
    return {};
  }

  PrefixTimes result() const {
    PrefixTimes result = result_;
    result.cold_ms = median(times_[0]);
    result.memory_ms = median(times_[1]);
    result.disk_ms = median(times_[2]);
    result.write_ms = median(write_);
    result.reused_tokens = memory_.reused;
    result.disk_reused_tokens = disk_.reused;
    return result;
  }

 private:
  struct First {
    TokenId token;
    double ms = 0.0;
    std::size_t reused = 0;
  };

  Result<void> time_all(const std::vector<TokenId>& prefix, const std::vector<TokenId>& prompt,
                        std::vector<double>& times) {
    CICADA_ASSIGN(const auto first, create(true));
    CICADA_ASSIGN(const First cold, first_token(*first, with_tail(prefix)));
    if (cold.reused > 0) return fail(Code::kInternal, "a cold prompt was known");
    const auto start = Clock::now();
    first->save_prefix();
    write_.push_back(milliseconds(Clock::now() - start));
    result_.stored_bytes = bytes_in(folder_.path());
    CICADA_ASSIGN(memory_, first_token(*first, prompt));
    // The first still lives: it has not yet written the second prompt, whose tail is to be new.
    CICADA_ASSIGN(const auto second, create(true));
    CICADA_ASSIGN(disk_, first_token(*second, prompt));
    times = {cold.ms, memory_.ms, disk_.ms};
    return {};
  }

  Result<std::unique_ptr<engine::Generator>> create(bool has_folder) const {
    engine::GeneratorOptions options{.context =
                                         std::size_t{arguments_->prefix} + arguments_->tail + 1};
    if (has_folder) {
      options.prefix_store = kv::PrefixStoreOptions{
          .folder = folder_.path(), .model_identity = "bench", .log = complain};
    }
    return engine::Generator::create(*loaded_->model, *loaded_->pool, options);
  }

  static Result<First> first_token(engine::Generator& generator,
                                   const std::vector<TokenId>& prompt) {
    First first;
    const auto start = Clock::now();
    const engine::GenerateOptions options{.max_tokens = 1, .is_cancelled = platform::interrupted};
    CICADA_ASSIGN(const engine::Generation generation,
                  generator.generate(prompt, options, [&](TokenId token) {
                    first.token = token;
                    first.ms = milliseconds(Clock::now() - start);
                    return true;
                  }));
    if (generation.reason == engine::FinishReason::kCancelled) {
      return fail(Code::kCancelled, "stopped");
    }
    first.reused = generation.reused_tokens;
    return first;
  }

  std::vector<TokenId> random_ids(std::size_t count) {
    std::uniform_int_distribution<std::int32_t> id(
        0, static_cast<std::int32_t>(loaded_->model->config().vocab) - 1);
    std::vector<TokenId> ids;
    for (std::size_t i = 0; i < count; ++i) ids.emplace_back(id(random_));
    return ids;
  }

  std::vector<TokenId> with_tail(std::vector<TokenId> ids) {
    const std::vector<TokenId> tail = random_ids(arguments_->tail);
    ids.insert(ids.end(), tail.begin(), tail.end());
    return ids;
  }

  const LoadedModel* loaded_;
  const PrefixBenchArguments* arguments_;
  std::mt19937 random_{0};
  ScratchFolder folder_;
  std::vector<double> times_[3];  // cold, memory, disk
  std::vector<double> write_;
  First memory_;
  First disk_;
  PrefixTimes result_;
};

}  // namespace

Result<PrefixTimes> measure_prefix(const LoadedModel& loaded,
                                   const PrefixBenchArguments& arguments) {
  PrefixBench bench(loaded, arguments);
  platform::Progress progress(STDERR_FILENO);
  for (std::uint32_t r = 0; r <= arguments.repeats; ++r) {
    progress.update(fmt::format("repetition {} of {}", r, arguments.repeats));
    CICADA_TRY(bench.repeat(r > 0));
  }
  return bench.result();
}

std::string to_text(const PrefixTimes& times, const PrefixBenchArguments& arguments) {
  std::string text = fmt::format("first token of {} tokens, {} of them a prefix\n",
                                 arguments.prefix + arguments.tail, arguments.prefix);
  const auto add_line = [&](const char* name, double ms, std::uint64_t reused) {
    text += fmt::format("{:<8} {:>9.1f} ms, {:>5.1f} % of cold, {} tokens known\n", name, ms,
                        100 * ms / times.cold_ms, reused);
  };
  add_line("cold", times.cold_ms, 0);
  add_line("memory", times.memory_ms, times.reused_tokens);
  add_line("disk", times.disk_ms, times.disk_reused_tokens);
  return text + fmt::format("writing {} to the folder took {:.1f} ms\n",
                            platform::format_bytes(times.stored_bytes), times.write_ms);
}

std::string to_json(const PrefixTimes& times, const PrefixBenchArguments& arguments,
                    const LoadedModel& loaded) {
  json::Writer writer;
  writer.begin_object()
      .field("prefix_tokens", arguments.prefix)
      .field("tail_tokens", arguments.tail)
      .field("cold_ms", times.cold_ms)
      .field("memory_ms", times.memory_ms)
      .field("memory_share", times.memory_ms / times.cold_ms)
      .field("memory_reused_tokens", times.reused_tokens)
      .field("disk_ms", times.disk_ms)
      .field("disk_share", times.disk_ms / times.cold_ms)
      .field("disk_reused_tokens", times.disk_reused_tokens)
      .field("write_ms", times.write_ms)
      .field("stored_bytes", times.stored_bytes)
      .field("threads", loaded.pool->size())
      .field("isa", platform::name(loaded.model->level()))
      .field("numerics_id", loaded.model->numerics_id());
  return writer.end_object().take() + "\n";
}

}  // namespace cicada::cli
