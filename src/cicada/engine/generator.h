// One sequence from prompt to answer: prefill in chunks, then a token at a time.
//
// The cache keeps the positions that were computed in the prefill role: a next prompt that begins
// with the same ids goes on from there, and a reply is prefilled again (docs/numerics.md).
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/engine/drafter.h"
#include "cicada/engine/sampler.h"
#include "cicada/kv/page_pool.h"
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

// Whether keys and values of `context` tokens can be held. Errors: kOutOfMemory with the bytes
// needed and free, and the tokens that fit.
Result<void> check_cache_fits(const kv::KvLayout& layout, std::size_t context,
                              std::uint64_t available_bytes);

class Generator {
 public:
  // `context` tokens of cache; `chunk` tokens are prefilled at once.
  // Errors: kOutOfMemory.
  static Result<std::unique_ptr<Generator>> create(const model::Model& model,
                                                   platform::ThreadPool& pool, std::size_t context,
                                                   std::size_t chunk = kPrefillChunk);

  static constexpr std::size_t kPrefillChunk = 256;

  std::size_t context() const { return context_; }

  // Calls on_token for every new token as it comes; false stops (kStopSequence).
  // Errors: kInvalidArgument for an empty prompt or bad sampler options; kOutOfCapacity with both
  // numbers when the prompt leaves no room for one token; kInternal when the model's logits are not
  // finite.
  Result<Generation> generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                              const std::function<bool(TokenId)>& on_token);

 private:
  Generator(const model::Model& model, std::unique_ptr<model::Executor> executor, kv::PagePool pool,
            tensor::Buffer logits, std::size_t context);

  Result<bool> prefill(std::span<const TokenId> prompt, const GenerateOptions& options,
                       Generation& result);
  Result<void> decode(std::size_t end, const GenerateOptions& options,
                      const std::function<bool(TokenId)>& on_token, Generation& result);
  Result<std::size_t> step(TokenId token, std::size_t position, std::size_t most_drafted,
                           Generation& result);
  std::span<const float> logits_row(std::size_t row) const;

  std::unique_ptr<model::Executor> executor_;
  std::unique_ptr<kv::PagePool> pool_;  // at a fixed address: the sequence borrows it
  kv::Sequence sequence_;
  std::size_t context_;
  std::vector<TokenId> cached_;  // ids whose keys were computed in the prefill role
  tensor::Buffer logits_;        // [1 + most drafted, vocab]; touched as far as it is used
  std::vector<model::Row> rows_;
  Sampler sampler_;
  Drafter drafter_;
  DraftLength draft_length_;
};

}  // namespace cicada::engine
