// The endpoints: what each path does. One file a family.
// Threads: the loop's.
#pragma once

#include <memory>

#include "cicada/server/call.h"

namespace cicada::server {

// Answers (answers.cc).
void post_messages(const std::shared_ptr<Call>& call);
void post_chat_completions(const std::shared_ptr<Call>& call);
void post_completions(const std::shared_ptr<Call>& call);
void post_count_tokens(const std::shared_ptr<Call>& call);

// Text to ids and back (tokens.cc).
void post_tokenize(const std::shared_ptr<Call>& call);
void post_detokenize(const std::shared_ptr<Call>& call);

// The models that are here (models.cc).
void get_models(const std::shared_ptr<Call>& call);
void get_model(const std::shared_ptr<Call>& call);

// How the server is (state.cc).
void get_root(const std::shared_ptr<Call>& call);
void get_health(const std::shared_ptr<Call>& call);
void get_version(const std::shared_ptr<Call>& call);
void get_metrics(const std::shared_ptr<Call>& call);

}  // namespace cicada::server
