// A conversation on its way into a template: checked, and written as the JSON of everything that
// the template sees. Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/chat/chat_template.h"
#include "cicada/chat/message.h"
#include "cicada/chat/tool_json.h"

namespace cicada::chat {

// Appends to `private_use` the private-use characters (of planes 15 and 16) that strings inside of
// JSON stand for; those of other texts can be read there.
// Errors: kInvalidArgument names the message or tool and what is wrong with it: a text that is not
// UTF-8, or JSON that is none, no object, too large or too deep.
Result<void> check_conversation(std::span<const Message> messages, std::span<const Tool> tools,
                                std::string& private_use);

// Every text but those inside of JSON. Views of the arguments.
std::vector<std::string_view> texts_of(std::span<const Message> messages,
                                       std::span<const Tool> tools);

struct TemplateInput {
  std::span<const Message> messages;
  std::span<const Tool> tools;
  std::string_view bos;
  std::string_view eos;
  // Ids of calls must have nine letters and digits, as Mistral's templates ask: others are replaced
  // by such, equal ones by equal ones.
  bool has_short_ids = false;
};

// A JSON object, as transformers hands it to templates; every text of the conversation through
// `map`. Precondition: checked.
Result<std::string> template_variables(const TemplateInput& input, const RenderOptions& options,
                                       const TextMap& map);

}  // namespace cicada::chat
