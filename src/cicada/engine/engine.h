// The engine: requests in, tokens out, a step at a time.
//
// Holds the model's executor, the pages of keys and values and the prefixes that requests share;
// the scheduler says who computes what. A request's bits depend on its own tokens and roles only
// (docs/numerics.md), so it answers the same whoever runs beside it, after a preemption, and in
// another engine that is given what it had emitted (Submit::emitted).
// Threads: one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/engine/cache_memory.h"
#include "cicada/engine/logprobs.h"
#include "cicada/engine/penalties.h"
#include "cicada/engine/sampler.h"
#include "cicada/engine/scheduler.h"
#include "cicada/engine/step_budget.h"
#include "cicada/kv/page_warmer.h"
#include "cicada/kv/prefix_cache.h"
#include "cicada/kv/sequence.h"
#include "cicada/messages/messages.h"
#include "cicada/model/executor.h"
#include "cicada/tensor/buffer.h"

namespace cicada::engine {

struct EngineOptions {
  std::size_t context = 0;  // tokens of a prompt and its answer
  std::size_t max_running = 64;
  StepBudgetOptions budget;  // its max_rows is the largest batch
  std::size_t page_tokens = kv::kPageTokens;
  std::size_t pool_pages = 0;  // 0: default_pool_pages()
  std::optional<kv::PrefixStoreOptions> prefix_store;
};

class Engine : private KvHolder {
 public:
  using Events = std::vector<messages::ToFront>;

  // Errors: kOutOfMemory with what fits; kInvalidArgument for another page size; those of
  // PrefixStore::open.
  static Result<std::unique_ptr<Engine>> create(const model::Model& model,
                                                platform::ThreadPool& pool,
                                                const EngineOptions& options);
  ~Engine() override;

  // From the loaded plan; `screen` is the caller's.
  messages::Hello hello() const;

  // Takes a message; what follows at once is put behind `events`.
  void receive(messages::ToEngine message, Events& events);
  // Computes one step and puts what came of it behind `events`. False: there was nothing to do.
  bool step(Events& events);

  // What is, and what was counted; the steps since the last call.
  messages::Stats take_stats();
  // Bytes taken at the start, for the operator: working memory of the batch, and the pool's.
  std::size_t workspace_bytes() const { return executor_->workspace_bytes(); }
  std::uint64_t pool_bytes() const;
  // Broken invariants stop the process.
  void check_pages() const { pool_->check_conservation(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Request;
  using Requests = std::unordered_map<RequestId, std::unique_ptr<Request>>;

  Engine(const model::Model& model, const EngineOptions& options,
         std::unique_ptr<model::Executor> executor, CacheMemory cache, tensor::Buffer logits);

  Admission admit(RequestId id, std::size_t spare_pages) override;
  bool grow(RequestId id, std::size_t tokens) override;
  void release(RequestId id) override;

  void submit(messages::Submit&& submit, Events& events);
  Result<void> check(const messages::Submit& submit) const;
  void cancel(RequestId id, Events& events);

  Request& request(RequestId id) { return *requests_.at(id); }
  bool waits_for_another(Request& request, std::size_t cached);
  // Puts full pages of the prompt that were computed into the tree.
  void remember(Request& request);
  void note_plan(const PlannedStep& plan, Events& events);
  Result<void> compute(const PlannedStep& plan);
  void take_results(const PlannedStep& plan, Events& events);
  void take_token(const Slice& slice, std::size_t row, Events& events);
  void finish(RequestId id, messages::Finish reason, Events& events);
  void fail_request(RequestId id, const Error& error, Events& events);

  const model::Model* model_;
  EngineOptions options_;
  std::unique_ptr<model::Executor> executor_;
  std::unique_ptr<kv::PagePool> pool_;  // at a fixed address: the others borrow it
  kv::PageWarmer warmer_;
  kv::PrefixCache prefixes_;
  Requests requests_;
  Scheduler scheduler_;
  StepBudget budget_;
  Sampler sampler_;
  Logprobs logprobs_;
  tensor::Buffer logits_;         // [max_logit_rows, vocab]
  std::vector<float> adjusted_;   // [vocab]
  std::vector<model::Row> rows_;  // of the step
  std::vector<kv::Sequence*> sequences_;
  messages::Stats stats_;  // what is counted; the rest is asked for
};

}  // namespace cicada::engine
