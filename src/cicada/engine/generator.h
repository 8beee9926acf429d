// One sequence from prompt to answer: prefill in chunks, then a token at a time.
//
// The cache keeps positions that were computed in the prefill role, of this prompt and of earlier
// ones: a next prompt that begins with the same ids goes on from there, and a reply is prefilled
// again (docs/numerics.md, docs/prefix-cache.md).
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/engine/cache_memory.h"
#include "cicada/engine/drafter.h"
#include "cicada/engine/sampler.h"
#include "cicada/kv/prefix_cache.h"
#include "cicada/kv/sequence.h"
#include "cicada/model/executor.h"
#include "cicada/tensor/buffer.h"

namespace cicada::engine {

enum class FinishReason : std::uint8_t { kStop, kStopSequence, kLength, kCancelled };
// "stop", "stop_sequence", "length", "cancelled".
std::string_view finish_reason_name(FinishReason reason);

struct GenerateOptions {
  std::uint32_t max_tokens = 0;  // at most this many new tokens; 0: as many as the context has room
  SamplerOptions sampler;
  std::vector<TokenId> end_tokens;  // any of these ends the answer and is not part of it
  bool draft = true;                // guess ahead where it pays (drafter.h); the answer is the same
  std::string salt;                 // prompts of another salt share no cache with this one
  // Asked before every step; true ends the generation with kCancelled.
  std::function<bool()> is_cancelled;
};

struct Generation {
  std::vector<TokenId> tokens;  // without the end token
  FinishReason reason = FinishReason::kStop;
  std::size_t prompt_tokens = 0;
  std::size_t reused_tokens = 0;    // of the prompt, found in the cache
  std::size_t drafted_tokens = 0;   // guessed and run
  std::size_t accepted_tokens = 0;  // of these, what was right
  std::chrono::nanoseconds prefill_time{0};
  std::chrono::nanoseconds decode_time{0};

  // Tokens per second; 0 when nothing was computed.
  double prefill_rate() const;
  double decode_rate() const;
};

struct GeneratorOptions {
  std::size_t context = 0;  // tokens of a prompt and its answer
  std::size_t chunk = 256;  // tokens prefilled at once
  std::size_t page_tokens = kv::kPageTokens;
  std::size_t pool_pages = 0;  // 0: default_pool_pages(). With fewer than the context needs, an
                               // answer ends with an error when they run out
  // Where prefixes outlive the process. The model's part of it is filled in here, but for
  // `model_identity`.
  std::optional<kv::PrefixStoreOptions> prefix_store;
};

class Generator {
 public:
  // Errors: kOutOfMemory; kInvalidArgument for another page size; those of PrefixStore::open.
  static Result<std::unique_ptr<Generator>> create(const model::Model& model,
                                                   platform::ThreadPool& pool,
                                                   const GeneratorOptions& options);

  static constexpr std::size_t kPrefillChunk = 256;

  // Saves what save_prefix() was not called for.
  ~Generator() { save_prefix(); }
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  std::size_t context() const { return context_; }

  // Calls on_token for every new token as it comes; false stops (kStopSequence).
  // Errors: kInvalidArgument for an empty prompt or bad sampler options; kOutOfCapacity with both
  // numbers when the prompt leaves no room for one token, or when no page is free; kInternal when
  // the model's logits are not finite. After an error the generator can be used as before.
  Result<Generation> generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                              const std::function<bool(TokenId)>& on_token);

  // Writes the last prompt's pages to the folder of GeneratorOptions, as far as they are not there:
  // for the time after an answer, since it takes some.
  void save_prefix();

  kv::PrefixCounters prefix_counters() const { return prefixes_.counters(); }
  // Broken invariants stop the process.
  void check_pages() const { pool_->check_conservation(); }

 private:
  Generator(const model::Model& model, std::unique_ptr<model::Executor> executor, CacheMemory cache,
            tensor::Buffer logits, std::size_t context);

  Result<void> answer(std::span<const TokenId> prompt, const GenerateOptions& options,
                      const std::function<bool(TokenId)>& on_token, Generation& result);
  Result<void> reuse(std::span<const TokenId> prompt, const std::string& salt);
  Result<bool> prefill(std::span<const TokenId> prompt, const GenerateOptions& options,
                       Generation& result);
  Result<void> decode(std::size_t end, const GenerateOptions& options,
                      const std::function<bool(TokenId)>& on_token, Generation& result);
  Result<std::size_t> step(TokenId token, std::size_t position, std::size_t most_drafted,
                           Generation& result);
  std::span<const float> logits_row(std::size_t row) const;

  std::unique_ptr<model::Executor> executor_;
  std::unique_ptr<kv::PagePool> pool_;  // at a fixed address: the others borrow it
  kv::PrefixCache prefixes_;
  kv::Sequence sequence_;
  std::size_t context_;
  std::vector<TokenId> cached_;  // ids whose keys were computed in the prefill role
  std::string salt_;             // of these
  bool is_saved_ = true;         // their pages are in the folder
  tensor::Buffer logits_;        // [1 + most drafted, vocab]; touched as far as it is used
  std::vector<model::Row> rows_;
  Sampler sampler_;
  Drafter drafter_;
  DraftLength draft_length_;
};

}  // namespace cicada::engine
