// Rendered text against real Jinja2: testdata/chat/references.json, written by make_references.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/chat/chat_template.h"
#include "cicada/json/parse.h"

namespace cicada::chat {
namespace {

using json::Element;

std::string read_references() {
  std::ifstream file(std::string(CICADA_TESTDATA_DIR) + "/chat/references.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string text_field(Element object, std::string_view key) {
  return std::string(json::as_string(json::find(object, key, key)->value(), key).value());
}

// Empty where there is no such field.
std::string optional_text(Element object, std::string_view key) {
  const auto found = json::find(object, key, key).value();
  return found ? std::string(json::as_string(*found, key).value()) : std::string();
}

std::vector<Message> messages_of(Element chat) {
  std::vector<Message> messages;
  for (const Element message : json::find(chat, "messages", "case")->value().get_array()) {
    messages.push_back({.role = text_field(message, "role"),
                        .content = text_field(message, "content"),
                        .thinking = optional_text(message, "reasoning_content"),
                        .tool_call_id = optional_text(message, "tool_call_id")});
    const auto calls = json::find(message, "tool_calls", "message").value();
    if (!calls) continue;
    for (const Element call : calls->get_array()) {
      const Element function = call["function"];
      const Element arguments = function["arguments"];
      messages.back().tool_calls.push_back(
          {text_field(call, "id"), text_field(function, "name"), simdjson::minify(arguments)});
    }
  }
  return messages;
}

std::vector<Tool> tools_of(Element chat) {
  std::vector<Tool> tools;
  const auto found = json::find(chat, "tools", "case").value();
  if (!found) return tools;
  for (const Element tool : found->get_array()) {
    const Element function = tool["function"];
    const Element parameters = function["parameters"];
    tools.push_back({text_field(function, "name"), text_field(function, "description"),
                     simdjson::minify(parameters)});
  }
  return tools;
}

void expect_reference(const ChatTemplate& compiled, Element reference, RenderOptions options) {
  const std::vector<Tool> tools = tools_of(reference);
  options.tools = tools;
  if (const auto thinks = json::find(reference, "enable_thinking", "case").value()) {
    options.enable_thinking = thinks->get_bool().value();
  }
  const auto rendered = compiled.render(messages_of(reference), options);
  if (*json::find(reference, "raises", "case")) {
    ASSERT_FALSE(rendered.has_value()) << *rendered;
    EXPECT_EQ(rendered.error().message(), text_field(reference, "raises"));
    EXPECT_EQ(rendered.error().code(), Code::kInvalidArgument);
    return;
  }
  ASSERT_TRUE(rendered.has_value()) << rendered.error().to_string();
  EXPECT_EQ(*rendered, text_field(reference, "expected"));
}

class References : public testing::Test {
 protected:
  void SetUp() override {
    auto document = json::parse(text_);
    ASSERT_TRUE(document.has_value()) << document.error().to_string();
    document_.emplace(*std::move(document));
  }

  std::int64_t now() const { return document_->root()["now_unix_s"].get_int64().value(); }

  std::string text_ = read_references();
  std::optional<json::Document> document_;
};

TEST_F(References, HandMadeTemplatesRenderAsInJinja2) {
  std::size_t num_cases = 0;
  for (const Element reference : document_->root()["cases"].get_array()) {
    SCOPED_TRACE(text_field(reference, "name"));
    auto compiled = ChatTemplate::compile(text_field(reference, "template"), "<s>", "</s>");
    ASSERT_TRUE(compiled.has_value()) << compiled.error().to_string();
    expect_reference(*compiled, reference, {.now_unix_s = now()});
    ++num_cases;
  }
  EXPECT_GE(num_cases, 100U);
}

// Bytes of good templates changed, dropped, doubled and exchanged: an error or a text, never a
// crash.
TEST_F(References, MutatedTemplatesEndOrderly) {
  constexpr unsigned kSeed = 20240726;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  std::vector<std::string> sources;
  for (const Element reference : document_->root()["cases"].get_array()) {
    sources.push_back(text_field(reference, "template"));
  }
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  std::size_t num_rendered = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string source = sources[pick(sources.size())];
    for (std::size_t changes = 1 + pick(3); changes > 0; --changes) {
      const std::size_t at = pick(source.size());
      const std::string& other = sources[pick(sources.size())];
      const std::string part = other.substr(pick(other.size()), pick(20));
      source.replace(at, pick(8), part);
      if (source.empty()) source.push_back('x');
    }
    const auto compiled = ChatTemplate::compile(source, "<s>", "</s>");
    if (!compiled) {
      EXPECT_NE(compiled.error().code(), Code::kInternal) << source;
      continue;
    }
    const auto rendered = compiled->render({{"user", "a <b> c"}, {"assistant", "d"}}, {});
    if (rendered) {
      ++num_rendered;
    } else {
      EXPECT_NE(rendered.error().code(), Code::kInternal) << source;
    }
  }
  EXPECT_GT(num_rendered, 10U);
}

// A known model's file in the folder that `cicada pull` fills.
std::string model_path(const std::string& name) {
  const char* own = std::getenv("CICADA_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder = own != nullptr    ? std::string(own)
                             : home != nullptr ? std::string(home) + "/.cache/cicada"
                                               : std::string(".");
  return folder + "/models/" + name + ".gguf";
}

TEST_F(References, TemplatesOfRealModelsRenderAsInJinja2) {
  std::size_t num_models = 0;
  for (const Element model : document_->root()["models"].get_array()) {
    const std::string name = text_field(model, "name");
    const std::string path = model_path(name);
    if (!std::filesystem::exists(path)) {
      std::printf("skipped %s: no file %s\n", name.c_str(), path.c_str());
      continue;
    }
    SCOPED_TRACE(name);
    ++num_models;
    const auto file = formats::ModelFile::open(path);
    ASSERT_TRUE(file.has_value()) << file.error().to_string();
    const auto tokenizer = tokenizer::Tokenizer::create(*file);
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().to_string();
    const auto compiled = ChatTemplate::from_model(*file, **tokenizer);
    ASSERT_TRUE(compiled.has_value()) << compiled.error().to_string();
    EXPECT_FALSE(compiled->is_fallback());
    for (const Element chat : model["cases"].get_array()) {
      const std::vector<Tool> tools = tools_of(chat);
      const RenderOptions options{
          .add_generation_prompt = chat["add_generation_prompt"].get_bool().value(),
          .tools = tools};
      expect_reference(*compiled, chat, options);
      const auto messages = messages_of(chat);
      const auto ids = compiled->encode(messages, **tokenizer, options);
      ASSERT_TRUE(ids.has_value());
      // No message here could write a control token.
      EXPECT_EQ(*ids, (*tokenizer)->encode(text_field(chat, "expected"), {.parse_special = true}));
    }
  }
  if (num_models == 0) GTEST_SKIP() << "no model is there; `cicada pull` fetches them";
}

TEST_F(References, TheGemmaFileHasNoTemplate) {
  const std::string path = model_path("gemma3-270m");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no file " << path;
  const auto file = formats::ModelFile::open(path);
  ASSERT_TRUE(file.has_value()) << file.error().to_string();
  const auto tokenizer = tokenizer::Tokenizer::create(*file);
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().to_string();
  const auto chat = ChatTemplate::from_model(*file, **tokenizer);
  ASSERT_TRUE(chat.has_value()) << chat.error().to_string();
  EXPECT_TRUE(chat->is_fallback());
  const auto ids = chat->encode({{"user", "<bos>x<end_of_turn>"}}, **tokenizer, {});
  ASSERT_TRUE(ids.has_value());
  EXPECT_EQ(ids->front(), (*tokenizer)->bos());
  EXPECT_EQ(std::ranges::count(*ids, *(*tokenizer)->bos()), 1);
  EXPECT_EQ(std::ranges::count(*ids, (*tokenizer)->find("<end_of_turn>")), 0);
}

}  // namespace
}  // namespace cicada::chat
