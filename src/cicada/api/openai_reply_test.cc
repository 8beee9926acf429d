// Frames by hand from the vendor's shapes (docs/api.md, "OpenAI's chunks").
#include <gtest/gtest.h>

#include <limits>

#include "cicada/api/reply.h"

namespace cicada::api {
namespace {

const ReplyHead kHead{.id = "chatcmpl-1", .model = "m", .created_unix_s = 7, .request_id = "r"};

GenerateRequest request_of(Dialect dialect, bool is_stream) {
  GenerateRequest request;
  request.dialect = dialect;
  request.is_stream = is_stream;
  return request;
}

// A chunk of a chat with this choice in it, without and with usage asked for.
std::string chunk(std::string_view choice, std::string_view behind = "") {
  return std::string(R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,)"
                     R"("model":"m","choices":[)")
      .append(choice)
      .append("]")
      .append(behind)
      .append("}\n\n");
}

Usage usage() {
  return {.prompt_tokens = 2,
          .cache_read = 1,
          .completion_tokens = 5,
          .thinking_tokens = 3,
          .layer_zeroed = "rel_pos_proj"};
}

constexpr std::string_view kUsage =
    R"("usage":{"prompt_tokens":2,"completion_tokens":5,"total_tokens":7,)"
    R"("prompt_tokens_details":{"cached_tokens":1,"cache_write_tokens":0},)"
    R"("completion_tokens_details":{"reasoning_tokens":3},"layer_zeroed":"rel_pos_proj"})";

TEST(OpenAiChatStream, ATextFromRoleToDone) {
  const auto out = make_reply_writer(request_of(Dialect::kOpenAiChat, true), kHead);
  EXPECT_EQ(out->begin({}), chunk(R"({"index":0,"delta":{"role":"assistant","content":""},)"
                                  R"("logprobs":null,"finish_reason":null})"));
  EXPECT_EQ(out->ping(), ": ping\n\n");
  EXPECT_EQ(
      out->text(0, "Hi\n", {}),
      chunk(R"({"index":0,"delta":{"content":"Hi\n"},"logprobs":null,"finish_reason":null})"));
  EXPECT_EQ(out->text(0, "", {}), "");
  EXPECT_EQ(out->thinking(0, ""), "");
  EXPECT_EQ(out->thinking(0, "hm"), chunk(R"({"index":0,"delta":{"reasoning_content":"hm"},)"
                                          R"("logprobs":null,"finish_reason":null})"));
  EXPECT_EQ(out->finish(0, StopReason::kEnd, ""),
            chunk(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"})"));
  EXPECT_EQ(out->end(usage()), "data: [DONE]\n\n");
}

TEST(OpenAiChatStream, UsageIsNullUntilTheLastChunk) {
  GenerateRequest request = request_of(Dialect::kOpenAiChat, true);
  request.include_usage = true;
  const auto out = make_reply_writer(request, kHead);
  EXPECT_EQ(out->begin(usage()), chunk(R"({"index":0,"delta":{"role":"assistant","content":""},)"
                                       R"("logprobs":null,"finish_reason":null})",
                                       R"(,"usage":null)"));
  EXPECT_EQ(out->finish(0, StopReason::kEnd, ""),
            chunk(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"})",
                  R"(,"usage":null)"));
  EXPECT_EQ(out->end(usage()), chunk("", std::string(",").append(kUsage)) + "data: [DONE]\n\n");
}

TEST(OpenAiChatStream, ChoicesBeginInOrderAndEndEachWithItsIndex) {
  GenerateRequest request = request_of(Dialect::kOpenAiChat, true);
  request.n = 3;
  const auto out = make_reply_writer(request, kHead);
  const auto role = [](int index) {
    return chunk(R"({"index":)" + std::to_string(index) +
                 R"(,"delta":{"role":"assistant","content":""},"logprobs":null,)"
                 R"("finish_reason":null})");
  };
  EXPECT_EQ(out->begin({}), role(0) + role(1) + role(2));
  EXPECT_EQ(out->text(2, "c", {}),
            chunk(R"({"index":2,"delta":{"content":"c"},"logprobs":null,"finish_reason":null})"));
  EXPECT_EQ(out->finish(1, StopReason::kMaxTokens, ""),
            chunk(R"({"index":1,"delta":{},"logprobs":null,"finish_reason":"length"})"));
}

TEST(OpenAiChatStream, CallsSayTheirNamesOnce) {
  const auto out = make_reply_writer(request_of(Dialect::kOpenAiChat, true), kHead);
  EXPECT_EQ(out->tool_call(0, 1, "call_1", "f"),
            chunk(R"({"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_1",)"
                  R"("type":"function","function":{"name":"f","arguments":""}}]},)"
                  R"("logprobs":null,"finish_reason":null})"));
  EXPECT_EQ(out->tool_arguments(0, 1, "{\"x\""),
            chunk(R"({"index":0,"delta":{"tool_calls":[{"index":1,)"
                  R"("function":{"arguments":"{\"x\""}}]},"logprobs":null,"finish_reason":null})"));
  EXPECT_EQ(out->tool_arguments(0, 1, ""), "");
  EXPECT_EQ(out->finish(0, StopReason::kToolCalls, ""),
            chunk(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"})"));
}

TEST(OpenAiChatStream, EveryReasonHasItsWord) {
  struct Row {
    StopReason reason;
    std::string_view word;
  };
  for (const Row& row :
       {Row{StopReason::kEnd, "stop"}, Row{StopReason::kStopSequence, "stop"},
        Row{StopReason::kMaxTokens, "length"}, Row{StopReason::kContextFull, "length"},
        Row{StopReason::kToolCalls, "tool_calls"}}) {
    const std::string part = std::string(R"("finish_reason":")").append(row.word).append("\"");
    const auto stream = make_reply_writer(request_of(Dialect::kOpenAiChat, true), kHead);
    EXPECT_NE(stream->finish(0, row.reason, "x").find(part), std::string::npos);
    const auto whole = make_reply_writer(request_of(Dialect::kOpenAiChat, false), kHead);
    static_cast<void>(whole->finish(0, row.reason, "x"));
    EXPECT_NE(whole->end({}).find(part), std::string::npos);
  }
}

TEST(OpenAiChatStream, AnErrorIsAFrameWithoutDone) {
  for (const Dialect dialect : {Dialect::kOpenAiChat, Dialect::kOpenAiCompletion}) {
    EXPECT_EQ(make_reply_writer(request_of(dialect, true), kHead)
                  ->error(make_api_error(500, "m", "c", "p")),
              "data: {\"error\":{\"type\":\"api_error\",\"message\":\"m\",\"code\":\"c\","
              "\"param\":\"p\"}}\n\n");
  }
}

using Tokens = std::vector<TokenLogprob>;

TokenText text_of(std::string bytes, float logprob) { return {std::move(bytes), logprob}; }

// A token with one alternative, or, where that has no bytes, with none.
TokenLogprob token(TokenText text, TokenText other = {}) {
  TokenLogprob out;
  out.token = std::move(text);
  if (!other.bytes.empty()) out.top.push_back(std::move(other));
  return out;
}

Tokens tokens(TokenLogprob first) {
  Tokens out;
  out.push_back(std::move(first));
  return out;
}

// The first half of a character, with an alternative that has no chance.
TokenLogprob half() {
  TokenLogprob out = token(text_of("\xF0\x9F", -0.5F), text_of("\xF0\x9F", -0.5F));
  out.top.push_back(text_of("a", -std::numeric_limits<float>::infinity()));
  return out;
}

TEST(OpenAiChatStream, LogprobsOfHalfACharacterComeWithoutText) {
  GenerateRequest request = request_of(Dialect::kOpenAiChat, true);
  const auto without = make_reply_writer(request, kHead);
  EXPECT_EQ(without->text(0, "", tokens(half())), "");
  request.wants_logprobs = true;
  const auto out = make_reply_writer(request, kHead);
  EXPECT_EQ(out->text(0, "", tokens(half())),
            chunk(R"({"index":0,"delta":{"content":""},"logprobs":{"content":[)"
                  R"({"token":"\\xf0\\x9f","logprob":-0.5,"bytes":[240,159],"top_logprobs":[)"
                  R"({"token":"\\xf0\\x9f","logprob":-0.5,"bytes":[240,159]},)"
                  R"({"token":"a","logprob":-9999,"bytes":[97]}]}],"refusal":null},)"
                  R"("finish_reason":null})"));
  const Tokens alone = tokens(token(text_of("b", -1)));
  EXPECT_EQ(out->text(0, "b", alone),
            chunk(R"({"index":0,"delta":{"content":"b"},"logprobs":{"content":[)"
                  R"({"token":"b","logprob":-1,"bytes":[98],"top_logprobs":[]}],)"
                  R"("refusal":null},"finish_reason":null})"));
}

TEST(OpenAiChatWhole, ChoicesWithTextThoughtsAndCalls) {
  GenerateRequest request = request_of(Dialect::kOpenAiChat, false);
  request.n = 2;
  request.wants_logprobs = true;
  const auto out = make_reply_writer(request, kHead);
  const Tokens one = tokens(token(text_of("b", -1)));
  EXPECT_EQ(out->begin({}), "");
  EXPECT_EQ(out->thinking(0, "hm"), "");
  EXPECT_EQ(out->text(0, "b", one), "");
  EXPECT_EQ(out->finish(0, StopReason::kStopSequence, "x"), "");
  EXPECT_EQ(out->tool_call(1, 0, "call_1", "f"), "");
  EXPECT_EQ(out->tool_arguments(1, 0, "{}"), "");
  EXPECT_EQ(out->finish(1, StopReason::kToolCalls, ""), "");
  EXPECT_EQ(
      out->end(usage()),
      std::string(R"({"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m",)"
                  R"("choices":[{"index":0,"message":{"role":"assistant","content":"b",)"
                  R"("refusal":null,"reasoning_content":"hm"},"logprobs":{"content":[)"
                  R"({"token":"b","logprob":-1,"bytes":[98],"top_logprobs":[]}],"refusal":null},)"
                  R"("finish_reason":"stop"},{"index":1,"message":{"role":"assistant",)"
                  R"("content":null,"refusal":null,"tool_calls":[{"id":"call_1",)"
                  R"("type":"function","function":{"name":"f","arguments":"{}"}}]},)"
                  R"("logprobs":null,"finish_reason":"tool_calls"}],)")
          .append(kUsage)
          .append("}"));
}

TEST(OpenAiChatWhole, NoTextIsAnEmptyString) {
  const auto out = make_reply_writer(request_of(Dialect::kOpenAiChat, false), kHead);
  EXPECT_NE(out->end({}).find(R"("content":"")"), std::string::npos);
}

std::string completion_chunk(std::string_view choice, std::string_view behind = "") {
  return std::string(R"(data: {"id":"chatcmpl-1","object":"text_completion","created":7,)"
                     R"("model":"m","choices":[)")
      .append(choice)
      .append("]")
      .append(behind)
      .append("}\n\n");
}

TEST(OpenAiCompletionStream, ATextFromStartToDone) {
  GenerateRequest request = request_of(Dialect::kOpenAiCompletion, true);
  request.include_usage = true;
  const auto out = make_reply_writer(request, kHead);
  EXPECT_EQ(out->begin({}), "");
  EXPECT_EQ(out->ping(), ": ping\n\n");
  EXPECT_EQ(out->text(0, "b", {}),
            completion_chunk(R"({"index":0,"text":"b","logprobs":null,"finish_reason":null})",
                             R"(,"usage":null)"));
  EXPECT_EQ(out->text(0, "", {}), "");
  EXPECT_EQ(out->finish(0, StopReason::kMaxTokens, ""),
            completion_chunk(R"({"index":0,"text":"","logprobs":null,"finish_reason":"length"})",
                             R"(,"usage":null)"));
  EXPECT_EQ(out->end(usage()),
            completion_chunk("", std::string(",").append(kUsage)) + "data: [DONE]\n\n");
}

TEST(OpenAiCompletionStream, LogprobsHaveOffsetsInCharactersOfTheirChoice) {
  GenerateRequest request = request_of(Dialect::kOpenAiCompletion, true);
  request.n = 2;
  request.wants_logprobs = true;
  request.top_logprobs = 1;
  const auto out = make_reply_writer(request, kHead);
  Tokens first = tokens(token(text_of("\u00e9a", -1), text_of("x", -0.5F)));
  first.push_back(half());
  Tokens rest = tokens(token(text_of("\xA6\x99", -2), text_of("\xA6\x99", -2)));
  rest.push_back(token(text_of("!", -3), text_of("!", -3)));
  rest.back().top.push_back(text_of("!", -4));
  EXPECT_EQ(out->text(1, "\u00e9a", first),
            completion_chunk("{\"index\":1,\"text\":\"\u00e9a\",\"logprobs\":{\"tokens\":"
                             "[\"\u00e9a\",\"bytes:\\\\xf0\\\\x9f\"],\"token_logprobs\":[-1,-0.5],"
                             "\"top_logprobs\":[{\"x\":-0.5,\"\u00e9a\":-1},"
                             "{\"bytes:\\\\xf0\\\\x9f\":-0.5,\"a\":-9999}],"
                             "\"text_offset\":[0,2]},\"finish_reason\":null}"));
  EXPECT_EQ(out->text(1, "\U0001F999!", rest),
            completion_chunk("{\"index\":1,\"text\":\"\U0001F999!\",\"logprobs\":{\"tokens\":"
                             "[\"bytes:\\\\xa6\\\\x99\",\"!\"],\"token_logprobs\":[-2,-3],"
                             "\"top_logprobs\":[{\"bytes:\\\\xa6\\\\x99\":-2},{\"!\":-3}],"
                             "\"text_offset\":[2,3]},\"finish_reason\":null}"));
  const Tokens other = tokens(token(text_of("a", -1), text_of("a", -1)));
  EXPECT_NE(out->text(0, "a", other).find(R"("text_offset":[0])"), std::string::npos);
}

TEST(OpenAiCompletionWhole, ChoicesOfAllPromptsInOrder) {
  GenerateRequest request = request_of(Dialect::kOpenAiCompletion, false);
  request.n = 2;
  request.prompts.resize(2);
  request.wants_logprobs = true;
  const auto out = make_reply_writer(request, kHead);
  const Tokens one = tokens(token(text_of("a", -1)));
  static_cast<void>(out->text(0, "a", one));
  static_cast<void>(out->text(3, "d", {}));
  for (std::uint32_t i = 0; i < 4; ++i) {
    static_cast<void>(out->finish(i, StopReason::kMaxTokens, ""));
  }
  const auto choice = [](int index, std::string_view text, std::string_view logprobs) {
    return R"({"index":)" + std::to_string(index) + R"(,"text":")" + std::string(text) +
           R"(","logprobs":)" + std::string(logprobs) + R"(,"finish_reason":"length"})";
  };
  EXPECT_EQ(out->end(usage()),
            R"({"id":"chatcmpl-1","object":"text_completion","created":7,"model":"m","choices":[)" +
                choice(0, "a",
                       R"({"tokens":["a"],"token_logprobs":[-1],"top_logprobs":null,)"
                       R"("text_offset":[0]})") +
                "," + choice(1, "", "null") + "," + choice(2, "", "null") + "," +
                choice(3, "d", "null") + "]," + std::string(kUsage) + "}");
}

}  // namespace
}  // namespace cicada::api
