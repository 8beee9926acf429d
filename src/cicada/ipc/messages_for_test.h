// For tests: messages of every kind, empty, ordinary and extreme.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "cicada/messages/messages.h"

namespace cicada::ipc {

template <typename T>
inline constexpr T kMost = std::numeric_limits<T>::max();

// Every byte there is, among them those that end C texts and are no UTF-8.
inline std::string all_bytes() {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text.push_back(static_cast<char>(byte));
  return text;
}

inline std::vector<messages::ToEngine> to_engine_examples() {
  using namespace messages;
  const Sampling sampling{.temperature = 0.7F,
                          .top_k = 40,
                          .top_p = 0.95F,
                          .min_p = 0.05F,
                          .seed = kMost<std::uint64_t>,
                          .presence_penalty = -2,
                          .frequency_penalty = 2,
                          .repetition_penalty = 1.1F,
                          .logit_bias = {{TokenId(3), -100.0F}, {TokenId(kMost<std::int32_t>), 1}}};
  const Submit submit{.id = 7,
                      .prompt = {TokenId(1), TokenId(-1), TokenId(kMost<std::int32_t>)},
                      .emitted = {TokenId(0)},
                      .max_tokens = kMost<std::uint32_t>,
                      .sampling = sampling,
                      .choice = 5,
                      .end_tokens = {TokenId(2), TokenId(std::numeric_limits<std::int32_t>::min())},
                      .salt = all_bytes(),
                      .tenant = "key-1",
                      .priority = std::numeric_limits<std::int32_t>::min(),
                      .wants_logprobs = true,
                      .top_logprobs = 20};
  return {Submit{}, submit, Cancel{}, Cancel{kMost<std::uint64_t>}, Pause{}, Pause{1, false}};
}

inline std::vector<messages::ToFront> to_front_examples() {
  using namespace messages;
  const Hello hello{.numerics_id = "n2-abc",
                    .architecture = "llama",
                    .rope_theta = 1e300,
                    .zeroed = {"blk.0.attn", "", all_bytes()},
                    .context = 8192,
                    .max_running = 256,
                    .kv_pages = kMost<std::uint64_t>,
                    .page_tokens = 64,
                    .screen = {"plan", "kernels"}};
  const float infinite = std::numeric_limits<float>::infinity();
  const Token token{
      .id = 9,
      .token = TokenId(42),
      .logprob = -infinite,
      .top = {{TokenId(42), -0.0F}, {TokenId(-1), std::numeric_limits<float>::min()}}};
  const Finished finished{.id = 1, .reason = Finish::kCancelled};
  const Stats stats{.running = 1,
                    .waiting = kMost<std::uint32_t>,
                    .kv_pages_held = 3,
                    .kv_pages = 5,
                    .prefix_queries_tokens = 6,
                    .prefix_hits_tokens = 7,
                    .preemptions = 8,
                    .steps = 9,
                    .prefill_tokens = 10,
                    .decode_tokens = kMost<std::uint64_t>,
                    .busy_ns = 12,
                    .step_tokens = {1, kMost<std::uint32_t>, 0}};
  return {Hello{},
          hello,
          Started{},
          Started{3, kMost<std::uint32_t>, true},
          Token{},
          token,
          Finished{},
          finished,
          Failed{},
          Failed{5, Code::kOutOfCapacity, all_bytes()},
          Failed{6, Code::kInvalidArgument, ""},
          Stats{},
          stats};
}

}  // namespace cicada::ipc
