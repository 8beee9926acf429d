#include "cicada/cli/engine_setup.h"

#include <fmt/format.h>

#include "cicada/cli/context_option.h"
#include "cicada/cli/inspect_plan.h"
#include "cicada/cli/kv_loss.h"
#include "cicada/platform/file_time.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {
namespace {

constexpr std::uint32_t kDefaultContext = 16384;

std::vector<std::string> screen(const LoadedModel& loaded, const engine::Engine& engine,
                                const messages::Hello& hello) {
  const PlanReport plan = report_plan(*loaded.model);
  const model::Weights& held = loaded.model->weights();
  const std::uint64_t weights = held.packed_bytes() + held.panel_bytes();
  const std::uint64_t sum = weights + engine.workspace_bytes() + engine.pool_bytes();
  const auto bytes = platform::format_bytes;
  return {
      fmt::format("model    {}, {} layers, RoPE base {}", hello.architecture,
                  loaded.model->config().num_layers, hello.rope_theta),
      fmt::format("plan     {} steps, {} a token; numerics {}", plan.rows.size(),
                  bytes(plan.bytes_per_token), plan.numerics_id),
      fmt::format("elided   {}", hello.zeroed.empty()
                                     ? std::string("nothing: no part of it is exactly zero")
                                     : fmt::format("{}", fmt::join(hello.zeroed, ", "))),
      fmt::format("kernels  {}, {} threads", plan.level, loaded.pool->size()),
      fmt::format("memory   {} at most: weights {}, working {}, keys and values {} ({} pages of {} "
                  "tokens, taken as used)",
                  bytes(sum), bytes(weights), bytes(engine.workspace_bytes()),
                  bytes(engine.pool_bytes()), hello.kv_pages, hello.page_tokens),
      fmt::format("serves   {} requests at once, each up to {} tokens", hello.max_running,
                  hello.context)};
}

}  // namespace

Result<EngineSetup> EngineSetup::create(const EngineArguments& arguments) {
  CICADA_TRY(check(arguments.kv));
  EngineSetup setup;
  CICADA_ASSIGN(setup.loaded, load_model(arguments.model));
  CICADA_TRY(use_kv(setup.loaded, arguments.kv));
  CICADA_TRY(check_kv_loss(setup.loaded, arguments.kv));
  const std::size_t context =
      context_tokens(arguments.context, kDefaultContext, setup.loaded.model->config());
  CICADA_ASSIGN(const engine::GeneratorOptions pages,
                generator_options(arguments.prefix, setup.loaded, context));
  std::size_t pool_pages = 0;
  if (arguments.cache_bytes != 0) {
    const kv::KvLayout layout = setup.loaded.model->kv_layout(pages.page_tokens);
    auto counted = engine::pool_pages_in(layout, context, arguments.cache_bytes);
    if (!counted) return fail(std::move(counted).error().with_context("--kv-cache-memory-bytes"));
    pool_pages = *counted;
  }
  CICADA_ASSIGN(setup.engine, engine::Engine::create(*setup.loaded.model, *setup.loaded.pool,
                                                     {.context = context,
                                                      .max_running = arguments.max_running,
                                                      .budget = {.max_rows = arguments.max_rows},
                                                      .page_tokens = pages.page_tokens,
                                                      .pool_pages = pool_pages,
                                                      .prefix_store = pages.prefix_store}));
  setup.hello = setup.engine->hello();
  // An engine that comes back must have the same weights, too.
  setup.hello.numerics_id += "-" + platform::file_version(setup.loaded.file->path());
  setup.hello.screen = screen(setup.loaded, *setup.engine, setup.hello);
  return setup;
}

}  // namespace cicada::cli
