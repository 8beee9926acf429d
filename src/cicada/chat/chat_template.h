// Chat templates: the model file's own Jinja template, rendered through the Rust bridge (minijinja),
// bounded in time, depth and output; ChatML where the file has none.
// Threads: const members may be called from several threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::chat {

struct Message {
  std::string role;  // "system", "user", "assistant", …
  std::string content;
};

struct RenderOptions {
  bool add_generation_prompt = true;  // end with the opening of the assistant's turn
};

class ChatTemplate {
 public:
  // Compiles `source`; `bos` and `eos` are the token texts the template sees.
  // Errors: kInvalidArgument with the template's line and reason when it cannot be parsed.
  static Result<ChatTemplate> compile(std::string source, std::string bos, std::string eos);

  // The template of a model file, or ChatML when it has none (is_fallback() is then true).
  static Result<ChatTemplate> from_model(const formats::ModelFile& file,
                                         const tokenizer::Tokenizer& tokenizer);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  bool is_fallback() const { return is_fallback_; }

  // Errors: kInvalidArgument with the template's own words when it calls raise_exception;
  // kDeadlineExceeded when it exceeds its fuel, depth or output limit.
  Result<std::string> render(const std::vector<Message>& messages,
                             const RenderOptions& options) const;

  // Renders and encodes so that text from messages is never read as a control token, and so that
  // there is exactly one BOS if the model wants one (whether or not the template wrote it).
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
