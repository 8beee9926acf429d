// Fuzzes a whole chat: the first line of the input is a message, the rest a template. Any bytes
// give ids or an error that is not ours, and the message never writes a control token by itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cicada/base/check.h"
#include "cicada/chat/chat_template.h"
#include "cicada/chat/tiny_tokenizer_for_test.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using cicada::Code;
  static const cicada::chat::TinyVocabulary kVocabulary;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(input.find('\n'), input.size());
  const std::string message(input.substr(0, line));
  const std::string source(input.substr(std::min(line + 1, input.size())));
  const auto chat = cicada::chat::ChatTemplate::compile(source, "<s>", "</s>");
  if (!chat) {
    CICADA_CHECK(chat.error().code() != Code::kInternal, "the bridge panicked");
    return 0;
  }
  const auto ids = chat->encode({{"user", message}}, kVocabulary.tokenizer(), {});
  if (!ids) {
    CICADA_CHECK(ids.error().code() != Code::kInternal, "the bridge panicked");
    return 0;
  }
  // Control tokens begin with '<' here: a template without it has none to write.
  if (source.find_first_of("<\\%") == std::string::npos) {
    const auto end = kVocabulary.id("<|im_end|>");
    CICADA_CHECK(std::ranges::count(*ids, end) == 0, "a message wrote a control token");
  }
  return 0;
}
