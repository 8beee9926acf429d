#include "cicada/cli/kv_loss.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "cicada/base/text.h"
#include "cicada/catalog/pull.h"
#include "cicada/cli/messages.h"
#include "cicada/engine/kv_gate.h"
#include "cicada/platform/file.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/sha256.h"
#include "cicada/platform/terminal.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::cli {
namespace {

constexpr std::uint64_t kMostRecordBytes = 64;

// Where the loss of this file and format is remembered: under what it depends on. Errors: kIo.
Result<std::string> record_path(const LoadedModel& loaded) {
  const std::string& path = loaded.file->path();
  std::error_code error;
  const std::string whole = std::filesystem::canonical(path, error).string();
  if (error) return fail(Code::kIo, "{}: {}", path, error.message());
  const bool is_folder = std::filesystem::is_directory(whole, error);
  const auto bytes = is_folder ? 0 : std::filesystem::file_size(whole, error);
  const auto time = std::filesystem::last_write_time(whole, error).time_since_epoch().count();
  const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}", whole, bytes, time,
                                      loaded.model->numerics_id(), engine::kv_gate_text());
  CICADA_ASSIGN(const std::string hash, platform::sha256_hex(std::as_bytes(std::span(key))));
  CICADA_ASSIGN(const std::string models, catalog::models_folder());
  return (std::filesystem::path(models).parent_path() / "kv-loss" / hash).string();
}

std::optional<double> remembered(const std::string& path) {
  std::error_code not_there;
  if (!std::filesystem::is_regular_file(path, not_there)) return std::nullopt;
  const auto text = platform::read_file(path, kMostRecordBytes);
  if (!text) return std::nullopt;
  const auto loss = whole_text_number<double>(*text);
  if (!loss || !std::isfinite(*loss) || std::signbit(*loss)) return std::nullopt;
  return loss;
}

// A loss that cannot be remembered is measured again the next time.
void remember(const std::string& path, double loss) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  auto writer = platform::AtomicFileWriter::create(path);
  if (writer && writer->write(fmt::format("{:.9g}", loss))) (void)writer->finish();
}

Result<double> measured_or_remembered(const LoadedModel& loaded, const KvArguments& arguments) {
  const auto path = record_path(loaded);
  if (path) {
    if (const auto loss = remembered(*path)) return *loss;
  }
  CICADA_ASSIGN(const auto tokenizer, tokenizer::Tokenizer::create(*loaded.file));
  platform::Progress progress(STDERR_FILENO);
  progress.update(fmt::format("measuring what --kv {} costs this model", arguments.type));
  const model::KvFormat format = loaded.model->kv_format();
  const auto loss = engine::measure_kv_loss(*loaded.model, *loaded.pool, *tokenizer, format,
                                            platform::interrupted);
  progress.clear();
  if (!loss && loss.error().code() == Code::kCancelled) {
    return fail(Code::kCancelled, "stopped while measuring what --kv {} costs", arguments.type);
  }
  CICADA_TRY(loss);
  if (path) remember(*path, loss->divergence);
  return loss->divergence;
}

Result<double> loss_of(const LoadedModel& loaded, const KvArguments& arguments) {
  // The loss is that of the type alone, with every key read.
  const model::KvPolicy policy = loaded.model->kv_policy();
  loaded.model->use_policy({});
  auto loss = measured_or_remembered(loaded, arguments);
  loaded.model->use_policy(policy);
  return loss;
}

}  // namespace

Result<std::optional<double>> check_kv_loss(const LoadedModel& loaded,
                                            const KvArguments& arguments) {
  const auto& layers = loaded.model->kv_format().layers;
  const bool is_f16 = std::all_of(layers.begin(), layers.end(), [](const kv::LayerFormat& layer) {
    return layer == kv::LayerFormat();
  });
  if (is_f16) return std::optional<double>();
  CICADA_ASSIGN(const double loss, loss_of(loaded, arguments));
  if (loss <= engine::kMostKvLoss) return std::optional(loss);
  const std::string figure =
      fmt::format("--kv {} moves this model by {:.4f} nats a token, more than the {} allowed",
                  arguments.type, loss, engine::kMostKvLoss);
  if (!arguments.force) {
    return fail(Code::kInvalidArgument, "{}; a wider type loses less, --kv-force takes this one",
                figure);
  }
  complain(figure);
  return std::optional(loss);
}

}  // namespace cicada::cli
