// ChatTemplate: tools, calls, results, thoughts and open turns.
#include <gtest/gtest.h>

#include <algorithm>

#include "cicada/chat/chat_template.h"
#include "cicada/chat/tiny_tokenizer_for_test.h"
#include "cicada/formats/gguf_test_builder.h"

namespace cicada::chat {
namespace {

constexpr const char* kPlain =
    "{% for m in messages %}<|im_start|>{{ m.role + '\\n' + m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
constexpr const char* kAll = "{{ messages|tojson }}|{{ tools|tojson }}";

ChatTemplate compiled(const std::string& source) {
  auto result = ChatTemplate::compile(source, "<s>", "</s>");
  EXPECT_TRUE(result.has_value()) << result.error().to_string();
  return *std::move(result);
}

const Message kUser = {"user", "u"};
const Message kCalling = {
    "assistant", "", "hm", {{"c1", "f", R"({"x":1.0,"b":[true,null,-2,"\u00e9"]})"}}};
const Message kResult = {"tool", "r", "", {}, "c1"};
const std::vector<Tool> kTools = {
    {"f", "does", R"({"type":"object","properties":{"x":{"type":"number"}}})"}, {"g", "", ""}};

std::string rendered(const std::string& source, const std::vector<Message>& messages,
                     const RenderOptions& options) {
  const auto text = compiled(source).render(messages, options);
  return text ? *text : "error: " + text.error().to_string();
}

TEST(ChatTools, TemplatesSeeWhatTransformersGivesThem) {
  EXPECT_EQ(
      rendered(kAll, {kUser, kCalling, kResult}, {.tools = kTools}),
      R"([{"role": "user", "content": "u"}, {"role": "assistant", "content": "", )"
      R"("reasoning_content": "hm", "tool_calls": [{"id": "c1", "type": "function", "function": )"
      R"({"name": "f", "arguments": {"x": 1.0, "b": [true, null, -2, ")"
      "\u00e9"
      R"("]}}}]}, {"role": "tool", "content": "r", "tool_call_id": "c1", "name": "f"}]|)"
      R"([{"type": "function", "function": {"name": "f", "description": "does", "parameters": )"
      R"({"type": "object", "properties": {"x": {"type": "number"}}}}}, {"type": "function", )"
      R"("function": {"name": "g", "description": "", "parameters": {"type": "object", )"
      R"("properties": {}}}}])");
}

TEST(ChatTools, WithoutToolsThereAreNone) {
  EXPECT_EQ(
      rendered("{{ tools is none }}{{ messages[0].tool_calls is defined }}"
               "{{ messages[0].reasoning_content is defined }}{{ enable_thinking is defined }}",
               {kUser}, {}),
      "TrueFalseFalseFalse");
}

TEST(ChatTools, ThinkingIsTheTemplatesVariable) {
  EXPECT_EQ(rendered("{{ enable_thinking }}", {}, {.enable_thinking = false}), "False");
  EXPECT_EQ(rendered("{{ enable_thinking }}", {}, {.enable_thinking = true}), "True");
}

TEST(ChatTools, MistralGetsIdsOfNineCharacters) {
  const std::string source =
      "{{ tools }}{% for m in messages %}{{ m.tool_call_id }}{% for c in m.tool_calls %}{{ c.id }} "
      "{% endfor %}{% endfor %}";
  EXPECT_EQ(rendered(source, {kCalling, kResult}, {}), "Nonec1 c1");
  const std::string ids = rendered("[TOOL_CALLS]" + source, {kCalling, kResult}, {}).substr(16);
  ASSERT_EQ(ids.size(), 19U) << ids;
  EXPECT_EQ(ids.substr(0, 9), ids.substr(10)) << ids;
  const Message good = {"tool", "r", "", {}, "abcDEF123"};
  EXPECT_EQ(rendered("[TOOL_CALLS]" + source, {good}, {}).substr(16), "abcDEF123");
}

TEST(ChatTools, NumbersOfArgumentsStayWhatTheyAre) {
  const std::string numbers =
      "[52.520008, 1.0, 1e-07, 1e+16, -0.0, 9223372036854775807, "
      "18446744073709551615, 0.1, 0.30000000000000004, 5e-324]";
  const Message calling = {"assistant", "", "", {{"c", "f", "{\"n\": " + numbers + "}"}}};
  EXPECT_EQ(rendered("{{ tools }}{{ messages[0].tool_calls[0].function.arguments.n|tojson }}",
                     {calling}, {}),
            "None" + numbers);
}

TEST(ChatTools, BadJsonIsRefusedInWords) {
  struct Case {
    const char* arguments;
    const char* words;
  };
  const std::string deep = "{\"a\":" + std::string(64, '[') + "1" + std::string(64, ']') + "}";
  const std::string large = "{\"a\":\"" + std::string(1 << 20, 'x') + "\"}";
  for (const Case& c :
       {Case{"[1]", "arguments: is an array, an object is needed"},
        Case{"\"x\"", "arguments: is a string, an object is needed"},
        Case{"{\"a\":", "arguments: not valid JSON"}, Case{"{} {}", "arguments: not valid JSON"},
        Case{"{\"a\":\"\xff\"}", "arguments: not valid JSON"},
        Case{deep.c_str(), "arguments: JSON nested deeper than 64 levels"},
        Case{large.c_str(), "arguments: JSON of 1048584 bytes, at most 1048576"}}) {
    for (const char* source : {kPlain, kAll}) {
      const auto text =
          compiled(source).render({kUser, {"assistant", "", "", {{"c", "f", c.arguments}}}}, {});
      ASSERT_FALSE(text.has_value()) << c.words;
      EXPECT_EQ(text.error().code(), Code::kInvalidArgument);
      EXPECT_TRUE(text.error().message().starts_with(
          std::string("message 1 (assistant): tool call 0 (f): ") + c.words))
          << text.error().message();
    }
  }
  const std::vector<Tool> tools = {{"f", "", "7"}};
  EXPECT_EQ(rendered(kAll, {kUser}, {.tools = tools}),
            "error: tool 0 (f): parameters: is an integer, an object is needed");
}

TEST(ChatTools, TextThatIsNotUtf8IsRefusedWhereverItStands) {
  const std::string bad = "a\xff";
  for (const Message& message : {Message{"assistant", "", bad}, Message{"tool", "", "", {}, bad},
                                 Message{"assistant", "", "", {{bad, "f", ""}}},
                                 Message{"assistant", "", "", {{"c", bad, ""}}}}) {
    const std::string text = rendered(kAll, {message}, {});
    EXPECT_TRUE(formats::has(text, "invalid UTF-8 at byte 1")) << text;
  }
  for (const Tool& tool : {Tool{bad, "", ""}, Tool{"f", bad, ""}}) {
    const std::string text = rendered(kAll, {}, {.tools = {&tool, 1}});
    EXPECT_TRUE(formats::has(text, "invalid UTF-8 at byte 1")) << text;
  }
}

// BC-01: everywhere that a user's text can be.
TEST(ChatTools, NothingOfAUserBecomesAControlToken) {
  const TinyVocabulary vocabulary;
  const auto conversation = [](const std::string& text) {
    const std::string json = "{\"" + text + "\": [\"" + text + "\", {\"a\": \"" + text + "\"}]}";
    const std::string escaped = R"({"a": "\u003c|im_end|\u003e"})";
    return std::vector<Message>{
        {"system", text},
        {"user", text},
        {"assistant", text, text, {{text, text, json}, {"c2", "f", escaped}}},
        {"tool", text, "", {}, text}};
  };
  const auto tools_of = [](const std::string& text) {
    return std::vector<Tool>{{text, text, "{\"" + text + "\": {\"enum\": [\"" + text + "\"]}}"}};
  };
  const auto num_ends = [&](const std::string& source, const std::string& text) {
    const std::vector<Tool> tools = tools_of(text);
    const auto ids =
        compiled(source).encode(conversation(text), vocabulary.tokenizer(), {.tools = tools});
    EXPECT_TRUE(ids.has_value()) << ids.error().to_string();
    return ids ? std::ranges::count(*ids, vocabulary.id("<|im_end|>")) : -1;
  };
  EXPECT_EQ(num_ends(kAll, "<|im_end|>"), 0);
  EXPECT_EQ(num_ends(std::string(kAll) + "<|im_end|>", "<|im_end|>"), 1);
  EXPECT_EQ(num_ends(kPlain, "<|im_end|>"), num_ends(kPlain, "x"));
  EXPECT_EQ(num_ends("{{ tools[0].function.name }}{{ messages[2].tool_calls[0].id }}"
                     "{{ messages[2].tool_calls[0].function.arguments }}"
                     "{% for k, v in messages[2].tool_calls[0].function.arguments|items %}{{ k }}"
                     "{{ v[0] }}{{ v[1].a }}{% endfor %}{{ messages[2].reasoning_content }}"
                     "{{ messages[3].name }}{{ messages[3].tool_call_id }}",
                     "<|im_end|>"),
            0);
}

// BC-01
TEST(ChatTools, AMarkerInAToolResultIsTenPlainTokens) {
  const TinyVocabulary vocabulary;
  for (const char* source : {kPlain, "{{ tools }}{{ messages[1].content }}"}) {
    const ChatTemplate chat = compiled(source);
    const auto size = [&](const std::string& text) {
      return chat.encode({kCalling, {"tool", text, "", {}, "c1"}}, vocabulary.tokenizer(), {})
          .value()
          .size();
    };
    EXPECT_EQ(size("x<|im_end|>y") - size("xy"), 10U);
  }
}

TEST(ChatTools, PrivateCharactersInJsonStayThemselves) {
  const TinyVocabulary vocabulary;
  const Message calling = {"assistant", "", "", {{"c", "f", R"({"a": "\uDB80\uDC00<"})"}}};
  const ChatTemplate chat =
      compiled("{{ tools }}{{ messages[0].tool_calls[0].function.arguments.a }}");
  const auto ids = chat.encode({calling}, vocabulary.tokenizer(), {}).value();
  EXPECT_EQ(vocabulary.tokenizer().decode(ids, false), "None\U000F0000<");
}

TEST(ChatTools, TemplatesWithoutToolsGetThemAsText) {
  EXPECT_FALSE(compiled(kPlain).knows_tools());
  EXPECT_TRUE(compiled(kAll).knows_tools());
  const std::vector<Tool> tools = {{"f", "does", ""}};
  const std::string system =
      "# Tools\n\nYou may call functions to help with the user's request. Their signatures stand "
      "within <tools></tools>, one JSON object a line:\n<tools>\n"
      R"({"type": "function", "function": {"name": "f", "description": "does", "parameters": )"
      R"({"type": "object", "properties": {}}}})"
      "\n</tools>\n\nTo call a function, write a JSON object with its name and its arguments "
      "within "
      "<tool_call></tool_call>:\n<tool_call>\n"
      "{\"name\": <function-name>, \"arguments\": <arguments-object>}\n</tool_call>";
  const std::string rest = "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(rendered(kPlain, {kUser}, {.tools = tools}),
            "<|im_start|>system\n" + system + "<|im_end|>\n" + rest);
  EXPECT_EQ(rendered(kPlain, {{"system", "Be brief."}, kUser}, {.tools = tools}),
            "<|im_start|>system\nBe brief.\n\n" + system + "<|im_end|>\n" + rest);
}

TEST(ChatTools, TemplatesWithoutToolsGetCallsAndResultsAsText) {
  Message talking = kCalling;
  talking.content = "Let me see.";
  talking.tool_calls.push_back({"c2", "g", ""});
  EXPECT_EQ(rendered(kPlain, {talking, kResult, {"tool", "s", "", {}, "c2"}, kUser, kResult},
                     {.add_generation_prompt = false}),
            "<|im_start|>assistant\nLet me see.\n"
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1.0, \"b\": [true, null, -2, "
            "\"\u00e9\"]}}\n</tool_call>\n"
            "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call><|im_end|>\n"
            "<|im_start|>user\n<tool_response>\nr\n</tool_response>\n"
            "<tool_response>\ns\n</tool_response><|im_end|>\n"
            "<|im_start|>user\nu<|im_end|>\n"
            "<|im_start|>user\n<tool_response>\nr\n</tool_response><|im_end|>\n");
}

TEST(ChatTools, AnOpenTurnEndsWithItsContent) {
  const std::string head = "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n";
  for (const char* content : {"a", "", " Sure:\n ", "<|im_end|>", "u<|im_end|>\n", "\U0010FFFD"}) {
    EXPECT_EQ(rendered(kPlain, {kUser, {"assistant", content}}, {.continue_last = true}),
              head + content);
  }
  // Trimmed where the template trims.
  EXPECT_EQ(rendered("{% for m in messages %}[{{ m.content|trim }}]{% endfor %}",
                     {kUser, {"assistant", " Sure: \n"}}, {.continue_last = true}),
            "[u][Sure:");
}

TEST(ChatTools, ThePlaceOfTheCutIsNoCharacterOfTheTemplate) {
  EXPECT_EQ(rendered("{{ messages[0].content }}|\U0010FFFD", {{"assistant", "a"}},
                     {.continue_last = true}),
            "a");
}

TEST(ChatTools, AnOpenTurnIsEncodedAsItIsRendered) {
  const TinyVocabulary vocabulary({.add_bos = false});
  const ChatTemplate chat = compiled(kPlain);
  const std::vector<Message> messages = {kUser, {"assistant", "so <|im_end|> the"}};
  const auto ids = chat.encode(messages, vocabulary.tokenizer(), {.continue_last = true}).value();
  EXPECT_EQ(vocabulary.tokenizer().decode(ids, true),
            chat.render(messages, {.continue_last = true}).value());
  EXPECT_EQ(std::ranges::count(ids, vocabulary.id("<|im_end|>")), 1);
}

TEST(ChatTools, WhatCannotBeContinuedIsRefusedInWords) {
  const RenderOptions options{.continue_last = true};
  EXPECT_EQ(rendered(kPlain, {}, options), "error: there is no message to be continued");
  EXPECT_EQ(rendered(kPlain, {kUser}, options),
            "error: message 0: role is user, only an assistant's message can be continued");
  EXPECT_EQ(rendered(kPlain, {kCalling}, options),
            "error: message 0: with tool calls it cannot be continued");
  EXPECT_EQ(rendered("{{ messages[0].content }}", {kUser, {"assistant", "a"}}, options),
            "error: the chat template does not show the last message's content, so it cannot be "
            "continued");
}

}  // namespace
}  // namespace cicada::chat
