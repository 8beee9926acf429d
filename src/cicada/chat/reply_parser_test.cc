#include "cicada/chat/reply_parser.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "cicada/chat/reply_for_test.h"
#include "cicada/json/writer.h"

namespace cicada::chat {
namespace {

ReplySyntax tools(ToolSyntax syntax) { return {.tools = syntax}; }
const ReplySyntax kHermes = tools(ToolSyntax::kHermes);
const ReplySyntax kLlama3 = tools(ToolSyntax::kLlama3);
const ReplySyntax kMistral = tools(ToolSyntax::kMistral);
const ReplySyntax kThinks = {
    .tools = ToolSyntax::kHermes, .think_open = "<think>", .think_close = "</think>"};

struct Case {
  const char* text;
  const char* pieces;
  std::uint32_t num_calls;
};

// Each case whole, byte by byte, and cut once at every place.
void expect_all(const ReplySyntax& syntax, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const std::string text = c.text;
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      const ParsedReply reply =
          parse_reply(syntax, text, {cut == 0 ? text.size() + 1 : cut, text.size() + 1});
      ASSERT_EQ(reply.pieces, c.pieces) << text << " cut at " << cut;
      ASSERT_EQ(reply.num_calls, c.num_calls) << text << " cut at " << cut;
    }
    ASSERT_EQ(parse_reply(syntax, text, {1}).pieces, c.pieces) << text;
  }
}

TEST(ReplyParser, WithoutASyntaxTextIsText) {
  expect_all({},
             {{"a <tool_call>{\"name\":\"x\",\"arguments\":{}}</tool_call> <think> ",
               "text(a <tool_call>{\"name\":\"x\",\"arguments\":{}}</tool_call> <think> )", 0}});
}

TEST(ReplyParser, HermesCallsAreCutOut) {
  expect_all(
      kHermes,
      {{"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>",
        "call0(f)args0({\"x\": 1})", 1},
       {"Let me see.\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n\nDone. ",
        "text(Let me see.)call0(f)args0({})text(Done. )", 1},
       // Arguments before the name, none at all, and other members.
       {"<tool_call>{\"arguments\": {\"x\": [1]}, \"name\": \"f\"}</tool_call>",
        "call0(f)args0({\"x\": [1]})", 1},
       {"<tool_call>{\"name\": \"f\"}</tool_call>", "call0(f)args0({})", 1},
       {"<tool_call>{\"id\": \"a}\", \"n\": [{\"name\": 1}], \"name\": \"f\", \"parameters\": {}, "
        "\"arguments\": 7, \"name\": 3}</tool_call>",
        "call0(f)args0({})", 1},
       // Braces, quotes and markers in strings are no ends.
       {"<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"}}\\\"</tool_call>\"}}</tool_call>!",
        "call0(f)args0({\"x\":\"}}\\\"</tool_call>\"})text(!)", 1},
       // The model left out what closes the call.
       {"<tool_call>{\"name\":\"f\",\"arguments\":{}}", "call0(f)args0({})", 1},
       {"<tool_call>{\"name\":\"f\",\"arguments\":{}} x</tool_call> y", "call0(f)args0({})text(xy)",
        1},
       {"<tool_call>{\"name\":\"f\",\"arguments\":{}}<tool_call>{\"name\":\"g\",\"arguments\":{}}",
        "call0(f)args0({})call1(g)args1({})", 2},
       {"a < b <tool <tool_calls>", "text(a < b <tool <tool_calls>)", 0},
       {"  leading and trailing \n", "text(  leading and trailing \n)", 0}});
}

// BC-18: inside a key, a number, the closing tag, a character.
TEST(ReplyParser, TwoCallsComeOutHoweverTheyAreSplit) {
  expect_all(kHermes,
             {{"<tool_call>\n{\"name\": \"f1\", \"arguments\": {\"x\": 1}}\n</tool_call>\n"
               "<tool_call>\n{\"name\": \"f2\", \"arguments\": {\"y\": \"\u00e9\"}}\n</tool_call>",
               "call0(f1)args0({\"x\": 1})call1(f2)args1({\"y\": \"\u00e9\"})", 2}});
}

TEST(ReplyParser, ArgumentsAreStreamed) {
  ReplyParser parser(kHermes);
  EXPECT_TRUE(parser.add("<tool_call>{\"name\": \"f\", \"arguments\":").empty());
  EXPECT_EQ(written(parser.add(" {\"x")), "call0(f)args0({\"x)");
  EXPECT_EQ(written(parser.add("\": 1")), "args0(\": 1)");
  EXPECT_EQ(parser.num_calls(), 0U);
  EXPECT_EQ(written(parser.add("}")), "args0(})");
  EXPECT_TRUE(parser.add("}").empty());
  EXPECT_EQ(parser.num_calls(), 1U);
}

TEST(ReplyParser, WhatIsNoCallIsTextAsWritten) {
  expect_all(kHermes,
             {{"a\n<tool_call>\nhello</tool_call>", "text(a\n<tool_call>\nhello</tool_call>)", 0},
              {"<tool_call></tool_call>", "text(<tool_call></tool_call>)", 0},
              {"<tool_call>{}</tool_call>", "text(<tool_call>{}</tool_call>)", 0},
              {"<tool_call>{\"name\": \"\", \"arguments\": {}}",
               "text(<tool_call>{\"name\": \"\", \"arguments\": {}})", 0},
              {"<tool_call>{\"name\": 1}", "text(<tool_call>{\"name\": 1})", 0},
              {"<tool_call>{\"name\": \"f\", \"arguments\": [1]}",
               "text(<tool_call>{\"name\": \"f\", \"arguments\": [1]})", 0},
              {"<tool_call>{\"arguments\": {\"x\": 1}}",
               "text(<tool_call>{\"arguments\": {\"x\": 1}})", 0},
              {"<tool_call>{'name': 'f'}", "text(<tool_call>{'name': 'f'})", 0},
              // Unfinished.
              {"a <tool_call>\n{\"name\": \"f\", \"arg",
               "text(a <tool_call>\n{\"name\": \"f\", \"arg)", 0},
              {"a <tool_ca", "text(a <tool_ca)", 0},
              {"a <tool_call> ", "text(a <tool_call> )", 0},
              // The next one is one.
              {"<tool_call>x <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
               "text(<tool_call>x)call0(f)args0({})", 1}});
}

TEST(ReplyParser, ACallThatBreaksInItsArgumentsIsCutAndNotCounted) {
  expect_all(kHermes,
             {{"<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":1", "call0(f)args0({\"x\":1)", 0},
              {"<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":oops}}</tool_call> b",
               "call0(f)args0({\"x\":)text(oops}}b)", 0},
              {"<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":1</tool_call>",
               "call0(f)args0({\"x\":1)", 0},
              {"<tool_call>{\"name\":\"f\",\"arguments\":{]</tool_call><tool_call>{\"name\":\"g\","
               "\"arguments\":{}}</tool_call>",
               "call0(f)args0({)text(])call1(g)args1({})", 1},
              {"<tool_call>{\"name\":\"f\",\"arguments\":{} oops</tool_call>",
               "call0(f)args0({})text(oops)", 0}});
}

TEST(ReplyParser, NamesAreWhatTheirEscapesStandFor) {
  expect_all(kHermes, {{"<tool_call>{\"name\":\"a \\\"b\\\" \\u00e9\\uD83E\\uDD99 \u6f22}\","
                        "\"arguments\":{}}</tool_call>",
                        "call0(a \"b\" \u00e9\U0001F999 \u6f22})args0({})", 1},
                       {"<tool_call>{\"\\u006eame\":\"f\",\"arguments\":{}}</tool_call>",
                        "call0(f)args0({})", 1},
                       {"<tool_call>{\"name\":\"\\uD83E\",\"arguments\":{}}",
                        "text(<tool_call>{\"name\":\"\\uD83E\",\"arguments\":{}})", 0}});
}

TEST(ReplyParser, Llama3CallsStandAlone) {
  expect_all(kLlama3,
             {{"{\"name\": \"f\", \"parameters\": {\"x\": 1}}", "call0(f)args0({\"x\": 1})", 1},
              {"\n\n{\"name\": \"f\", \"parameters\": {}}\n", "call0(f)args0({})", 1},
              {"<|python_tag|>{\"name\": \"f\", \"arguments\": {}}", "call0(f)args0({})", 1},
              {"{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}",
               "call0(f)args0({})call1(g)args1({})", 2},
              {"{\"name\": \"f\", \"parameters\": {}}\n{\"name\": \"g\", \"parameters\": {}}",
               "call0(f)args0({})call1(g)args1({})", 2},
              {"{\"name\": \"Bob\", \"age\": 7}", "text({\"name\": \"Bob\", \"age\": 7})", 0},
              {" {\"name\": \"Bob\"} is he", "text( {\"name\": \"Bob\"} is he)", 0},
              {"Here: {\"name\": \"f\", \"parameters\": {}}",
               "text(Here: {\"name\": \"f\", \"parameters\": {}})", 0},
              {"{\"name\": \"f\", \"parameters\": {}}; or so", "call0(f)args0({})text(; or so)", 1},
              {"<|python_tag|>print(1)", "text(<|python_tag|>print(1))", 0}});
}

TEST(ReplyParser, MistralCallsAreAList) {
  expect_all(
      kMistral,
      {{"[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"x\": 1}}, {\"name\": \"g\", "
        "\"arguments\": {}, \"id\": \"123456789\"}]",
        "call0(f)args0({\"x\": 1})call1(g)args1({})", 2},
       {"Sure.[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}}] bye",
        "text(Sure.)call0(f)args0({})text(bye)", 1},
       {"[TOOL_CALLS][]", "text([TOOL_CALLS][])", 0},
       {"[TOOL_CALLS]{\"name\":\"f\",\"arguments\":{}}",
        "text([TOOL_CALLS]{\"name\":\"f\",\"arguments\":{}})", 0},
       {"[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}}, 7]", "call0(f)args0({})text(, 7])", 1},
       {"[1, 2] [TOOL", "text([1, 2] [TOOL)", 0}});
}

TEST(ReplyParser, ThoughtsAreCutOut) {
  expect_all(kThinks,
             {{"<think>\nhm <b> \n</think>\n\nYes.", "think(hm <b>)text(Yes.)", 0},
              {"<think>\n\n</think>\n\nYes.", "text(Yes.)", 0},
              {"<think>a</think><tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
               "think(a)call0(f)args0({})", 1},
              {"<think><tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call></think>b",
               "think(<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>)text(b)", 0},
              {"a<think>b</think>c<think>d</think>", "text(a)think(b)text(c)think(d)", 0},
              {"<think>cut </thi", "think(cut </thi)", 0},
              {"<thin", "text(<thin)", 0},
              {"a </think> b", "text(a </think> b)", 0}});
  ReplySyntax begun = kThinks;
  begun.begins_thinking = true;
  expect_all(
      begun,
      {{"\nhm\n</think>\n\nYes.", "think(hm)text(Yes.)", 0}, {"hm", "think(hm)", 0}, {"", "", 0}});
}

TEST(ReplyParser, LargeAndDeepArgumentsAreText) {
  const auto call = [](const std::string& arguments, bool name_first) {
    return name_first ? "<tool_call>{\"name\":\"f\",\"arguments\":" + arguments + "}</tool_call>"
                      : "<tool_call>{\"arguments\":" + arguments + ",\"name\":\"f\"}</tool_call>";
  };
  const auto of_size = [](std::size_t bytes) {
    return "{\"a\":\"" + std::string(bytes - 8, 'x') + "\"}";
  };
  const auto of_depth = [](std::size_t depth) {
    return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  const std::size_t mebibyte = std::size_t{1} << 20;
  for (const std::string& fits : {of_size(mebibyte), of_depth(64)}) {
    for (const bool name_first : {false, true}) {
      const ParsedReply reply = parse_reply(kHermes, call(fits, name_first));
      EXPECT_EQ(reply.num_calls, 1U);
      EXPECT_TRUE(reply.pieces == "call0(f)args0(" + fits + ")") << name_first;
    }
  }
  for (const std::string& exceeds : {of_size(mebibyte + 1), of_depth(65)}) {
    const std::string text = call(exceeds, false);
    EXPECT_TRUE(parse_reply(kHermes, text).pieces == "text(" + text + ")");
    EXPECT_EQ(parse_reply(kHermes, call(exceeds, true)).num_calls, 0U);
  }
  const std::string name = "<tool_call>{\"name\":\"" + std::string(2000, 'n') + "\"}";
  EXPECT_EQ(parse_reply(kHermes, name).pieces, "text(" + name + ")");
}

class RandomReply {
 public:
  explicit RandomReply(unsigned seed) : random_(seed) {}

  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_()) % n; }

  std::string letters() {
    static constexpr std::string_view kParts[] = {
        "a",  " ",      "\n", "<",  ">",  "}",          "{",         "\u00e9", "\"",
        "\\", "\u6f22", "]",  "\t", "</", "\U0001F999", "tool_call", "name"};
    std::string text;
    for (std::size_t n = pick(8); n > 0; --n) text += kParts[pick(std::size(kParts))];
    return text;
  }

  std::string value(std::size_t depth) {
    switch (pick(depth == 0 ? 4 : 6)) {
      case 0:
        return std::to_string(static_cast<int>(pick(2000)) - 1000);
      case 1:
        return pick(2) == 0 ? "-1.5e-7" : "true";
      case 2:
        return "\"\\u00E9\\uD83E\\uDD99\\n\"";
      case 3:
        return json::quote(letters());
      case 4:
        return "[" + value(depth - 1) + " , " + value(depth - 1) + "]";
      default:
        return object(depth - 1);
    }
  }

  std::string object(std::size_t depth) {
    std::string text = "{";
    const std::size_t n = pick(3);
    for (std::size_t i = 0; i < n; ++i) {
      text += (i == 0 ? "" : ", ") + json::quote(letters()) + ":" + value(depth);
    }
    return text + "}";
  }

 private:
  std::mt19937 random_;
};

TEST(ReplyParser, RandomCallsComeBackAsTheyWereMade) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  RandomReply random(seed);
  for (int round = 0; round < 400; ++round) {
    std::string text;
    std::string expected;
    const std::size_t num_calls = 1 + random.pick(3);
    for (std::size_t i = 0; i < num_calls; ++i) {
      const std::string name = "n" + random.letters();
      const std::string arguments = random.object(3);
      const std::string number = std::to_string(i);
      text += "<tool_call>\n{\"name\": " + json::quote(name) + ", \"arguments\": " + arguments +
              "}\n</tool_call>\n";
      expected += "call" + number + "(" + name + ")args" + number + "(" + arguments + ")";
    }
    std::vector<std::size_t> sizes;
    for (int i = 0; i < 7; ++i) sizes.push_back(1 + random.pick(9));
    const ParsedReply reply = parse_reply(kHermes, text, sizes);
    ASSERT_EQ(reply.pieces, expected);
    ASSERT_EQ(reply.num_calls, num_calls);
  }
}

TEST(ReplyParser, AnySplitOfAnyTextGivesTheSame) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  RandomReply random(seed);
  static constexpr std::string_view kParts[] = {"<tool_call>",
                                                "</tool_call>",
                                                "<think>",
                                                "</think>",
                                                "[TOOL_CALLS]",
                                                "<|python_tag|>",
                                                "[",
                                                "]",
                                                ",",
                                                ";",
                                                "{",
                                                "}",
                                                "\n",
                                                " ",
                                                "{\"name\":\"f\",\"arguments\":",
                                                "{\"x\":1}",
                                                "}",
                                                "\"name\":",
                                                "\"f\"",
                                                "abc",
                                                "<"};
  for (int round = 0; round < 2000; ++round) {
    ReplySyntax syntax = kThinks;
    syntax.tools = static_cast<ToolSyntax>(random.pick(4));
    syntax.begins_thinking = random.pick(4) == 0;
    std::string text;
    for (std::size_t n = random.pick(16); n > 0; --n)
      text += kParts[random.pick(std::size(kParts))];
    std::vector<std::size_t> sizes;
    for (int i = 0; i < 5; ++i) sizes.push_back(1 + random.pick(6));
    const ParsedReply whole = parse_reply(syntax, text);
    const ParsedReply split = parse_reply(syntax, text, sizes);
    ASSERT_EQ(split.pieces, whole.pieces) << text;
    ASSERT_EQ(split.num_calls, whole.num_calls) << text;
  }
}

TEST(ReplySyntax, IsThatOfTheTemplate) {
  const auto of = [](std::string_view source) { return ReplySyntax::of(source, true).tools; };
  EXPECT_EQ(of("{% for m in messages %}{{ m.content }}{% endfor %}"), ToolSyntax::kHermes);
  EXPECT_EQ(of("You have no tools. {# tools #}{{ 'tools' }}{{ m.tools }}"), ToolSyntax::kHermes);
  EXPECT_EQ(of("{%- if tools %}{{ '<tool_call>' }}{% endif %}"), ToolSyntax::kHermes);
  EXPECT_EQ(of("{% if tools is not none %}[AVAILABLE_TOOLS]{% endif %}[TOOL_CALLS]"),
            ToolSyntax::kMistral);
  EXPECT_EQ(of("{%- if not tools is defined %}{% endif %}{{ '{\"name\": \"' }}"
               "{{- '\"parameters\": ' }}"),
            ToolSyntax::kLlama3);
  EXPECT_EQ(of("{% if tools %}<|python_tag|>{% endif %}"), ToolSyntax::kLlama3);
  EXPECT_EQ(of("{% if tools %}<function>{% endif %}"), ToolSyntax::kNone);
  EXPECT_EQ(ReplySyntax::of("{% if tools %}<tool_call>{% endif %}", false).tools,
            ToolSyntax::kNone);
}

TEST(ReplySyntax, ThinkTagsAreThoseOfTheTemplate) {
  EXPECT_EQ(ReplySyntax::of("{{ m.content }}", false).think_open, "");
  const ReplySyntax syntax = ReplySyntax::of("{{ m.content.split('</think>')[-1] }}", false);
  EXPECT_EQ(syntax.think_open, "<think>");
  EXPECT_EQ(syntax.think_close, "</think>");
  EXPECT_FALSE(syntax.begins_thinking);
}

}  // namespace
}  // namespace cicada::chat
