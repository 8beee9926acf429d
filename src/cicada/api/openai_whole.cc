// Chat completions and text completions, sent whole.
#include <algorithm>
#include <string>

#include "cicada/api/openai_words.h"
#include "cicada/api/reply_writers.h"
#include "cicada/api/usage_json.h"
#include "cicada/api/whole_reply.h"
#include "cicada/json/writer.h"

namespace cicada::api {
namespace {

std::string joined(const ReplyChoice& choice, ReplyBlock::Kind kind) {
  std::string text;
  for (const ReplyBlock& block : choice.blocks) {
    if (block.kind == kind) text += block.text;
  }
  return text;
}

void write_tool_calls(json::Writer& writer, const ReplyChoice& choice) {
  writer.key("tool_calls").begin_array();
  for (const ReplyBlock& block : choice.blocks) {
    if (block.kind != ReplyBlock::Kind::kToolCall) continue;
    writer.begin_object().field("id", block.id).field("type", "function");
    writer.key("function").begin_object().field("name", block.name);
    writer.field("arguments", block.text).end_object().end_object();
  }
  writer.end_array();
}

void write_message(json::Writer& writer, const ReplyChoice& choice) {
  const std::string text = joined(choice, ReplyBlock::Kind::kText);
  const std::string thinking = joined(choice, ReplyBlock::Kind::kThinking);
  const bool has_calls = std::ranges::any_of(choice.blocks, [](const ReplyBlock& block) {
    return block.kind == ReplyBlock::Kind::kToolCall;
  });
  writer.key("message").begin_object().field("role", "assistant").key("content");
  if (text.empty() && has_calls) {
    writer.null();
  } else {
    writer.string(text);
  }
  writer.key("refusal").null();
  if (!thinking.empty()) writer.field("reasoning_content", thinking);
  if (has_calls) write_tool_calls(writer, choice);
  writer.end_object();
}

class OpenAiWhole final : public WholeReply {
 public:
  OpenAiWhole(const GenerateRequest& request, const ReplyHead& head)
      : WholeReply(request, head),
        is_chat_(request.dialect == Dialect::kOpenAiChat),
        has_top_(request.top_logprobs > 0) {}

 private:
  std::string body(const Usage& usage) const override {
    json::Writer writer;
    writer.begin_object();
    write_head(writer, head(), is_chat_ ? "chat.completion" : "text_completion");
    writer.key("choices").begin_array();
    std::uint32_t index = 0;
    for (const ReplyChoice& choice : choices()) {
      writer.begin_object().field("index", index++);
      write_choice(writer, choice);
      writer.field("finish_reason", finish_word(choice.reason)).end_object();
    }
    writer.end_array();
    write_openai_usage(writer, usage);
    writer.end_object();
    return writer.take();
  }

  void write_choice(json::Writer& writer, const ReplyChoice& choice) const {
    if (is_chat_) {
      write_message(writer, choice);
      write_chat_logprobs(writer, choice.logprobs);
      return;
    }
    std::string text;
    for (const ReplyBlock& block : choice.blocks) text += block.text;
    writer.field("text", text);
    CompletionLogprobs(has_top_).write(writer, choice.logprobs);
  }

  const bool is_chat_;
  const bool has_top_;
};

}  // namespace

std::unique_ptr<ReplyWriter> make_openai_whole(const GenerateRequest& request,
                                               const ReplyHead& head) {
  return std::make_unique<OpenAiWhole>(request, head);
}

}  // namespace cicada::api
