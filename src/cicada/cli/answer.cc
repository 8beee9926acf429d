#include "cicada/cli/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cicada/cli/context_option.h"
#include "cicada/cli/kv_loss.h"
#include "cicada/cli/messages.h"
#include "cicada/cli/numbers.h"
#include "cicada/platform/interrupt.h"

namespace cicada::cli {
namespace {

constexpr std::uint32_t kDefaultContext = 4096;

}  // namespace

void add_answer_options(CLI::App& command, AnswerArguments& arguments) {
  add_model_options(command, arguments.model);
  command
      .add_option(
          "-c,--ctx", arguments.context,
          "Context in tokens (0, the default: what the model was trained for, at most 4096)")
      ->transform(whole_number(0, kMaxContext));
  command
      .add_option("-n,--max-tokens", arguments.max_tokens,
                  "Most tokens to answer (0, the default: as the context has room)")
      ->transform(whole_number(0, UINT32_MAX));
  add_kv_options(command, arguments.kv, true);
  add_prefix_options(command, arguments.prefix);
  command
      .add_option("--temp", arguments.sampler.temperature,
                  "Temperature (default 0: always the likeliest token)")
      ->check(decimal_number());
  command.add_option("--top-k", arguments.sampler.top_k, "Keep the K likeliest (0: all)")
      ->transform(whole_number(0, UINT32_MAX));
  command
      .add_option("--top-p", arguments.sampler.top_p,
                  "Keep the likeliest up to this probability in all (1: all)")
      ->check(decimal_number());
  command
      .add_option("--min-p", arguments.sampler.min_p,
                  "Drop below this share of the likeliest (0: none)")
      ->check(decimal_number());
  command.add_flag(
      "--draft,!--no-draft", arguments.draft,
      "Guess ahead from repeated text where it pays (default); the answer is the same");
  command.add_option("--seed", arguments.sampler.seed, "Seed of the draws (default 0)")
      ->transform(whole_number(0, UINT64_MAX));
}

chat::RenderOptions render_options() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.now_unix_s = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
}

Result<Answerer> Answerer::create(const AnswerArguments& arguments) {
  CICADA_TRY(check(arguments.kv));
  CICADA_TRY(engine::check(arguments.sampler));
  Answerer answerer;
  CICADA_ASSIGN(answerer.loaded, load_model(arguments.model));
  CICADA_TRY(use_kv(answerer.loaded, arguments.kv));
  CICADA_ASSIGN(answerer.tokenizer, tokenizer::Tokenizer::create(*answerer.loaded.file));
  CICADA_ASSIGN(answerer.kv_loss, check_kv_loss(answerer.loaded, arguments.kv));
  const std::size_t context =
      context_tokens(arguments.context, kDefaultContext, answerer.loaded.model->config());
  CICADA_ASSIGN(const engine::GeneratorOptions options,
                generator_options(arguments.prefix, answerer.loaded, context));
  CICADA_ASSIGN(answerer.generator,
                engine::Generator::create(*answerer.loaded.model, *answerer.loaded.pool, options));
  answerer.options.max_tokens = arguments.max_tokens;
  answerer.options.sampler = arguments.sampler;
  answerer.options.draft = arguments.draft;
  answerer.options.end_tokens = answerer.tokenizer->end_tokens();
  answerer.options.is_cancelled = platform::interrupted;
  return answerer;
}

Result<Answer> answer(Answerer& answerer, const std::vector<TokenId>& prompt,
                      const std::function<bool(std::string_view)>& on_text) {
  Answer result;
  tokenizer::Detokenizer detokenizer(*answerer.tokenizer);
  const auto emit = [&](const std::string& piece) {
    result.text += piece;
    return piece.empty() || on_text(piece);
  };
  CICADA_ASSIGN(result.generation,
                answerer.generator->generate(prompt, answerer.options, [&](TokenId id) {
                  return emit(detokenizer.add(id));
                }));
  emit(detokenizer.finish());
  return result;
}

}  // namespace cicada::cli
