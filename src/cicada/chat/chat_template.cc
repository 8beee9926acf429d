#include "cicada/chat/chat_template.h"

#include <cstddef>
#include <optional>
#include <unordered_set>
#include <utility>

#include "cicada/chat/bridge_template.h"
#include "cicada/chat/message_marks.h"
#include "cicada/chat/open_turn.h"
#include "cicada/chat/template_input.h"
#include "cicada/chat/template_source.h"
#include "cicada/chat/tools_as_text.h"

namespace cicada::chat {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";
constexpr std::string_view kFallbackNote =
    "the model file has no chat template; ChatML is used, which the model may not know";
constexpr std::string_view kChatMl =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

std::string unchanged(std::string_view text) { return std::string(text); }

// A conversation as the template is to see it.
struct Prepared {
  std::vector<Message> messages;
  std::span<const Tool> tools;
  std::string private_use;  // see check_conversation()
  std::string end_mark;     // see open_turn.h; empty: every message is closed

  // All that may hold a private-use character.
  std::vector<std::string_view> texts() const {
    std::vector<std::string_view> all = texts_of(messages, tools);
    all.emplace_back(private_use);
    return all;
  }
};

Result<void> check_continuable(const std::vector<Message>& messages) {
  if (messages.empty()) return fail(Code::kInvalidArgument, "there is no message to be continued");
  const Message& last = messages.back();
  if (last.role != "assistant") {
    return fail(Code::kInvalidArgument,
                "message {}: role is {}, only an assistant's message can be continued",
                messages.size() - 1, last.role);
  }
  if (!last.tool_calls.empty()) {
    return fail(Code::kInvalidArgument, "message {}: with tool calls it cannot be continued",
                messages.size() - 1);
  }
  return {};
}

std::string text_of(const tokenizer::Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id ? std::string(tokenizer.token_text(*id)) : std::string();
}

}  // namespace

struct ChatTemplate::Impl {
  std::string source;
  std::string bos;
  std::string eos;
  std::unordered_set<std::string> literals;  // of `source`, see message_marks.h
  bool knows_tools = false;
  bool has_short_ids = false;
  BridgeTemplate compiled;

  Result<Prepared> prepare(const std::vector<Message>& messages,
                           const RenderOptions& options) const {
    Prepared prepared{.messages = {}, .tools = options.tools, .private_use = {}, .end_mark = {}};
    CICADA_TRY(check_conversation(messages, options.tools, prepared.private_use));
    if (options.continue_last) CICADA_TRY(check_continuable(messages));
    if (!knows_tools && uses_tools(messages, options.tools)) {
      CICADA_ASSIGN(prepared.messages, tools_as_text(messages, options.tools));
      prepared.tools = {};
    } else {
      prepared.messages = messages;
    }
    if (options.continue_last) {
      std::vector<std::string_view> texts = prepared.texts();
      texts.insert(texts.end(), {source, bos, eos});
      CICADA_ASSIGN(prepared.end_mark, choose_end_mark(texts));
      prepared.messages.back().content += end_tag(prepared.end_mark);
    }
    return prepared;
  }

  // The rendered text, every text of the conversation through `map`.
  Result<std::string> run(const Prepared& prepared, const RenderOptions& options,
                          const TextMap& map) const {
    const TemplateInput input{.messages = prepared.messages,
                              .tools = prepared.tools,
                              .bos = bos,
                              .eos = eos,
                              .has_short_ids = has_short_ids};
    CICADA_ASSIGN(const std::string variables, template_variables(input, options, map));
    CICADA_ASSIGN(std::string text, compiled.render(variables, RenderLimits(), options.now_unix_s));
    if (prepared.end_mark.empty()) return text;
    return cut_at_mark(std::move(text), prepared.end_mark);
  }
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::compile(std::string source, std::string bos, std::string eos) {
  CICADA_ASSIGN(BridgeTemplate compiled, BridgeTemplate::compile(source));
  auto literals = tag_literals(source);
  const bool knows_tools = reads_variable(source, "tools");
  const bool has_short_ids = source.find("[TOOL_CALLS]") != std::string::npos;
  return ChatTemplate(std::make_unique<Impl>(Impl{.source = std::move(source),
                                                  .bos = std::move(bos),
                                                  .eos = std::move(eos),
                                                  .literals = std::move(literals),
                                                  .knows_tools = knows_tools,
                                                  .has_short_ids = has_short_ids,
                                                  .compiled = std::move(compiled)}));
}

Result<ChatTemplate> ChatTemplate::from_model(const formats::ModelFile& file,
                                              const tokenizer::Tokenizer& tokenizer) {
  auto result = from_model(file.metadata(), tokenizer);
  if (!result) return fail(std::move(result).error().with_context(file.path()));
  return result;
}

Result<ChatTemplate> ChatTemplate::from_model(const formats::Metadata& metadata,
                                              const tokenizer::Tokenizer& tokenizer) {
  CICADA_ASSIGN(const auto stored, metadata.get_string(kTemplateKey));
  const bool is_fallback = !stored || stored->empty();
  CICADA_ASSIGN(ChatTemplate result,
                compile(std::string(is_fallback ? kChatMl : *stored),
                        text_of(tokenizer, tokenizer.bos()), text_of(tokenizer, tokenizer.eos())));
  result.is_fallback_ = is_fallback;
  return result;
}

std::string_view ChatTemplate::fallback_note() const {
  return is_fallback_ ? kFallbackNote : std::string_view();
}

std::string_view ChatTemplate::source() const { return impl_->source; }

bool ChatTemplate::knows_tools() const { return impl_->knows_tools; }

Result<std::string> ChatTemplate::render(const std::vector<Message>& messages,
                                         const RenderOptions& options) const {
  CICADA_ASSIGN(const Prepared prepared, impl_->prepare(messages, options));
  return impl_->run(prepared, options, unchanged);
}

Result<std::vector<TokenId>> ChatTemplate::encode(const std::vector<Message>& messages,
                                                  const tokenizer::Tokenizer& tokenizer,
                                                  const RenderOptions& options) const {
  CICADA_ASSIGN(const Prepared prepared, impl_->prepare(messages, options));
  std::vector<std::string_view> texts = prepared.texts();
  texts.insert(texts.end(), {impl_->source, impl_->bos, impl_->eos});
  CICADA_ASSIGN(const MessageMarks marks, MessageMarks::create(tokenizer, impl_->literals, texts));
  const auto mark = [&marks](std::string_view text) { return marks.mark(text); };
  CICADA_ASSIGN(const std::string rendered, impl_->run(prepared, options, mark));
  const MessageMarks::Unmarked prompt = marks.unmark(rendered);
  std::vector<TokenId> ids = tokenizer.encode(
      prompt.text, {.parse_special = true, .add_bos = false, .plain_ranges = prompt.plain_ranges});
  // One BOS: the template's own, or ours. Templates and tokenizers both like to write it.
  if (const auto bos = tokenizer.bos()) {
    std::size_t written = 0;
    while (written < ids.size() && ids[written] == *bos) ++written;
    if (written > 1) ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(written - 1));
    if (written == 0 && tokenizer.wants_bos()) ids.insert(ids.begin(), *bos);
  }
  return ids;
}

}  // namespace cicada::chat
