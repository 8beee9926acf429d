#include "cicada/server/prepare.h"

#include <algorithm>

#include "cicada/chat/answer_text.h"

namespace cicada::server {
namespace {

using Ids = std::vector<TokenId>;

std::size_t common_tokens(const Ids& a, const Ids& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

}  // namespace

api::Parsed<TokenId> token_of(const tokenizer::Tokenizer& tokenizer, std::int64_t id,
                              std::string_view what, std::string param) {
  const std::int64_t vocab = tokenizer.vocab_size();
  if (id >= 0 && id < vocab) return TokenId(static_cast<std::int32_t>(id));
  return fail(api::make_api_error(
      400, fmt::format("{} {} is outside the vocabulary, 0 to {} are allowed", what, id, vocab - 1),
      {}, std::move(param)));
}

api::Parsed<Prepared> Preparer::prepare(const api::GenerateRequest& request,
                                        std::int64_t now_unix_s) const {
  if (request.dialect != api::Dialect::kOpenAiCompletion) return prepare_chat(request, now_unix_s);
  Prepared prepared;
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    auto ids = completion_ids(request.prompts[i], i);
    if (!ids) return fail(std::move(ids).error());
    if (request.echo) prepared.prompt_texts.push_back(tokenizer->decode(*ids, false));
    prepared.prompts.push_back(std::move(*ids));
  }
  return prepared;
}

api::Parsed<Prepared> Preparer::prepare_chat(const api::GenerateRequest& request,
                                             std::int64_t now_unix_s) const {
  chat::RenderOptions options;
  options.add_generation_prompt = request.opens_answer && !request.continues_last;
  options.continue_last = request.continues_last;
  options.tools = request.tools;
  options.enable_thinking = request.is_thinking;
  options.now_unix_s = now_unix_s;
  auto ids = chat_template->encode(request.messages, *tokenizer, options);
  if (!ids) return fail(api::to_api_error(ids.error()));
  Prepared prepared;
  for (const bool is_one_hour : {false, true}) {
    std::size_t last = 0;
    for (const api::CacheMark& mark : request.cache_marks) {
      if (mark.is_one_hour == is_one_hour) last = std::max(last, mark.message + 1);
    }
    if (last == 0) continue;
    std::size_t tokens = ids->size();
    if (last < request.messages.size()) {
      const std::vector<chat::Message> head(
          request.messages.begin(), request.messages.begin() + static_cast<std::ptrdiff_t>(last));
      chat::RenderOptions head_options = options;
      head_options.add_generation_prompt = false;
      head_options.continue_last = false;
      // Some templates refuse a part of a conversation: then all of it counts.
      const auto head_ids = chat_template->encode(head, *tokenizer, head_options);
      if (head_ids) tokens = common_tokens(*head_ids, *ids);
    }
    (is_one_hour ? prepared.marked_1h : prepared.marked_5m) = tokens;
  }
  prepared.syntax = chat::ReplySyntax::of(chat_template->source(), !request.tools.empty());
  prepared.syntax.begins_thinking = chat::ends_in_thought(prepared.syntax, *tokenizer, *ids);
  prepared.prompts.push_back(std::move(*ids));
  return prepared;
}

api::Parsed<Ids> Preparer::completion_ids(const api::CompletionPrompt& prompt,
                                          std::size_t index) const {
  if (!prompt.is_ids) {
    return tokenizer->encode(prompt.text,
                             {.parse_special = true, .add_bos = tokenizer->wants_bos()});
  }
  const std::string what = fmt::format("prompt {}: token id", index);
  Ids ids;
  ids.reserve(prompt.ids.size());
  for (const std::int64_t id : prompt.ids) {
    CICADA_ASSIGN(const TokenId token, token_of(*tokenizer, id, what, "prompt"));
    ids.push_back(token);
  }
  return ids;
}

}  // namespace cicada::server
