#include "cicada/chat/chat_template.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "cicada/chat/tiny_tokenizer_for_test.h"
#include "cicada/formats/gguf_test_builder.h"

namespace cicada::chat {
namespace {

constexpr const char* kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

ChatTemplate compiled(const std::string& source) {
  auto result = ChatTemplate::compile(source, "<s>", "</s>");
  EXPECT_TRUE(result.has_value()) << result.error().to_string();
  return *std::move(result);
}

std::vector<TokenId> encoded(const ChatTemplate& chat, const std::vector<Message>& messages,
                             const TinyVocabulary& vocabulary) {
  const auto ids = chat.encode(messages, vocabulary.tokenizer(), {});
  EXPECT_TRUE(ids.has_value()) << ids.error().to_string();
  return ids ? *ids : std::vector<TokenId>();
}

std::ptrdiff_t count(const std::vector<TokenId>& ids, TokenId id) {
  return std::ranges::count(ids, id);
}

// BC-01
TEST(ChatTemplate, AControlTokenInAMessageIsTenPlainTokens) {
  const TinyVocabulary vocabulary;
  const ChatTemplate chat = compiled(kChatMl);
  const TokenId end = vocabulary.id("<|im_end|>");
  ASSERT_GE(end.value, 0);
  for (const char* role : {"user", "system", "assistant", "tool"}) {
    const auto plain = encoded(chat, {{role, "xy"}}, vocabulary);
    const auto marked = encoded(chat, {{role, "x<|im_end|>y"}}, vocabulary);
    EXPECT_EQ(marked.size() - plain.size(), 10U) << role;
    EXPECT_EQ(count(plain, end), 1);
    EXPECT_EQ(count(marked, end), 1) << role;
    EXPECT_EQ(vocabulary.tokenizer().decode(marked, true),
              chat.render({{role, "x<|im_end|>y"}}, {}).value().insert(0, "<s>"));
  }
}

TEST(ChatTemplate, MessagesWriteNoControlTokenWhateverTheTemplateDoes) {
  const TinyVocabulary vocabulary;
  struct Case {
    const char* source;
    std::vector<Message> messages;
    std::ptrdiff_t num_ends;  // written by the template
  };
  const std::vector<Case> cases = {
      {"{{ messages[0].content|lower }}", {{"user", "<|IM_END|>"}}, 0},
      {"{{ messages[0].content|trim }}<|im_end|>", {{"user", "  <|im_end|>  "}}, 1},
      {"{{ messages[0].content[::-1] }}", {{"user", ">|dne_mi|<"}}, 0},
      {"{{ messages[0].content[2:] }}", {{"user", "xx<|im_end|>"}}, 0},
      {"{{ messages[0].content|replace('q', '') }}", {{"user", "<|im_qend|>"}}, 0},
      {"{{ messages[0].content.split('q')|join }}", {{"user", "<|im_qend|>"}}, 0},
      {"{{ messages[0].content }}{{ messages[1].content }}",
       {{"user", "<|im_"}, {"user", "end|>"}},
       0},
      {"{{ messages[0].content }}|im_end|>", {{"user", "<"}}, 0},
      {"{{ messages[0].role }}", {{"<|im_end|>", ""}}, 0},
      {"{% for m in messages %}{{ m|tojson }}{% endfor %}", {{"<|im_end|>", "<|im_end|>"}}, 0},
      {"{{ messages[0]|tojson(ensure_ascii=true) }}", {{"user", "<|im_end|>"}}, 0},
      {"{{ messages }}<|im_end|>", {{"user", "<|im_end|>"}}, 1},
      {"{% set ns = namespace(t='') %}{% for c in messages[0].content %}{% set ns.t = ns.t ~ c %}"
       "{% endfor %}{{ ns.t }}<|im_end|>",
       {{"user", "<|im_end|>"}},
       1},
      {"{% if '<|im_end|>' in messages[0].content %}{{ messages[0].content }}{% endif %}",
       {{"user", "<|im_end|>"}},
       0},
  };
  for (const Case& c : cases) {
    const auto ids = encoded(compiled(c.source), c.messages, vocabulary);
    EXPECT_EQ(count(ids, vocabulary.id("<|im_end|>")), c.num_ends) << c.source;
  }
}

TEST(ChatTemplate, RolesStillBuildControlTokens) {
  const TinyVocabulary vocabulary({.control = {"<|user|>", "<|end|>"}});
  const ChatTemplate chat =
      compiled("{{ '<|' + messages[0].role + '|>' }}{{ messages[0].content }}<|end|>");
  const auto ids = encoded(chat, {{"user", "<|user|>"}}, vocabulary);
  EXPECT_EQ(count(ids, vocabulary.id("<|user|>")), 1);
  EXPECT_EQ(count(ids, vocabulary.id("<|end|>")), 1);
}

// A template that looks for its own tags in a message finds them, as in Qwen3's.
TEST(ChatTemplate, TemplatesFindTheirTagsInMessages) {
  const TinyVocabulary vocabulary({.user_defined = {"<think>", "</think>"}});
  const ChatTemplate chat = compiled(
      "{% if '</think>' in messages[0].content %}{{ messages[0].content.split('</think>')[-1] }}"
      "{% endif %}<|im_end|>");
  const auto ids = encoded(chat, {{"assistant", "<think>a</think>b<|im_end|>"}}, vocabulary);
  EXPECT_EQ(vocabulary.tokenizer().decode(ids, true), "<s>b<|im_end|><|im_end|>");
  EXPECT_EQ(count(ids, vocabulary.id("<|im_end|>")), 1);
}

TEST(ChatTemplate, ControlTokensOfLettersAreNotWrittenByMessages) {
  const TinyVocabulary vocabulary({.control = {"stopword", "[INST]", "\u2581ende"}});
  const ChatTemplate chat = compiled("[INST]{{ messages[0].content }}stopword");
  const auto ids = encoded(chat, {{"user", "a stopword [INST] \u2581ende"}}, vocabulary);
  EXPECT_EQ(count(ids, vocabulary.id("[INST]")), 1);
  EXPECT_EQ(count(ids, vocabulary.id("stopword")), 1);
  EXPECT_EQ(count(ids, vocabulary.id("\u2581ende")), 0);
  EXPECT_EQ(ids.back(), vocabulary.id("stopword"));
}

TEST(ChatTemplate, PrivateCharactersInMessagesStayThemselves) {
  const TinyVocabulary vocabulary;
  const std::string text = "\U000F0000<\U000F0001|\U0010FFFD\uE000";
  const ChatTemplate chat = compiled("{{ messages[0].content }}");
  const auto ids = encoded(chat, {{"user", text}}, vocabulary);
  EXPECT_EQ(vocabulary.tokenizer().decode(ids, false), text);
}

TEST(ChatTemplate, WithoutControlTokensInMessagesIdsAreThoseOfTheRenderedText) {
  const TinyVocabulary vocabulary({.add_bos = false});
  const ChatTemplate chat = compiled(kChatMl);
  for (const char* content : {"", "the hen", "  a <b> | c  ", "\u00e4\U0001F999", "a\nb"}) {
    const std::vector<Message> messages = {{"system", content}, {"user", content}};
    const auto text = chat.render(messages, {});
    ASSERT_TRUE(text.has_value());
    EXPECT_EQ(encoded(chat, messages, vocabulary),
              vocabulary.tokenizer().encode(*text, {.parse_special = true}))
        << content;
  }
}

TEST(ChatTemplate, AModelWithoutATemplateGetsChatMlAndSaysSo) {
  TinyVocabulary vocabulary;
  for (const bool has_empty : {false, true}) {
    if (has_empty) vocabulary.set_string("tokenizer.chat_template", "");
    const auto chat = ChatTemplate::from_model(vocabulary.metadata(), vocabulary.tokenizer());
    ASSERT_TRUE(chat.has_value()) << chat.error().to_string();
    EXPECT_TRUE(chat->is_fallback());
    EXPECT_FALSE(chat->fallback_note().empty());
    EXPECT_EQ(chat->render({{"user", "x"}}, {}).value(),
              "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n");
  }
}

TEST(ChatTemplate, AModelsOwnTemplateIsUsedWithItsTokens) {
  TinyVocabulary vocabulary;
  vocabulary.set_string("tokenizer.chat_template", "{{ bos_token }}{{ eos_token }}");
  const auto chat = ChatTemplate::from_model(vocabulary.metadata(), vocabulary.tokenizer());
  ASSERT_TRUE(chat.has_value()) << chat.error().to_string();
  EXPECT_FALSE(chat->is_fallback());
  EXPECT_TRUE(chat->fallback_note().empty());
  EXPECT_EQ(chat->render({}, {}).value(), "<s></s>");
}

TEST(ChatTemplate, AModelsTemplateOfAWrongTypeIsCorrupt) {
  TinyVocabulary vocabulary;
  vocabulary.set_number("tokenizer.chat_template", 7);
  const auto chat = ChatTemplate::from_model(vocabulary.metadata(), vocabulary.tokenizer());
  ASSERT_FALSE(chat.has_value());
  EXPECT_EQ(chat.error().code(), Code::kCorrupt);
}

// BC-07
TEST(ChatTemplate, WritesExactlyOneBos) {
  for (const bool wants_bos : {true, false}) {
    const TinyVocabulary vocabulary({.add_bos = wants_bos});
    const auto ids =
        encoded(compiled("{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}q"),
                {{"user", "ab"}}, vocabulary);
    EXPECT_EQ(ids, (std::vector<TokenId>{vocabulary.id("<s>"), vocabulary.id("a"),
                                         vocabulary.id("b"), vocabulary.id("q")}))
        << wants_bos;
  }
}

TEST(ChatTemplate, AddsABosOnlyWhereTheModelWantsOne) {
  const ChatTemplate chat = compiled("{{ messages[0].content }}q");
  const TinyVocabulary with({.add_bos = true});
  EXPECT_EQ(encoded(chat, {{"user", "a"}}, with),
            (std::vector<TokenId>{with.id("<s>"), with.id("a"), with.id("q")}));
  const TinyVocabulary without({.add_bos = false});
  EXPECT_EQ(encoded(chat, {{"user", "a"}}, without),
            (std::vector<TokenId>{without.id("a"), without.id("q")}));
  // A message cannot stand in for it.
  const auto ids = encoded(chat, {{"user", "<s>"}}, with);
  EXPECT_EQ(ids.front(), with.id("<s>"));
  EXPECT_EQ(count(ids, with.id("<s>")), 1);
  EXPECT_GT(ids.size(), 3U);
}

TEST(ChatTemplate, TwoWrittenBosBecomeOne) {
  const TinyVocabulary vocabulary;
  const auto ids = encoded(compiled("{{ bos_token }}{{ bos_token }}q"), {}, vocabulary);
  EXPECT_EQ(ids, (std::vector<TokenId>{vocabulary.id("<s>"), vocabulary.id("q")}));
}

// BC-08
TEST(ChatTemplate, RaisedMessagesAreErrorsInTheTemplatesWords) {
  const ChatTemplate chat = compiled(
      "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}"
      "{% endif %}{% for m in messages %}"
      "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('Roles must alternate: ' ~ m.role) }}{% endif %}{{ m.content }}"
      "{% endfor %}");
  const auto system = chat.render({{"system", "s"}, {"user", "u"}}, {});
  ASSERT_FALSE(system.has_value());
  EXPECT_EQ(system.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(system.error().message(), "System role not supported");
  const auto twice = chat.render({{"user", "u"}, {"user", "u"}}, {});
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().message(), "Roles must alternate: user");
  EXPECT_EQ(chat.render({{"user", "u"}, {"assistant", "a"}}, {}).value(), "ua");
}

TEST(ChatTemplate, RaisingWithoutWordsIsSaidToBeSo) {
  for (const char* source :
       {"{{ raise_exception() }}", "{{ raise_exception('') }}", "{{ raise_exception(' \n') }}"}) {
    const auto result = compiled(source).render({}, {});
    ASSERT_FALSE(result.has_value()) << source;
    EXPECT_EQ(result.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(result.error().to_string(),
              "the chat template refused the conversation without saying why");
  }
}

TEST(ChatTemplate, ErrorsOfAFileNameIt) {
  const TinyVocabulary vocabulary;
  const auto message = [&](formats::GgufBuilder& builder) {
    const auto file = formats::open_bytes(builder.build());
    EXPECT_TRUE(file.has_value());
    const auto result = ChatTemplate::from_model(*file, vocabulary.tokenizer());
    EXPECT_FALSE(result.has_value());
    return result ? std::string() : result.error().to_string();
  };
  formats::GgufBuilder broken;
  broken.key_string("tokenizer.chat_template", "a\n{% if x");
  EXPECT_TRUE(formats::has(message(broken), "open_bytes.gguf: chat template: "));
  formats::GgufBuilder number;
  number.key_u32("tokenizer.chat_template", 7);
  EXPECT_TRUE(formats::has(message(number), "open_bytes.gguf: key tokenizer.chat_template"));
}

TEST(ChatTemplate, RaisingInsideAMacroKeepsTheWords) {
  const auto result =
      compiled("{% macro m() %}{{ raise_exception('no') }}{% endmacro %}{{ m()|upper }}")
          .render({}, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message(), "no");
}

TEST(ChatTemplate, SyntaxErrorsNameTheLine) {
  struct Case {
    const char* source;
    const char* line;
  };
  for (const Case& c : {Case{"a\n{% for m in %}\n{% endfor %}", "line 2"},
                        Case{"a\n\n{{ 'open }}", "line 3"}, Case{"a\n{% if x %}", "line 2"},
                        Case{"{% nonsense %}", "line 1"}, Case{"a\n{{ 1 + }}", "line 2"}}) {
    const auto result = ChatTemplate::compile(c.source, "", "");
    ASSERT_FALSE(result.has_value()) << c.source;
    EXPECT_EQ(result.error().code(), Code::kInvalidArgument);
    EXPECT_NE(result.error().message().find(c.line), std::string::npos) << result.error().message();
  }
}

TEST(ChatTemplate, FailuresWhileRenderingNameTheLine) {
  const auto result = compiled("a\n{{ messages[5].content }}").render({{"user", "x"}}, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), Code::kInvalidArgument);
  EXPECT_NE(result.error().message().find("line 2"), std::string::npos) << result.error().message();
}

TEST(ChatTemplate, LoopsOverUndefinedAreEmpty) {
  EXPECT_EQ(compiled("a{% for x in nope %}{{ x }}{% endfor %}b").render({}, {}).value(), "ab");
}

TEST(ChatTemplate, RefusesMessagesThatAreNotUtf8) {
  const ChatTemplate chat = compiled(kChatMl);
  const auto content = chat.render({{"user", "a"}, {"user", "ab\xff"}}, {});
  ASSERT_FALSE(content.has_value());
  EXPECT_EQ(content.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(content.error().message(), "message 1 (user): content: invalid UTF-8 at byte 2");
  const TinyVocabulary vocabulary;
  const auto role = chat.encode({{"\xc3", "a"}}, vocabulary.tokenizer(), {});
  ASSERT_FALSE(role.has_value());
  EXPECT_EQ(role.error().message(), "message 0: role: invalid UTF-8 at byte 0");
}

TEST(ChatTemplate, KeepsEveryCharacterOfAMessage) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  all += "\u0080\u00ff\u2028\ufeff\uffff\U0001F999\U0010FFFF";
  const TinyVocabulary vocabulary;
  const ChatTemplate chat = compiled("{{ messages[0].content }}");
  EXPECT_EQ(chat.render({{"user", all}}, {}).value(), all);
  EXPECT_EQ(vocabulary.tokenizer().decode(encoded(chat, {{"user", all}}, vocabulary), false), all);
}

TEST(ChatTemplate, TheClockIsTheCallers) {
  const ChatTemplate chat = compiled("{{ strftime_now('%d %b %Y') }}");
  EXPECT_EQ(chat.render({}, {.now_unix_s = 0}).value(), "01 Jan 1970");
  EXPECT_EQ(chat.render({}, {.now_unix_s = 951'782'400}).value(), "29 Feb 2000");
  EXPECT_EQ(chat.render({}, {.now_unix_s = -1}).value(), "31 Dec 1969");
  EXPECT_TRUE(chat.render({}, {.now_unix_s = INT64_MIN}).has_value());
  EXPECT_TRUE(chat.render({}, {.now_unix_s = INT64_MAX}).has_value());
}

TEST(ChatTemplate, GenerationPromptIsAsked) {
  const ChatTemplate chat = compiled(kChatMl);
  const std::string with = chat.render({{"user", "x"}}, {.add_generation_prompt = true}).value();
  const std::string without =
      chat.render({{"user", "x"}}, {.add_generation_prompt = false}).value();
  EXPECT_EQ(with, without + "<|im_start|>assistant\n");
}

TEST(ChatTemplate, RendersOnSeveralThreadsAtOnce) {
  const ChatTemplate chat = compiled(kChatMl);
  std::vector<std::string> results(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& result : results) {
      threads.emplace_back([&chat, &result] {
        for (int i = 0; i < 20; ++i) result = chat.render({{"user", "x"}}, {}).value_or("failed");
      });
    }
  }
  for (const std::string& result : results) {
    EXPECT_EQ(result, "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n");
  }
}

}  // namespace
}  // namespace cicada::chat
