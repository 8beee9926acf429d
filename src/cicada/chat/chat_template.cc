#include "cicada/chat/chat_template.h"

#include <cstddef>
#include <optional>
#include <unordered_set>
#include <utility>

#include "cicada/chat/bridge_template.h"
#include "cicada/chat/message_marks.h"
#include "cicada/chat/utf8.h"
#include "cicada/json/writer.h"

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

Result<void> check_utf8(const std::vector<Message>& messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (const auto at = first_invalid_utf8(messages[i].role)) {
      return fail(Code::kInvalidArgument, "message {}: role: invalid UTF-8 at byte {}", i, *at);
    }
    if (const auto at = first_invalid_utf8(messages[i].content)) {
      return fail(Code::kInvalidArgument, "message {} ({}): content: invalid UTF-8 at byte {}", i,
                  messages[i].role, *at);
    }
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
  BridgeTemplate compiled;

  // Everything the template sees, as transformers names it.
  std::string variables(const std::vector<Message>& messages, const RenderOptions& options) const {
    json::Writer out;
    out.begin_object().key("messages").begin_array();
    for (const Message& message : messages) {
      out.begin_object().field("role", message.role).field("content", message.content).end_object();
    }
    out.end_array();
    out.key("tools").null().key("documents").null();
    out.field("add_generation_prompt", options.add_generation_prompt);
    out.field("bos_token", bos).field("eos_token", eos);
    out.end_object();
    return out.take();
  }

  Result<std::string> run(const std::vector<Message>& messages,
                          const RenderOptions& options) const {
    return compiled.render(variables(messages, options), RenderLimits(), options.now_unix_s);
  }
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::compile(std::string source, std::string bos, std::string eos) {
  CICADA_ASSIGN(BridgeTemplate compiled, BridgeTemplate::compile(source));
  auto literals = tag_literals(source);
  return ChatTemplate(std::make_unique<Impl>(Impl{.source = std::move(source),
                                                  .bos = std::move(bos),
                                                  .eos = std::move(eos),
                                                  .literals = std::move(literals),
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

Result<std::string> ChatTemplate::render(const std::vector<Message>& messages,
                                         const RenderOptions& options) const {
  CICADA_TRY(check_utf8(messages));
  return impl_->run(messages, options);
}

Result<std::vector<TokenId>> ChatTemplate::encode(const std::vector<Message>& messages,
                                                  const tokenizer::Tokenizer& tokenizer,
                                                  const RenderOptions& options) const {
  CICADA_TRY(check_utf8(messages));
  std::vector<std::string_view> texts = {impl_->source, impl_->bos, impl_->eos};
  for (const Message& message : messages) {
    texts.push_back(message.role);
    texts.push_back(message.content);
  }
  CICADA_ASSIGN(const MessageMarks marks, MessageMarks::create(tokenizer, impl_->literals, texts));
  std::vector<Message> marked;
  marked.reserve(messages.size());
  for (const Message& message : messages) {
    marked.push_back({marks.mark(message.role), marks.mark(message.content)});
  }
  CICADA_ASSIGN(const std::string rendered, impl_->run(marked, options));
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
