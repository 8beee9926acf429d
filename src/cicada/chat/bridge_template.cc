#include "cicada/chat/bridge_template.h"

#include "cicada_bridge.h"

namespace cicada::chat {
namespace {

std::string take(CicadaBridgeText& text) {
  std::string copy(text.data == nullptr ? "" : text.data, text.size);
  cicada_bridge_text_free(&text);
  return copy;
}

tl::unexpected<Error> error_of(CicadaBridgeStatus status, const std::string& message) {
  switch (status) {
    case CICADA_BRIDGE_RAISED:
      if (message.find_first_not_of(" \t\r\n") == std::string::npos) {
        return fail(Code::kInvalidArgument,
                    "the chat template refused the conversation without saying why");
      }
      return fail(Code::kInvalidArgument, "{}", message);
    case CICADA_BRIDGE_SYNTAX:
    case CICADA_BRIDGE_OTHER:
      return fail(Code::kInvalidArgument, "chat template: {}", message);
    case CICADA_BRIDGE_LIMIT:
      return fail(Code::kDeadlineExceeded, "chat template: {}", message);
    case CICADA_BRIDGE_OK:
    case CICADA_BRIDGE_INTERNAL:
      break;
  }
  return fail(Code::kInternal, "chat template: {}", message);
}

}  // namespace

void BridgeTemplate::Free::operator()(CicadaTemplate* compiled) const {
  cicada_template_free(compiled);
}

Result<BridgeTemplate> BridgeTemplate::compile(std::string_view source) {
  CicadaTemplate* compiled = nullptr;
  CicadaBridgeText error{};
  const CicadaBridgeStatus status =
      cicada_template_compile(source.data(), source.size(), &compiled, &error);
  if (status != CICADA_BRIDGE_OK) return error_of(status, take(error));
  return BridgeTemplate(compiled);
}

Result<std::string> BridgeTemplate::render(std::string_view variables, const RenderLimits& limits,
                                           std::int64_t now_unix_s) const {
  const CicadaRenderLimits bounds{.max_output_bytes = limits.max_output_bytes,
                                  .max_memory_bytes = limits.max_memory_bytes,
                                  .max_time_ms = limits.max_time_ms};
  CicadaBridgeText text{};
  const CicadaBridgeStatus status = cicada_template_render(
      compiled_.get(), variables.data(), variables.size(), &bounds, now_unix_s, &text);
  std::string result = take(text);
  if (status != CICADA_BRIDGE_OK) return error_of(status, result);
  return result;
}

}  // namespace cicada::chat
