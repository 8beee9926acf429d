// `cicada perplexity`: llama.cpp's protocol. The text is cut into chunks of ctx tokens; the first
// of each is replaced by BOS where the model wants one, and the second half is scored.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "cicada/cli/answer.h"
#include "cicada/cli/numbers.h"
#include "cicada/cli/output.h"
#include "cicada/engine/scorer.h"
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
  KvArguments kv;
  std::string role = "prefill";
  std::string against;  // a KV type to compare with; empty: none
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

// Both of one chunk, where the text is scored against another KV type too.
struct Comparison {
  double kl_sum = 0.0;                   // of the divergences from the other
  std::size_t same_tops = 0;             // tokens at which both like the same token best
  std::vector<double> chunk_difference;  // of negative log likelihoods, mean of each chunk

  double mean() const {
    double sum = 0.0;
    for (const double d : chunk_difference) sum += d;
    return sum / static_cast<double>(chunk_difference.size());
  }
  // Standard error of the mean difference, from its spread over the chunks.
  double standard_error() const {
    const auto n = static_cast<double>(chunk_difference.size());
    if (n < 2) return 0.0;
    double squares = 0.0;
    for (const double d : chunk_difference) squares += (d - mean()) * (d - mean());
    return std::sqrt(squares / (n - 1.0) / n);
  }
};

// One way to run the model, with its cache.
struct Way {
  model::KvFormat format;
  model::KvPolicy policy;
  std::optional<engine::Scorer> scorer;
};

class ChunkScorer {
 public:
  static Result<ChunkScorer> create(const LoadedModel& loaded,
                                    const PerplexityArguments& arguments) {
    ChunkScorer scorer(loaded);
    const std::size_t context = arguments.context;
    scorer.first_ = context / 2;
    scorer.options_ = {
        .context = context,
        .batch = arguments.batch,
        .role = arguments.role == "decode" ? model::Role::kDecode : model::Role::kPrefill};
    CICADA_TRY(scorer.add_way(arguments.kv));
    if (!arguments.against.empty()) {
      CICADA_TRY(scorer.add_way({.type = arguments.against, .policy = "all"}));
      scorer.kept_.resize((context - 1 - scorer.first_) * loaded.model->config().vocab);
    }
    scorer.nll_.resize(context);
    return scorer;
  }

  // Leaves the model as it was asked for.
  void use_asked() { use(ways_[0]); }

  // Scores targets [context / 2 + 1, context) of a chunk whose first token may have been replaced.
  // What is known of a chunk that was cancelled is thrown away.
  Result<void> score(std::span<const TokenId> input, std::span<const TokenId> targets, Score& score,
                     Comparison& comparison) {
    const auto text = input.first(input.size() - 1);
    const std::size_t count = text.size() - first_;
    const std::size_t vocab = loaded_->model->config().vocab;
    double other = 0.0;
    if (ways_.size() > 1) {
      CICADA_TRY(run(1, text, [&](std::size_t position, std::span<const float> logits) {
        nll_[position] = engine::negative_log_likelihood(logits, targets[position + 1]);
        std::copy(logits.begin(), logits.end(),
                  kept_.begin() + static_cast<std::ptrdiff_t>((position - first_) * vocab));
      }));
      for (std::size_t i = first_; i < text.size(); ++i) other += nll_[i];
    }
    std::vector<double> kl(ways_.size() > 1 ? text.size() : 0);
    std::vector<std::uint8_t> same(kl.size());
    CICADA_TRY(run(0, text, [&](std::size_t position, std::span<const float> logits) {
      nll_[position] = engine::negative_log_likelihood(logits, targets[position + 1]);
      if (kl.empty()) return;
      const auto base = std::span(std::as_const(kept_)).subspan((position - first_) * vocab, vocab);
      kl[position] = engine::divergence(base, logits);
      const auto top = [](std::span<const float> x) {
        return std::max_element(x.begin(), x.end()) - x.begin();
      };
      same[position] = top(base) == top(logits) ? 1 : 0;
    }));
    double sum = 0.0;
    for (std::size_t i = first_; i < text.size(); ++i) {
      sum += nll_[i];
      score.sum_squares += nll_[i] * nll_[i];
    }
    score.sum += sum;
    score.tokens += count;
    score.chunk_nll.push_back(sum / static_cast<double>(count));
    if (kl.empty()) return {};
    comparison.kl_sum += std::accumulate(kl.begin(), kl.end(), 0.0);
    comparison.same_tops += static_cast<std::size_t>(std::count(same.begin(), same.end(), 1));
    comparison.chunk_difference.push_back((sum - other) / static_cast<double>(count));
    return {};
  }

 private:
  explicit ChunkScorer(const LoadedModel& loaded) : loaded_(&loaded) {}

  Result<void> add_way(const KvArguments& kv) {
    Way way;
    CICADA_ASSIGN(way.format, model::parse_kv_format(kv.type, loaded_->model->config().num_layers));
    CICADA_ASSIGN(way.policy, model::parse_kv_policy(kv.policy));
    use(way);
    CICADA_ASSIGN(way.scorer, engine::Scorer::create(*loaded_->model, *loaded_->pool, options_));
    ways_.push_back(std::move(way));
    return {};
  }

  void use(const Way& way) {
    loaded_->model->use_kv(way.format);
    loaded_->model->use_policy(way.policy);
  }

  Result<void> run(std::size_t way, std::span<const TokenId> text,
                   const engine::Scorer::OnRow& on_row) {
    use(ways_[way]);
    return ways_[way].scorer->run(text, first_, platform::interrupted, on_row);
  }

  const LoadedModel* loaded_;
  engine::ScorerOptions options_;
  std::size_t first_ = 0;    // position whose logits are scored first
  std::vector<Way> ways_;    // the one asked for, and the one it is compared with
  std::vector<float> kept_;  // [scored, vocab]: logits of the other
  std::vector<double> nll_;
};

std::string to_json(const Score& score, const Comparison& comparison, const LoadedModel& loaded) {
  json::Writer writer;
  writer.begin_object()
      .field("perplexity", score.perplexity())
      .field("stderr", score.standard_error())
      .field("tokens", score.tokens)
      .field("chunks", score.chunk_nll.size())
      .key("nll")
      .begin_array();
  for (const double nll : score.chunk_nll) writer.number(nll);
  writer.end_array();
  if (!comparison.chunk_difference.empty()) {
    const auto tokens = static_cast<double>(score.tokens);
    writer.field("nll_difference", comparison.mean())
        .field("nll_difference_stderr", comparison.standard_error())
        .field("kl", comparison.kl_sum / tokens)
        .field("same_top", static_cast<double>(comparison.same_tops) / tokens);
  }
  writer.field("kv_bytes_per_token", loaded.model->kv_layout().bytes_per_token())
      .field("isa", platform::name(loaded.model->level()))
      .field("numerics_id", loaded.model->numerics_id())
      .end_object();
  return writer.take() + "\n";
}

std::string to_text(const Score& score, const Comparison& comparison,
                    const PerplexityArguments& arguments) {
  std::string text = fmt::format("perplexity {:.4f} +/- {:.4f} over {} tokens in {} chunks of {}\n",
                                 score.perplexity(), score.standard_error(), score.tokens,
                                 score.chunk_nll.size(), arguments.context);
  if (comparison.chunk_difference.empty()) return text;
  const auto tokens = static_cast<double>(score.tokens);
  text += fmt::format(
      "against {}: perplexity {:+.3f} % +/- {:.3f} %, divergence {:.3g} nats a token, the same "
      "best "
      "token at {:.2f} %\n",
      arguments.against, 100.0 * std::expm1(comparison.mean()), 100.0 * comparison.standard_error(),
      comparison.kl_sum / tokens, 100.0 * static_cast<double>(comparison.same_tops) / tokens);
  return text;
}

Result<int> perplexity(const PerplexityArguments& arguments) {
  CICADA_TRY(check(arguments.kv));
  CICADA_ASSIGN(const model::KvPolicy policy, model::parse_kv_policy(arguments.kv.policy));
  if (policy.pages > 0 && arguments.role != "decode") {
    return fail(Code::kInvalidArgument,
                "--kv-policy {} is for decoded tokens: with --role {} it changes nothing, --role "
                "decode is allowed",
                arguments.kv.policy, arguments.role);
  }
  if (!arguments.against.empty()) CICADA_TRY(check(KvArguments{.type = arguments.against}));
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
  CICADA_ASSIGN(ChunkScorer scorer, ChunkScorer::create(loaded, arguments));
  platform::Progress progress(STDERR_FILENO);
  Score score;
  Comparison comparison;
  for (std::size_t c = 0; c < chunks; ++c) {
    if (platform::interrupted()) break;
    const auto targets = std::span(ids).subspan(c * arguments.context, arguments.context);
    std::vector<TokenId> input(targets.begin(), targets.end());
    if (bos) input[0] = *bos;
    const Result<void> scored = scorer.score(input, targets, score, comparison);
    if (!scored && scored.error().code() == Code::kCancelled) break;  // whole chunks count
    CICADA_TRY(scored);
    progress.update(
        fmt::format("chunk {} of {}  perplexity {:.4f}", c + 1, chunks, score.perplexity()));
  }
  progress.clear();
  scorer.use_asked();
  if (score.tokens == 0) return fail(Code::kCancelled, "stopped before the first chunk was scored");
  Output output;
  output.write(arguments.json ? to_json(score, comparison, loaded)
                              : to_text(score, comparison, arguments));
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
      ->transform(whole_number(4, kMost));
  command->add_option("--chunks", arguments->chunks, "Score only the first N chunks (0: all)")
      ->transform(whole_number(0, UINT32_MAX));
  command->add_option("-b,--batch", arguments->batch, "Tokens computed at once (default 512)")
      ->transform(whole_number(1, UINT32_MAX));
  add_kv_options(*command, arguments->kv, false);
  command->add_option(
      "--against", arguments->against,
      "Compare with this KV type, all keys read: loss, divergence, same best token");
  command->add_option("--role", arguments->role, "prefill, or decode: one token at a time")
      ->check(CLI::IsMember({"prefill", "decode"}));
  command->add_flag("--json", arguments->json, "Print one JSON object");
  set_action(*command, action, arguments, perplexity);
}

}  // namespace cicada::cli
