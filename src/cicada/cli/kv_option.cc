#include "cicada/cli/kv_option.h"

#include <utility>

#include "cicada/model/kv_format.h"
#include "cicada/model/kv_policy.h"

namespace cicada::cli {

void add_kv_options(CLI::App& command, KvArguments& arguments, bool can_refuse) {
  command.add_option(
      "--kv", arguments.type,
      "Width of the KV cache: f16 (default), q8, q6, q4, or KEYS/VALUES as in q8/q6");
  command.add_option(
      "--kv-policy", arguments.policy,
      "Which keys are read: all (default), window:TOKENS or angle:TAU, with sinks:TOKENS; "
      "pages:COUNT, of 64 keys each, chosen for every token that is decoded");
  if (!can_refuse) return;
  command.add_flag("--kv-force", arguments.force,
                   "Use the KV type even where it costs this model too much");
}

Result<void> check(const KvArguments& arguments) {
  constexpr std::uint32_t kMostLayers = 1024;
  CICADA_TRY(model::parse_kv_format(arguments.type, kMostLayers));
  CICADA_TRY(model::parse_kv_policy(arguments.policy));
  return {};
}

Result<void> use_kv(const LoadedModel& loaded, const KvArguments& arguments) {
  CICADA_ASSIGN(model::KvFormat format,
                model::parse_kv_format(arguments.type, loaded.model->config().num_layers));
  CICADA_ASSIGN(const model::KvPolicy policy, model::parse_kv_policy(arguments.policy));
  loaded.model->use_kv(std::move(format));
  loaded.model->use_policy(policy);
  return {};
}

}  // namespace cicada::cli
