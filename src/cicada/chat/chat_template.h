// Chat templates: the model file's own Jinja template, rendered through the Rust bridge
// (minijinja), bounded in time, depth and output; ChatML where the file has none.
// docs/chat-templates.md says what a template sees, what bounds it, and how text of messages is
// kept from becoming control tokens. Threads: const members may be called from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/chat/message.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::chat {

struct RenderOptions {
  bool add_generation_prompt = true;  // end with the opening of the assistant's turn
  // What strftime_now() in a template reads, in seconds since 1970 as UTC. The caller's clock, so
  // that rendering depends on nothing but its arguments.
  std::int64_t now_unix_s = 0;
  // What the model may call; none: the template sees no tools. Borrowed for the call.
  std::span<const Tool> tools = {};
  // The template's variable of that name; nothing: it is undefined, the template's own default.
  std::optional<bool> enable_thinking = {};
  // The last message is the assistant's and stays open: the text ends with its content, without the
  // whitespace at its end if the template takes that off. add_generation_prompt does not count.
  bool continue_last = false;
};

class ChatTemplate {
 public:
  // Compiles `source`; `bos` and `eos` are the token texts the template sees (empty: none).
  // Errors: kInvalidArgument with the template's line and reason when it cannot be parsed;
  // kDeadlineExceeded when it is longer than 1 MiB.
  static Result<ChatTemplate> compile(std::string source, std::string bos, std::string eos);

  // The template of a model file, or ChatML when it has none (is_fallback() is then true).
  // Errors, with the file's path: as compile(); kCorrupt when the file's template is not a text.
  static Result<ChatTemplate> from_model(const formats::ModelFile& file,
                                         const tokenizer::Tokenizer& tokenizer);
  // The same from metadata alone. Errors name no file.
  static Result<ChatTemplate> from_model(const formats::Metadata& metadata,
                                         const tokenizer::Tokenizer& tokenizer);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  bool is_fallback() const { return is_fallback_; }
  // One sentence for the user when is_fallback(), else empty.
  std::string_view fallback_note() const;
  std::string_view source() const;
  // Whether it reads `tools`. Where not, tools, calls and results are given to it as text of
  // messages, in Hermes form (docs/chat-templates.md, "Tools").
  bool knows_tools() const;

  // Errors: kInvalidArgument with the template's own words when it calls raise_exception (or that
  // it gave none), with line and reason when it fails otherwise, for text that is not UTF-8, for
  // arguments and schemas that are no JSON objects (of at most 1 MiB and 64 levels), and for a last
  // message that cannot be continued; kDeadlineExceeded when it exceeds its limit of steps, time,
  // depth, memory or output.
  Result<std::string> render(const std::vector<Message>& messages,
                             const RenderOptions& options) const;

  // Renders and encodes so that text from messages is never read as a control token, and so that
  // there is exactly one BOS if the model wants one or the template wrote one. Where no message
  // could write a control token, ids are those of the rendered text with parse_special set.
  // Errors: as render().
  Result<std::vector<TokenId>> encode(const std::vector<Message>& messages,
                                      const tokenizer::Tokenizer& tokenizer,
                                      const RenderOptions& options) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  bool is_fallback_ = false;
};

}  // namespace cicada::chat
