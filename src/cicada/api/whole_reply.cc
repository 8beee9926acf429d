#include "cicada/api/whole_reply.h"

#include "cicada/api/reply_writers.h"

namespace cicada::api {

WholeReply::WholeReply(const GenerateRequest& request, const ReplyHead& head)
    : head_(head), wants_logprobs_(request.wants_logprobs), choices_(num_choices(request)) {}

// The block that a piece of this kind belongs to.
ReplyBlock& WholeReply::block(std::uint32_t choice, ReplyBlock::Kind kind) {
  auto& blocks = choices_.at(choice).blocks;
  if (blocks.empty() || blocks.back().kind != kind) blocks.push_back({.kind = kind});
  return blocks.back();
}

std::string WholeReply::begin(const Usage& /*usage*/) { return {}; }

std::string WholeReply::text(std::uint32_t choice, std::string_view text,
                             std::span<const TokenLogprob> logprobs) {
  if (!text.empty()) block(choice, ReplyBlock::Kind::kText).text += text;
  if (wants_logprobs_) {
    auto& all = choices_.at(choice).logprobs;
    all.insert(all.end(), logprobs.begin(), logprobs.end());
  }
  return {};
}

std::string WholeReply::thinking(std::uint32_t choice, std::string_view text) {
  if (!text.empty()) block(choice, ReplyBlock::Kind::kThinking).text += text;
  return {};
}

std::string WholeReply::tool_call(std::uint32_t choice, std::uint32_t /*call*/, std::string_view id,
                                  std::string_view name) {
  choices_.at(choice).blocks.push_back({.kind = ReplyBlock::Kind::kToolCall,
                                        .text = {},
                                        .id = std::string(id),
                                        .name = std::string(name)});
  return {};
}

std::string WholeReply::tool_arguments(std::uint32_t choice, std::uint32_t /*call*/,
                                       std::string_view json_piece) {
  block(choice, ReplyBlock::Kind::kToolCall).text += json_piece;
  return {};
}

std::string WholeReply::finish(std::uint32_t choice, StopReason reason,
                               std::string_view stop_sequence) {
  choices_.at(choice).reason = reason;
  choices_.at(choice).stop_sequence = stop_sequence;
  return {};
}

}  // namespace cicada::api
