#include "cicada/api/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "cicada/api/fields.h"
#include "cicada/base/text.h"
#include "cicada/json/writer.h"

namespace cicada::api {
namespace {

constexpr std::size_t kMaxLimit = 1000;
constexpr std::size_t kMaxListed = 8;

struct Page {
  std::span<const ModelCard> models;
  bool has_more = false;
};

tl::unexpected<ApiError> refuse_parameter(std::string_view name, std::string_view found,
                                          std::string_view allowed) {
  return fail(make_api_error(400,
                             fmt::format("{}: found {}, allowed {}", name, quoted(found), allowed),
                             {}, std::string(name)));
}

Parsed<std::size_t> limit_of(const ModelsQuery& query) {
  if (query.limit.empty()) return kMaxLimit;
  const auto limit = whole_text_number<std::size_t>(query.limit);
  if (!limit || *limit < 1 || *limit > kMaxLimit) {
    return refuse_parameter("limit", query.limit, "an integer from 1 to 1000");
  }
  return *limit;
}

Parsed<bool> wants_active(const ModelsQuery& query) {
  static constexpr std::array<std::string_view, 3> kWords = {"active", "deprecated", "retired"};
  for (const std::string_view word : query.lifecycle) {
    if (std::ranges::find(kWords, word) == kWords.end()) {
      return refuse_parameter("lifecycle", word, "active, deprecated, retired");
    }
  }
  return query.lifecycle.empty() ||
         std::ranges::find(query.lifecycle, "active") != query.lifecycle.end();
}

Parsed<std::size_t> cursor_index(std::span<const ModelCard> models, std::string_view name,
                                 std::string_view id) {
  const auto at = std::ranges::find(models, id, &ModelCard::id);
  if (at == models.end()) return refuse_parameter(name, id, "the id of a model in the list");
  return static_cast<std::size_t>(at - models.begin());
}

// The first models behind `after_id`, or the last ones in front of `before_id`; with both, the
// first of those between.
Parsed<Page> page_of(std::span<const ModelCard> models, const ModelsQuery& query) {
  CICADA_ASSIGN(const std::size_t limit, limit_of(query));
  CICADA_ASSIGN(const bool is_active, wants_active(query));
  if (!is_active) return Page{};
  std::size_t begin = 0;
  std::size_t end = models.size();
  if (!query.after_id.empty()) {
    CICADA_ASSIGN(begin, cursor_index(models, "after_id", query.after_id));
    ++begin;
  }
  if (!query.before_id.empty()) {
    CICADA_ASSIGN(end, cursor_index(models, "before_id", query.before_id));
  }
  const std::size_t between = end > begin ? end - begin : 0;
  const std::size_t size = std::min(limit, between);
  const bool is_backwards = !query.before_id.empty() && query.after_id.empty();
  return Page{models.subspan(is_backwards ? end - size : begin, size), size < between};
}

void write_model(json::Writer& writer, const ModelCard& model) {
  writer.begin_object().field("id", model.id);
  writer.field("type", "model").field("object", "model");
  writer.field("display_name", model.display_name).field("lifecycle", "active");
  writer.field("created_at", rfc3339(model.created_unix_s)).field("created", model.created_unix_s);
  writer.field("owned_by", "cicada");
  writer.field("max_input_tokens", model.max_input_tokens).field("max_tokens", model.max_tokens);
  writer.field("max_model_len", model.max_input_tokens).end_object();
}

void write_id(json::Writer& writer, std::string_view key, const ModelCard* model) {
  writer.key(key);
  if (model == nullptr) {
    writer.null();
  } else {
    writer.string(model->id);
  }
}

}  // namespace

Parsed<std::string> models_body(std::span<const ModelCard> models, const ModelsQuery& query) {
  CICADA_ASSIGN(const Page page, page_of(models, query));
  const bool is_empty = page.models.empty();
  json::Writer writer;
  writer.begin_object().field("object", "list").key("data").begin_array();
  for (const ModelCard& model : page.models) write_model(writer, model);
  writer.end_array().field("has_more", page.has_more);
  write_id(writer, "first_id", is_empty ? nullptr : &page.models.front());
  write_id(writer, "last_id", is_empty ? nullptr : &page.models.back());
  writer.end_object();
  return writer.take();
}

Parsed<std::string> model_body(std::span<const ModelCard> models, std::string_view id) {
  const auto at = std::ranges::find(models, id, &ModelCard::id);
  if (at == models.end()) return fail(model_not_found(models, id));
  json::Writer writer;
  write_model(writer, *at);
  return writer.take();
}

ApiError model_not_found(std::span<const ModelCard> models, std::string_view id) {
  std::string served;
  for (const ModelCard& model : models.first(std::min(models.size(), kMaxListed))) {
    served += (served.empty() ? "" : ", ") + model.id;
  }
  if (models.size() > kMaxListed) served += ", …";
  return make_api_error(404, fmt::format("model: found {}, served here: {}", quoted(id), served),
                        "model_not_found", "model");
}

std::string rfc3339(std::int64_t unix_s) {
  using std::chrono::floor;
  const std::chrono::sys_seconds time{std::chrono::seconds(unix_s)};
  const auto day = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace cicada::api
