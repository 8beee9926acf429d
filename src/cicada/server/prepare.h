// From a request to the ids that the engine gets.
// Threads: pure functions; they may take some tenths of a second, so not on the loop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/api/error.h"
#include "cicada/api/request.h"
#include "cicada/base/ids.h"
#include "cicada/chat/chat_template.h"
#include "cicada/chat/reply_parser.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::server {

struct Prepared {
  std::vector<std::vector<TokenId>> prompts;  // one of a chat
  std::vector<std::string> prompt_texts;      // where they are to be echoed
  chat::ReplySyntax syntax;
  // Tokens up to the last cache mark of each kind; 0: there is none.
  std::uint64_t marked_5m = 0;
  std::uint64_t marked_1h = 0;
};

// An id that a client sent. Errors: 400, "<what> 77 is outside the vocabulary, 0 to 63 are
// allowed".
api::Parsed<TokenId> token_of(const tokenizer::Tokenizer& tokenizer, std::int64_t id,
                              std::string_view what, std::string param);

struct Preparer {
  const tokenizer::Tokenizer* tokenizer = nullptr;
  const chat::ChatTemplate* chat_template = nullptr;

  // Errors: what the client is told: the template's own words, an id outside the vocabulary.
  api::Parsed<Prepared> prepare(const api::GenerateRequest& request, std::int64_t now_unix_s) const;

 private:
  api::Parsed<Prepared> prepare_chat(const api::GenerateRequest& request,
                                     std::int64_t now_unix_s) const;
  api::Parsed<std::vector<TokenId>> completion_ids(const api::CompletionPrompt& prompt,
                                                   std::size_t index) const;
};

}  // namespace cicada::server
