// GET /v1/models and /v1/models/{id}: one object that both vendors' clients read.
// Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/api/error.h"

namespace cicada::api {

struct ModelCard {
  std::string id;
  std::string display_name;
  std::int64_t created_unix_s = 0;
  std::uint64_t max_input_tokens = 0;  // of a prompt and its answer
  std::uint64_t max_tokens = 0;        // of an answer
};

// The query's parameters as they come; empty: absent.
struct ModelsQuery {
  std::string_view limit;  // 1 to 1000; absent: 1000, since OpenAI's clients do not ask for a
                           // second page
  std::string_view after_id;
  std::string_view before_id;
  std::vector<std::string_view> lifecycle;  // "active", "deprecated", "retired"; empty: any
};

// {"object":"list","data","has_more","first_id","last_id"}. Every model is active.
// Errors: 400 for a limit out of range, a cursor that names no model, an unknown word.
Parsed<std::string> models_body(std::span<const ModelCard> models, const ModelsQuery& query);

// Errors: model_not_found().
Parsed<std::string> model_body(std::span<const ModelCard> models, std::string_view id);

// 404 with OpenAI's code "model_not_found", naming those that are there.
ApiError model_not_found(std::span<const ModelCard> models, std::string_view id);

// "2026-11-30T20:25:54Z"
std::string rfc3339(std::int64_t unix_s);

}  // namespace cicada::api
