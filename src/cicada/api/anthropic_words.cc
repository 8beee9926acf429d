#include "cicada/api/anthropic_words.h"

namespace cicada::api {
namespace {

std::string_view stop_reason_word(StopReason reason) {
  switch (reason) {
    case StopReason::kEnd:
      return "end_turn";
    case StopReason::kStopSequence:
      return "stop_sequence";
    case StopReason::kMaxTokens:
      return "max_tokens";
    case StopReason::kContextFull:
      return "model_context_window_exceeded";
    case StopReason::kToolCalls:
      return "tool_use";
  }
  return "end_turn";
}

}  // namespace

void write_stop_reason(json::Writer& writer, StopReason reason, std::string_view stop_sequence) {
  writer.field("stop_reason", stop_reason_word(reason)).key("stop_sequence");
  if (reason == StopReason::kStopSequence) {
    writer.string(stop_sequence);
  } else {
    writer.null();
  }
}

}  // namespace cicada::api
