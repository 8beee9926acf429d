// A loaded model: configuration, weights in memory, and the plan. Read-only after loading; an
// Executor (executor.h) runs it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"
#include "cicada/kv/page_pool.h"
#include "cicada/model/config.h"
#include "cicada/model/kv_format.h"
#include "cicada/model/kv_policy.h"
#include "cicada/model/plan.h"
#include "cicada/model/weights.h"
#include "cicada/platform/cpu.h"
#include "cicada/platform/thread_pool.h"

namespace cicada::model {

struct ModelOptions {
  platform::IsaLevel level = platform::IsaLevel::kScalar;
  LoadOptions load;          // its `elide` also decides what the plan holds
  bool keep_panels = false;  // Weights::keep_panels, where the level has tiles
};

class Model {
 public:
  // Errors: those of read_config and Weights::load. The file is not needed afterwards.
  static Result<std::unique_ptr<Model>> load(const formats::ModelFile& file,
                                             platform::ThreadPool& pool,
                                             const ModelOptions& options);

  const Config& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  const Plan& plan() const { return plan_; }
  platform::IsaLevel level() const { return level_; }

  // Caches keys and values in another format than f16 from now on, and makes the plan for it. Call
  // it before executors and caches are made. `format` has all the model's layers, or none.
  void use_kv(KvFormat format);
  bool caches_any_key_without_bias() const;
  // Attends to fewer keys from now on, and makes the plan for it. Call it before executors and
  // caches are made.
  void use_policy(const KvPolicy& policy);
  const KvPolicy& kv_policy() const { return kv_policy_; }
  const KvFormat& kv_format() const { return kv_format_; }

  // Of the cache that sequences of this model need, in pages of 16, 32 or 64 tokens.
  kv::KvLayout kv_layout(std::size_t page_tokens = kv::kPageTokens) const;

  // Score biases of a layer's relative-position part by head; nullptr when the plan has none.
  const float* reversed_bias(std::uint32_t layer, std::uint32_t head) const;

  // Names everything that bits depend on besides tokens and roles (docs/numerics.md): two runs with
  // equal ids give equal bits. 16 hex digits.
  std::string numerics_id() const;

 private:
  Model() = default;
  void remake_plan();
  void make_bias_tables();

  Config config_;
  Weights weights_;
  KvFormat kv_format_;
  KvPolicy kv_policy_;
  Plan plan_;
  platform::IsaLevel level_ = platform::IsaLevel::kScalar;
  bool elide_ = true;
  std::vector<std::vector<float>> bias_tables_;  // [layer][head * stride + …], empty: none
};

}  // namespace cicada::model
