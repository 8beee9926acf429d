// `cicada perplexity`: llama.cpp's protocol. The text is cut into chunks of ctx tokens; the first
// of each is replaced by BOS where the model wants one, and the second half is scored.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "cicada/cli/answer.h"
#include "cicada/cli/numbers.h"
#include "cicada/cli/output.h"
#include "cicada/engine/sampler.h"
#include "cicada/json/writer.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {
namespace {

struct PerplexityArguments {
  ModelArguments model;
  std::string file;
  std::uint32_t context = 512;
  std::uint32_t chunks = 0;
  std::uint32_t batch = 512;
  std::string kv = "f16";
  std::string role = "prefill";
  bool json = false;
};

struct Score {
  std::size_t tokens = 0;
  double sum = 0.0;  // of negative log likelihoods
  double sum_squares = 0.0;
  std::vector<double> chunk_nll;  // mean of each chunk

  double mean() const { return sum / static_cast<double>(tokens); }
  double perplexity() const { return std::exp(mean()); }
  // Standard error of the perplexity, from the spread of the tokens' likelihoods.
  double standard_error() const {
    if (tokens < 2) return 0.0;
    const double n = static_cast<double>(tokens);
    const double variance = std::max(0.0, sum_squares / n - mean() * mean());
    return std::sqrt(variance / (n - 1.0)) * perplexity();
  }
};

// -log softmax(logits)[target], in double.
double negative_log_likelihood(std::span<const float> logits, TokenId target) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const float logit : logits) largest = std::max(largest, static_cast<double>(logit));
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return std::log(sum) + largest -
         static_cast<double>(logits[static_cast<std::size_t>(target.value)]);
}

class Scorer {
 public:
  static Result<Scorer> create(const LoadedModel& loaded, const PerplexityArguments& arguments) {
    Scorer scorer(loaded, arguments);
    const model::WorkspaceLimits limits{.max_rows = std::min(arguments.batch, arguments.context),
                                        .max_context = arguments.context,
                                        .max_logit_rows = kHeadRows};
    CICADA_ASSIGN(scorer.executor_, model::Executor::create(*loaded.model, *loaded.pool, limits));
    const std::size_t pages = (arguments.context + kv::kPageTokens - 1) / kv::kPageTokens;
    CICADA_ASSIGN(auto pool, kv::PagePool::create(loaded.model->kv_layout(), pages));
    scorer.pages_ = std::make_unique<kv::PagePool>(std::move(pool));
    scorer.logits_.resize(kHeadRows * loaded.model->config().vocab);
    return scorer;
  }

  // Scores targets [context / 2 + 1, context) of a chunk whose first token may have been replaced.
  Result<void> score_chunk(std::span<const TokenId> input, std::span<const TokenId> targets,
                           Score& score) {
    kv::Sequence sequence(*pages_);
    CICADA_TRY(sequence.reserve(input.size()));
    kv::Sequence* const sequences[] = {&sequence};
    const std::size_t first_scored = input.size() / 2;
    const bool is_decode = arguments_->role == "decode";
    const std::size_t step = is_decode ? 1 : executor_->limits().max_rows;
    double chunk_sum = 0.0;
    std::vector<model::Row> rows;
    for (std::size_t at = 0; at < input.size(); at += step) {
      if (platform::interrupted()) return fail(Code::kCancelled, "stopped within a chunk");
      const std::size_t end = std::min(at + step, input.size());
      rows.clear();
      std::vector<TokenId> wanted;
      for (std::size_t i = at; i < end; ++i) {
        const bool is_scored = i >= first_scored && i + 1 < input.size();
        rows.push_back({.token = input[i],
                        .position = static_cast<std::int64_t>(i),
                        .sequence = 0,
                        .wants_logits = is_scored,
                        .role = is_decode ? model::Role::kDecode : model::Role::kPrefill});
        if (is_scored) wanted.push_back(targets[i + 1]);
      }
      CICADA_TRY(executor_->run(rows, sequences, {}));
      CICADA_TRY(score_rows(wanted, score, chunk_sum));
    }
    score.chunk_nll.push_back(chunk_sum / static_cast<double>(input.size() - 1 - first_scored));
    return {};
  }

 private:
  // Logits exist for this many rows at a time.
  static constexpr std::size_t kHeadRows = 16;

  Scorer(const LoadedModel& loaded, const PerplexityArguments& arguments)
      : loaded_(&loaded), arguments_(&arguments) {}

  Result<void> score_rows(const std::vector<TokenId>& wanted, Score& score, double& chunk_sum) {
    const std::size_t vocab = loaded_->model->config().vocab;
    for (std::size_t first = 0; first < wanted.size(); first += kHeadRows) {
      const std::size_t count = std::min(kHeadRows, wanted.size() - first);
      executor_->head(first, count, std::span(logits_).first(count * vocab));
      std::array<double, kHeadRows> nll{};
      loaded_->pool->run([&](std::size_t worker) {
        for (std::size_t i = worker; i < count; i += loaded_->pool->size()) {
          nll[i] = negative_log_likelihood(std::span(logits_).subspan(i * vocab, vocab),
                                           wanted[first + i]);
        }
      });
      for (std::size_t i = 0; i < count; ++i) {
        // Not finite only when the logits are not; then they say which.
        if (!std::isfinite(nll[i])) {
          CICADA_TRY(engine::check_logits(std::span(logits_).subspan(i * vocab, vocab),
                                          executor_->peak(i)));
        }
        score.sum += nll[i];
        score.sum_squares += nll[i] * nll[i];
        chunk_sum += nll[i];
        ++score.tokens;
      }
    }
    return {};
  }

  const LoadedModel* loaded_;
  const PerplexityArguments* arguments_;
  std::unique_ptr<model::Executor> executor_;
  std::unique_ptr<kv::PagePool> pages_;
  std::vector<float> logits_;
};

std::string to_json(const Score& score, const LoadedModel& loaded) {
  json::Writer writer;
  writer.begin_object()
      .field("perplexity", score.perplexity())
      .field("stderr", score.standard_error())
      .field("tokens", score.tokens)
      .field("chunks", score.chunk_nll.size())
      .key("nll")
      .begin_array();
  for (const double nll : score.chunk_nll) writer.number(nll);
  writer.end_array()
      .field("kv_bytes_per_token", loaded.model->kv_layout().bytes_per_token())
      .field("isa", platform::name(loaded.model->level()))
      .field("numerics_id", loaded.model->numerics_id())
      .end_object();
  return writer.take() + "\n";
}

std::string to_text(const Score& score, std::uint32_t context) {
  return fmt::format("perplexity {:.4f} +/- {:.4f} over {} tokens in {} chunks of {}\n",
                     score.perplexity(), score.standard_error(), score.tokens,
                     score.chunk_nll.size(), context);
}

Result<int> perplexity(const PerplexityArguments& arguments) {
  CICADA_TRY(check_kv_type(arguments.kv));
  CICADA_ASSIGN(const std::string text, read_text(arguments.file));
  CICADA_ASSIGN(const LoadedModel loaded, load_model(arguments.model));
  CICADA_ASSIGN(const auto tokenizer, tokenizer::Tokenizer::create(*loaded.file));
  const std::optional<TokenId> bos = tokenizer->wants_bos() ? tokenizer->bos() : std::nullopt;
  const std::vector<TokenId> ids = tokenizer->encode(text, {.add_bos = bos.has_value()});
  const std::size_t available = ids.size() / arguments.context;
  const std::size_t chunks =
      arguments.chunks == 0 ? available : std::min<std::size_t>(arguments.chunks, available);
  if (chunks == 0) {
    return fail(Code::kInvalidArgument, "{}: has {} tokens, one chunk of {} is needed",
                arguments.file, ids.size(), arguments.context);
  }
  CICADA_ASSIGN(Scorer scorer, Scorer::create(loaded, arguments));
  platform::Progress progress(STDERR_FILENO);
  Score score;
  for (std::size_t c = 0; c < chunks; ++c) {
    if (platform::interrupted()) break;
    const auto targets = std::span(ids).subspan(c * arguments.context, arguments.context);
    std::vector<TokenId> input(targets.begin(), targets.end());
    if (bos) input[0] = *bos;
    Score with_chunk = score;
    const Result<void> scored = scorer.score_chunk(input, targets, with_chunk);
    if (!scored && scored.error().code() == Code::kCancelled) break;  // whole chunks count
    CICADA_TRY(scored);
    score = std::move(with_chunk);
    progress.update(
        fmt::format("chunk {} of {}  perplexity {:.4f}", c + 1, chunks, score.perplexity()));
  }
  progress.clear();
  if (score.tokens == 0) return fail(Code::kCancelled, "stopped before the first chunk was scored");
  Output output;
  output.write(arguments.json ? to_json(score, loaded) : to_text(score, arguments.context));
  CICADA_TRY(output.finish());
  if (score.chunk_nll.size() < chunks) {
    return fail(Code::kCancelled, "stopped after {} of {} chunks", score.chunk_nll.size(), chunks);
  }
  return kSuccess;
}

}  // namespace

void add_perplexity(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<PerplexityArguments>();
  CLI::App* command = app.add_subcommand("perplexity", "Perplexity of a text");
  add_model_options(*command, arguments->model);
  command->add_option("-f,--file", arguments->file, "The text; - reads standard input")->required();
  constexpr std::uint32_t kMost = 1U << 20;
  command->add_option("--ctx", arguments->context, "Tokens in a chunk (default 512)")
      ->check(whole_number(4, kMost));
  command->add_option("--chunks", arguments->chunks, "Score only the first N chunks (0: all)")
      ->check(whole_number(0, UINT32_MAX));
  command->add_option("-b,--batch", arguments->batch, "Tokens computed at once (default 512)")
      ->check(whole_number(1, UINT32_MAX));
  command->add_option("--kv", arguments->kv, "Type of the KV cache: f16");
  command->add_option("--role", arguments->role, "prefill, or decode: one token at a time")
      ->check(CLI::IsMember({"prefill", "decode"}));
  command->add_flag("--json", arguments->json, "Print one JSON object");
  set_action(*command, action, arguments, perplexity);
}

}  // namespace cicada::cli
