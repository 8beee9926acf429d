#include "cicada/api/models.h"

#include <gtest/gtest.h>

#include "cicada/api/parsed_for_test.h"
#include "cicada/json/parse.h"

namespace cicada::api {
namespace {

std::vector<ModelCard> cards(int count) {
  std::vector<ModelCard> out;
  for (int i = 0; i < count; ++i) {
    out.push_back({.id = "m" + std::to_string(i),
                   .display_name = "M",
                   .created_unix_s = 0,
                   .max_input_tokens = 64,
                   .max_tokens = 32});
  }
  return out;
}

// "m1 m2 | more" of a page.
std::string page(int count, const ModelsQuery& query) {
  const auto body = models_body(cards(count), query);
  if (!body) return refusal(body);
  const auto document = json::parse(*body);
  const simdjson::dom::element root = document->root();
  std::string out;
  for (const simdjson::dom::element model : root["data"]) {
    out += std::string(std::string_view(model["id"])) + " ";
  }
  if (!out.empty()) {
    EXPECT_TRUE(out.starts_with(std::string(std::string_view(root["first_id"])) + " "));
    EXPECT_TRUE(out.ends_with(std::string(std::string_view(root["last_id"])) + " "));
  } else {
    EXPECT_TRUE(root["first_id"].is_null() && root["last_id"].is_null());
  }
  return out + (bool(root["has_more"]) ? "| more" : "|");
}

TEST(Models, OneObjectForBothVendors) {
  const std::vector<ModelCard> models = {{.id = "smollm2",
                                          .display_name = "SmolLM2 135M",
                                          .created_unix_s = 1764534354,
                                          .max_input_tokens = 8192,
                                          .max_tokens = 4096}};
  const std::string object =
      R"({"id":"smollm2","type":"model","object":"model","display_name":"SmolLM2 135M",)"
      R"("lifecycle":"active","created_at":"2025-11-30T20:25:54Z","created":1764534354,)"
      R"("owned_by":"cicada","max_input_tokens":8192,"max_tokens":4096,"max_model_len":8192})";
  EXPECT_EQ(model_body(models, "smollm2").value(), object);
  EXPECT_EQ(models_body(models, {}).value(),
            R"({"object":"list","data":[)" + object +
                R"(],"has_more":false,"first_id":"smollm2","last_id":"smollm2"})");
}

TEST(Models, PagesGoForwardAndBackward) {
  EXPECT_EQ(page(3, {}), "m0 m1 m2 |");
  EXPECT_EQ(page(0, {}), "|");
  EXPECT_EQ(page(5, {.limit = "2"}), "m0 m1 | more");
  EXPECT_EQ(page(5, {.limit = "2", .after_id = "m1"}), "m2 m3 | more");
  EXPECT_EQ(page(5, {.limit = "2", .after_id = "m2"}), "m3 m4 |");
  EXPECT_EQ(page(5, {.limit = "2", .after_id = "m4"}), "|");
  EXPECT_EQ(page(5, {.limit = "2", .before_id = "m4"}), "m2 m3 | more");
  EXPECT_EQ(page(5, {.limit = "2", .before_id = "m2"}), "m0 m1 |");
  EXPECT_EQ(page(5, {.limit = "2", .before_id = "m0"}), "|");
  EXPECT_EQ(page(2, {.limit = "1000", .after_id = "", .before_id = ""}), "m0 m1 |");
  EXPECT_EQ(page(5, {.limit = "2", .after_id = "m0", .before_id = "m4"}), "m1 m2 | more");
  EXPECT_EQ(page(5, {.limit = "3", .after_id = "m0", .before_id = "m4"}), "m1 m2 m3 |");
  EXPECT_EQ(page(5, {.after_id = "m3", .before_id = "m1"}), "|");
}

TEST(Models, AllAreActive) {
  EXPECT_EQ(page(2, {.lifecycle = {"active", "retired"}}), "m0 m1 |");
  EXPECT_EQ(page(2, {.lifecycle = {"retired"}}), "|");
}

TEST(Models, BadQueriesAreRefusedInWords) {
  for (const std::string_view limit : {"0", "1001", "-1", "x", "1.5"}) {
    EXPECT_EQ(page(2, {.limit = limit}), std::string("limit: found \"")
                                             .append(limit)
                                             .append("\", allowed an integer from 1 to 1000"));
  }
  EXPECT_EQ(page(2, {.after_id = "x"}),
            "after_id: found \"x\", allowed the id of a model in the list");
  EXPECT_EQ(page(2, {.before_id = "x"}),
            "before_id: found \"x\", allowed the id of a model in the list");
  EXPECT_EQ(page(2, {.lifecycle = {"x"}}),
            "lifecycle: found \"x\", allowed active, deprecated, retired");
}

TEST(Models, AMissingModelIs404WithOpenAisCode) {
  const auto body = model_body(cards(10), "gpt");
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().status, 404);
  EXPECT_EQ(body.error().type, "not_found_error");
  EXPECT_EQ(body.error().code, "model_not_found");
  EXPECT_EQ(body.error().message,
            "model: found \"gpt\", served here: m0, m1, m2, m3, m4, m5, m6, m7, …");
}

TEST(Models, TimesAreInUtc) {
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(rfc3339(951827696), "2000-02-29T12:34:56Z");
}

}  // namespace
}  // namespace cicada::api
