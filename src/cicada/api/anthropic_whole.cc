#include "cicada/api/anthropic_words.h"
#include "cicada/api/limits.h"
#include "cicada/api/reply_writers.h"
#include "cicada/api/usage_json.h"
#include "cicada/api/whole_reply.h"
#include "cicada/json/parse.h"
#include "cicada/json/writer.h"

namespace cicada::api {
namespace {

// Arguments as the object that clients expect. What a model wrote wrongly is kept, the way the
// vendor advises.
void write_input(json::Writer& writer, const std::string& arguments) {
  writer.key("input");
  if (arguments.empty()) {
    writer.begin_object().end_object();
    return;
  }
  const auto document = json::parse(arguments, kBodyLimits);
  if (document && document->root().is_object()) {
    writer.raw(simdjson::minify(document->root()));
  } else {
    writer.begin_object().field("INVALID_JSON", arguments).end_object();
  }
}

class AnthropicWhole final : public WholeReply {
 public:
  AnthropicWhole(const GenerateRequest& request, const ReplyHead& head)
      : WholeReply(request, head), hides_thinking_(request.hides_thinking) {}

 private:
  std::string body(const Usage& usage) const override {
    const ReplyChoice& choice = choices().front();
    json::Writer writer;
    writer.begin_object().field("id", head().id).field("type", "message");
    writer.field("role", "assistant").field("model", head().model);
    writer.key("content").begin_array();
    for (const ReplyBlock& block : choice.blocks) write_block(writer, block);
    writer.end_array();
    write_stop_reason(writer, choice.reason, choice.stop_sequence);
    write_anthropic_usage(writer, usage, UsagePlace::kWhole);
    writer.end_object();
    return writer.take();
  }

  void write_block(json::Writer& writer, const ReplyBlock& block) const {
    writer.begin_object();
    switch (block.kind) {
      case ReplyBlock::Kind::kText:
        writer.field("type", "text").field("text", block.text);
        break;
      case ReplyBlock::Kind::kThinking:
        writer.field("type", "thinking").field("thinking", hides_thinking_ ? "" : block.text);
        writer.field("signature", kThinkingSignature);
        break;
      case ReplyBlock::Kind::kToolCall:
        writer.field("type", "tool_use").field("id", block.id).field("name", block.name);
        write_input(writer, block.text);
        break;
    }
    writer.end_object();
  }

  const bool hides_thinking_;
};

}  // namespace

std::unique_ptr<ReplyWriter> make_anthropic_whole(const GenerateRequest& request,
                                                  const ReplyHead& head) {
  return std::make_unique<AnthropicWhole>(request, head);
}

}  // namespace cicada::api
