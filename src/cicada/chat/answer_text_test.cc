#include "cicada/chat/answer_text.h"

#include <gtest/gtest.h>

#include "cicada/chat/reply_for_test.h"
#include "cicada/chat/tiny_tokenizer_for_test.h"

namespace cicada::chat {
namespace {

struct Seen {
  std::string pieces;
  std::optional<std::size_t> matched_stop;
  std::uint32_t num_calls = 0;
};

Seen answer(const TinyVocabulary& vocabulary, const std::vector<TokenId>& ids,
            const std::vector<std::string>& stops, const ReplySyntax& syntax) {
  AnswerText text(vocabulary.tokenizer(), vocabulary.id("<|im_start|>"), stops, syntax);
  std::vector<ReplyPiece> pieces;
  Seen seen;
  const auto take = [&](const AnswerText::Update& update) {
    pieces.insert(pieces.end(), update.pieces.begin(), update.pieces.end());
    if (update.matched_stop) seen.matched_stop = update.matched_stop;
  };
  for (const TokenId id : ids) {
    take(text.add(id));
    if (seen.matched_stop) break;
  }
  take(text.finish());
  seen.pieces = written(pieces);
  seen.num_calls = text.num_calls();
  return seen;
}

std::vector<TokenId> ids_of(const TinyVocabulary& vocabulary, std::string_view text) {
  return vocabulary.tokenizer().encode(text, {.parse_special = true});
}

TEST(AnswerText, TextIsCutAtAStop) {
  const TinyVocabulary vocabulary;
  const auto ids = ids_of(vocabulary, "then the hen");
  EXPECT_EQ(answer(vocabulary, ids, {}, {}).pieces, "text(then the hen)");
  const Seen seen = answer(vocabulary, ids, {"x", " the"}, {});
  EXPECT_EQ(seen.pieces, "text(then)");
  EXPECT_EQ(seen.matched_stop, 1U);
}

TEST(AnswerText, WhatAStopHeldBackIsGivenAtTheEnd) {
  const TinyVocabulary vocabulary;
  EXPECT_EQ(answer(vocabulary, ids_of(vocabulary, "a then"), {"then x"}, {}).pieces,
            "text(a then)");
}

// BC-04: a character of four tokens.
TEST(AnswerText, NoPieceHoldsHalfACharacter) {
  const TinyVocabulary vocabulary;
  AnswerText text(vocabulary.tokenizer(), vocabulary.id("<|im_start|>"), {}, {});
  const auto ids = ids_of(vocabulary, "\U0001F999");
  ASSERT_EQ(ids.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(text.add(ids[i]).pieces.empty());
  EXPECT_EQ(written(text.add(ids[3]).pieces), "text(\U0001F999)");
}

TEST(AnswerText, StopsAreLookedForInWhatTheModelWrites) {
  const TinyVocabulary vocabulary;
  const ReplySyntax syntax{.tools = ToolSyntax::kHermes};
  const auto ids = ids_of(
      vocabulary, "a<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"ab\"}}</tool_call> stop");
  EXPECT_EQ(answer(vocabulary, ids, {"stop"}, syntax).pieces,
            "text(a)call0(f)args0({\"x\":\"ab\"})");
  EXPECT_EQ(answer(vocabulary, ids, {"stop"}, syntax).num_calls, 1U);
  // Whole without what closes it.
  EXPECT_EQ(answer(vocabulary, ids, {"</tool_call>"}, syntax).num_calls, 1U);
  const Seen cut = answer(vocabulary, ids, {"b\""}, syntax);
  EXPECT_EQ(cut.pieces, "text(a)call0(f)args0({\"x\":\"a)");
  EXPECT_EQ(cut.matched_stop, 0U);
  EXPECT_EQ(cut.num_calls, 0U);
}

TEST(AnswerText, WhatAStopHeldBackMayStillBecomeACall) {
  const TinyVocabulary vocabulary;
  const auto ids = ids_of(vocabulary, "<tool_call>{\"name\":\"f\"}</tool_call>");
  const Seen seen = answer(vocabulary, ids, {"</tool_call>x"}, {.tools = ToolSyntax::kHermes});
  EXPECT_EQ(seen.pieces, "call0(f)args0({})");
  EXPECT_EQ(seen.matched_stop, std::nullopt);
}

TEST(AnswerText, ControlTokensCountOnlyAsMarkers) {
  const TinyVocabulary vocabulary({.control = {"<|im_start|>", "[TOOL_CALLS]"}});
  const auto ids =
      ids_of(vocabulary, "a<|im_start|>b[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}}]");
  EXPECT_EQ(answer(vocabulary, ids, {}, {.tools = ToolSyntax::kMistral}).pieces,
            "text(ab)call0(f)args0({})");
  EXPECT_EQ(answer(vocabulary, ids, {}, {}).pieces, "text(ab[{\"name\":\"f\",\"arguments\":{}}])");
}

TEST(AnswerText, APromptMayEndInsideAThought) {
  const TinyVocabulary vocabulary(
      {.control = {"<|im_start|>", "<|im_end|>"}, .user_defined = {"<think>", "</think>"}});
  const ReplySyntax syntax{.think_open = "<think>", .think_close = "</think>"};
  const auto ends = [&](std::string_view prompt) {
    return ends_in_thought(syntax, vocabulary.tokenizer(), ids_of(vocabulary, prompt));
  };
  EXPECT_TRUE(ends("<|im_start|>assistant\n<think>\n"));
  EXPECT_TRUE(ends("<|im_start|>assistant\n<think>\nhm, the"));
  EXPECT_FALSE(ends("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(ends("<|im_start|>user\n<think><|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_FALSE(ends(""));
  EXPECT_FALSE(ends_in_thought({}, vocabulary.tokenizer(), ids_of(vocabulary, "<think>")));
}

}  // namespace
}  // namespace cicada::chat
