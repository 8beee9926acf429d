// Fuzzes a whole chat: the first line of the input is the text of a user, wherever users' text can
// be (messages, calls, results, tools and their JSON); the rest is a template. Any bytes give ids
// or an error that is not ours, and the user never writes a control token by himself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/check.h"
#include "cicada/chat/chat_template.h"
#include "cicada/chat/tiny_tokenizer_for_test.h"
#include "cicada/json/writer.h"

namespace {

using cicada::Code;
using cicada::chat::ChatTemplate;
using cicada::chat::Message;
using cicada::chat::RenderOptions;
using cicada::chat::Tool;

struct Conversation {
  std::vector<Message> messages;
  std::vector<Tool> tools;
};

Conversation conversation(const std::string& text) {
  // The text as JSON, if it looks like it, or in it.
  const std::string quoted = cicada::json::quote(text);
  const std::string json = text.starts_with('{') ? text : "{" + quoted + ": [" + quoted + "]}";
  return {.messages = {{"user", text},
                       {"assistant", text, text, {{text, text, json}}},
                       {"tool", text, "", {}, text},
                       {"assistant", text}},
          .tools = {{text, text, json}}};
}

void check(const ChatTemplate& chat, std::string_view source, const std::vector<Message>& messages,
           const RenderOptions& options) {
  static const cicada::chat::TinyVocabulary kVocabulary;
  const auto ids = chat.encode(messages, kVocabulary.tokenizer(), options);
  if (!ids) {
    CICADA_CHECK(ids.error().code() != Code::kInternal, "the bridge panicked");
    return;
  }
  // Control tokens begin with '<' here: a template without it has none to write.
  if (source.find_first_of("<\\%") == std::string::npos) {
    const auto end = kVocabulary.id("<|im_end|>");
    CICADA_CHECK(std::ranges::count(*ids, end) == 0, "a message wrote a control token");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(input.find('\n'), input.size());
  const std::string text(input.substr(0, line));
  const std::string source(input.substr(std::min(line + 1, input.size())));
  const auto chat = ChatTemplate::compile(source, "<s>", "</s>");
  if (!chat) {
    CICADA_CHECK(chat.error().code() != Code::kInternal, "the bridge panicked");
    return 0;
  }
  check(*chat, source, {{"user", text}}, {});
  const Conversation tools = conversation(text);
  check(*chat, source, tools.messages,
        {.tools = tools.tools, .enable_thinking = true, .continue_last = size % 2 == 0});
  return 0;
}
