// What front and engine say to each other (docs/decisions/0012-front-and-engine.md).
//
// Plain values: ids, counts and names, never text of a conversation and never tensors. The front
// turns text into ids and ids into text; the engine knows requests by their ids alone. They are
// carried by src/cicada/ipc between processes, or handed over within one.
// Threads: values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cicada/base/error.h"
#include "cicada/base/ids.h"

namespace cicada::messages {

// Chosen by the front, never used twice. One choice of a request (`n`) has one of its own.
using RequestId = std::uint64_t;

// --- Front to engine ---

struct Sampling {
  float temperature = 0.0F;  // 0: always the most likely token
  std::uint32_t top_k = 0;   // 0: all
  float top_p = 1.0F;
  float min_p = 0.0F;
  std::uint64_t seed = 0;
  float presence_penalty = 0.0F;    // taken off the logit of a token that was generated before
  float frequency_penalty = 0.0F;   // the same for each time that it was
  float repetition_penalty = 1.0F;  // divides (negative: multiplies) logits of tokens seen,
                                    // prompt's included; 1: none
  std::vector<std::pair<TokenId, float>> logit_bias;  // added; ids distinct

  bool operator==(const Sampling&) const = default;
};

struct Submit {
  RequestId id = 0;
  std::vector<TokenId> prompt;  // what was sent: computed in the prefill role
  // What this request generated before, in an engine that is gone: computed in the decode role,
  // after which it goes on as if nothing had happened.
  std::vector<TokenId> emitted;
  std::uint32_t max_tokens = 0;  // of the answer, `emitted` counted; 0: as the context has room
  Sampling sampling;
  std::uint64_t choice = 0;         // of several from one prompt: counts in the random numbers
  std::vector<TokenId> end_tokens;  // any of these ends the answer and is not part of it
  std::string salt;                 // prefixes are shared among requests of one salt only
  std::string tenant;               // whose turn is counted: fairness is between tenants
  std::int32_t priority = 0;        // higher goes first
  bool wants_logprobs = false;
  std::uint32_t top_logprobs = 0;  // how many alternatives a token is sent with

  bool operator==(const Submit&) const = default;
};

// Ends a request in whatever state it is; a Finished with kCancelled follows, or has been sent.
struct Cancel {
  RequestId id = 0;
  bool operator==(const Cancel&) const = default;
};

// A client that does not read gets no more tokens until it does; what it has stays.
struct Pause {
  RequestId id = 0;
  bool is_paused = true;
  bool operator==(const Pause&) const = default;
};

// --- Engine to front ---

// The first thing an engine says. From the loaded plan: attestation is derived from this.
struct Hello {
  std::string numerics_id;   // of weights, plan, formats and kernel level: equal ids, equal bits
  std::string architecture;  // "llama"
  double rope_theta = 0;
  std::vector<std::string> zeroed;  // parts left out of the plan, as SPEC names them; else empty
  std::uint32_t context = 0;        // tokens of a prompt and its answer
  std::uint32_t max_running = 0;    // requests at once
  std::uint64_t kv_pages = 0;
  std::uint32_t page_tokens = 0;
  std::vector<std::string> screen;  // lines for the operator: plan, kernels, memory

  bool operator==(const Hello&) const = default;
};

struct Logprob {
  TokenId token;
  float logprob = 0;
  bool operator==(const Logprob&) const = default;
};

// A request left the queue and its prompt is being read (again after a preemption: is_resumed).
struct Started {
  RequestId id = 0;
  std::uint32_t cached_tokens = 0;  // of the prompt, found in the prefix cache
  bool is_resumed = false;
  bool operator==(const Started&) const = default;
};

struct Token {
  RequestId id = 0;
  TokenId token;
  float logprob = 0;         // of the model's own distribution; where asked for
  std::vector<Logprob> top;  // the most likely, descending; where asked for
  bool operator==(const Token&) const = default;
};

enum class Finish : std::uint8_t { kStop, kLength, kCancelled };

// The last thing said about a request, unless it failed.
struct Finished {
  RequestId id = 0;
  Finish reason = Finish::kStop;
  bool operator==(const Finished&) const = default;
};

// The last thing said about a request that the engine cannot serve. With id 0, instead of Hello and
// with nothing behind it: the engine cannot start.
struct Failed {
  RequestId id = 0;
  Code code = Code::kInternal;
  std::string message;
  bool operator==(const Failed&) const = default;
};

// The engine's state after a step; sent at most ten times a second, and when it falls idle.
struct Stats {
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  std::uint64_t kv_pages_held = 0;  // by requests
  std::uint64_t kv_pages = 0;
  // Since the engine started.
  std::uint64_t prefix_queries_tokens = 0;
  std::uint64_t prefix_hits_tokens = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t corrupted = 0;  // requests that ended because their logits were no numbers
  std::uint64_t steps = 0;
  std::uint64_t prefill_tokens = 0;  // computed
  std::uint64_t decode_tokens = 0;   // computed
  std::uint64_t busy_ns = 0;         // in steps
  // Tokens computed in each step since the last Stats.
  std::vector<std::uint32_t> step_tokens;
  bool operator==(const Stats&) const = default;
};

using ToEngine = std::variant<Submit, Cancel, Pause>;
using ToFront = std::variant<Hello, Started, Token, Finished, Failed, Stats>;

}  // namespace cicada::messages
