// Gathers an answer that is sent whole: the calls give nothing until end() gives the body.
// Threads: one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/api/reply.h"

namespace cicada::api {

// A stretch of an answer, in the order it came.
struct ReplyBlock {
  enum class Kind : std::uint8_t { kText, kThinking, kToolCall };
  Kind kind = Kind::kText;
  std::string text;  // of a call: its arguments
  std::string id;    // of a call
  std::string name;  // of a call
};

struct ReplyChoice {
  std::vector<ReplyBlock> blocks;
  std::vector<TokenLogprob> logprobs;
  StopReason reason = StopReason::kEnd;
  std::string stop_sequence;
};

class WholeReply : public ReplyWriter {
 public:
  WholeReply(const GenerateRequest& request, const ReplyHead& head);

  std::string begin(const Usage& usage) final;
  std::string text(std::uint32_t choice, std::string_view text,
                   std::span<const TokenLogprob> logprobs) final;
  std::string thinking(std::uint32_t choice, std::string_view text) final;
  std::string tool_call(std::uint32_t choice, std::uint32_t call, std::string_view id,
                        std::string_view name) final;
  std::string tool_arguments(std::uint32_t choice, std::uint32_t call,
                             std::string_view json_piece) final;
  std::string finish(std::uint32_t choice, StopReason reason, std::string_view stop_sequence) final;
  std::string end(const Usage& usage) final { return body(usage); }
  std::string ping() final { return {}; }
  std::string error(const ApiError& /*error*/) final { return {}; }

 protected:
  virtual std::string body(const Usage& usage) const = 0;

  const ReplyHead& head() const { return head_; }
  bool wants_logprobs() const { return wants_logprobs_; }
  const std::vector<ReplyChoice>& choices() const { return choices_; }

 private:
  ReplyBlock& block(std::uint32_t choice, ReplyBlock::Kind kind);

  const ReplyHead head_;
  const bool wants_logprobs_;
  std::vector<ReplyChoice> choices_;
};

}  // namespace cicada::api
