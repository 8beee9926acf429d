// The writers behind make_reply_writer(), one for each dialect and way of sending.
// Threads: as ReplyWriter.
#pragma once

#include <memory>

#include "cicada/api/reply.h"

namespace cicada::api {

std::unique_ptr<ReplyWriter> make_anthropic_stream(const GenerateRequest& request,
                                                   const ReplyHead& head);
std::unique_ptr<ReplyWriter> make_anthropic_whole(const GenerateRequest& request,
                                                  const ReplyHead& head);
std::unique_ptr<ReplyWriter> make_openai_chat_stream(const GenerateRequest& request,
                                                     const ReplyHead& head);
std::unique_ptr<ReplyWriter> make_openai_completion_stream(const GenerateRequest& request,
                                                           const ReplyHead& head);
// Of both of OpenAI's dialects.
std::unique_ptr<ReplyWriter> make_openai_whole(const GenerateRequest& request,
                                               const ReplyHead& head);

// Choices of a request: n of each prompt, or of its one chat.
std::uint32_t num_choices(const GenerateRequest& request);

}  // namespace cicada::api
