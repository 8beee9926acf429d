#include <algorithm>

#include "cicada/api/reply.h"
#include "cicada/api/reply_writers.h"

namespace cicada::api {

std::uint32_t num_choices(const GenerateRequest& request) {
  const std::size_t prompts = std::max<std::size_t>(request.prompts.size(), 1);
  return static_cast<std::uint32_t>(prompts) * request.n;
}

std::unique_ptr<ReplyWriter> make_reply_writer(const GenerateRequest& request,
                                               const ReplyHead& head) {
  switch (request.dialect) {
    case Dialect::kAnthropic:
      return request.is_stream ? make_anthropic_stream(request, head)
                               : make_anthropic_whole(request, head);
    case Dialect::kOpenAiChat:
      return request.is_stream ? make_openai_chat_stream(request, head)
                               : make_openai_whole(request, head);
    case Dialect::kOpenAiCompletion:
      break;
  }
  return request.is_stream ? make_openai_completion_stream(request, head)
                           : make_openai_whole(request, head);
}

}  // namespace cicada::api
