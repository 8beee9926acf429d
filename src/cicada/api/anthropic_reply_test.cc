// Frames by hand from the vendor's shapes (docs/api.md, "Anthropic's events").
#include <gtest/gtest.h>

#include "cicada/api/frames.h"
#include "cicada/api/reply.h"

namespace cicada::api {
namespace {

const ReplyHead kHead{.id = "msg_1", .model = "m", .created_unix_s = 7, .request_id = "req_1"};

std::unique_ptr<ReplyWriter> writer(bool is_stream, bool hides_thinking = false) {
  GenerateRequest request;
  request.dialect = Dialect::kAnthropic;
  request.is_stream = is_stream;
  request.hides_thinking = hides_thinking;
  return make_reply_writer(request, kHead);
}

Usage usage() {
  return {.prompt_tokens = 20,
          .cache_read = 4,
          .cache_create_5m = 3,
          .cache_create_1h = 2,
          .completion_tokens = 6,
          .thinking_tokens = 1,
          .layer_zeroed = "rel_pos_proj"};
}

TEST(AnthropicStream, ATextFromStartToStop) {
  const auto out = writer(true);
  EXPECT_EQ(out->begin(Usage{.prompt_tokens = 11}),
            "event: message_start\n"
            "data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\","
            "\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,"
            "\"stop_sequence\":null,\"usage\":{\"input_tokens\":11,\"output_tokens\":0,"
            "\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,"
            "\"cache_creation\":{\"ephemeral_5m_input_tokens\":0,"
            "\"ephemeral_1h_input_tokens\":0},\"service_tier\":\"standard\","
            "\"layer_zeroed\":\"\"}}}\n\n");
  EXPECT_EQ(out->ping(), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
  EXPECT_EQ(out->text(0, "Hi", {}),
            "event: content_block_start\n"
            "data: {\"type\":\"content_block_start\",\"index\":0,"
            "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
            "event: content_block_delta\n"
            "data: {\"type\":\"content_block_delta\",\"index\":0,"
            "\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n");
  EXPECT_EQ(out->text(0, "", {}), "");
  EXPECT_EQ(out->text(0, "\n\"", {}),
            "event: content_block_delta\n"
            "data: {\"type\":\"content_block_delta\",\"index\":0,"
            "\"delta\":{\"type\":\"text_delta\",\"text\":\"\\n\\\"\"}}\n\n");
  EXPECT_EQ(out->finish(0, StopReason::kEnd, ""),
            "event: content_block_stop\n"
            "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n");
  EXPECT_EQ(out->end(usage()),
            "event: message_delta\n"
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\","
            "\"stop_sequence\":null},\"usage\":{\"input_tokens\":11,\"output_tokens\":6,"
            "\"cache_creation_input_tokens\":5,\"cache_read_input_tokens\":4,"
            "\"cache_creation\":{\"ephemeral_5m_input_tokens\":3,"
            "\"ephemeral_1h_input_tokens\":2},\"output_tokens_details\":{\"thinking_tokens\":1},"
            "\"layer_zeroed\":\"rel_pos_proj\"}}\n\n"
            "event: message_stop\n"
            "data: {\"type\":\"message_stop\"}\n\n");
}

// The order and indexes of what is sent, in short: "start 0 text", "text_delta 0", "stop 0".
TEST(AnthropicStream, BlocksFollowEachOtherAndAreNumberedAsTheyOpen) {
  const auto out = writer(true);
  EXPECT_EQ(out->thinking(0, "hm"),
            "event: content_block_start\n"
            "data: {\"type\":\"content_block_start\",\"index\":0,"
            "\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n"
            "event: content_block_delta\n"
            "data: {\"type\":\"content_block_delta\",\"index\":0,"
            "\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n");
  EXPECT_EQ(out->thinking(0, ""), "");
  EXPECT_EQ(out->text(0, "so", {}),
            "event: content_block_delta\n"
            "data: {\"type\":\"content_block_delta\",\"index\":0,"
            "\"delta\":{\"type\":\"signature_delta\",\"signature\":\"unsigned\"}}\n\n"
            "event: content_block_stop\n"
            "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
            "event: content_block_start\n"
            "data: {\"type\":\"content_block_start\",\"index\":1,"
            "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
            "event: content_block_delta\n"
            "data: {\"type\":\"content_block_delta\",\"index\":1,"
            "\"delta\":{\"type\":\"text_delta\",\"text\":\"so\"}}\n\n");
  EXPECT_EQ(out->tool_call(0, 0, "toolu_1", "f"),
            "event: content_block_stop\n"
            "data: {\"type\":\"content_block_stop\",\"index\":1}\n\n"
            "event: content_block_start\n"
            "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":"
            "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"f\",\"input\":{}}}\n\n"
            "event: content_block_delta\n"
            "data: {\"type\":\"content_block_delta\",\"index\":2,"
            "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}\n\n");
  EXPECT_EQ(out->tool_arguments(0, 0, ""), "");
  EXPECT_EQ(out->tool_arguments(0, 0, "{\"x\""),
            "event: content_block_delta\n"
            "data: {\"type\":\"content_block_delta\",\"index\":2,"
            "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\\\"\"}}\n\n");
  const std::string second = out->tool_call(0, 1, "toolu_2", "g");
  EXPECT_TRUE(
      second.starts_with("event: content_block_stop\n"
                         "data: {\"type\":\"content_block_stop\",\"index\":2}\n\n"
                         "event: content_block_start\n"
                         "data: {\"type\":\"content_block_start\",\"index\":3,"))
      << second;
  EXPECT_EQ(out->finish(0, StopReason::kToolCalls, ""),
            "event: content_block_stop\n"
            "data: {\"type\":\"content_block_stop\",\"index\":3}\n\n");
}

TEST(AnthropicStream, AnAnswerWithoutTextHasNoBlocks) {
  const auto out = writer(true);
  EXPECT_EQ(out->finish(0, StopReason::kEnd, ""), "");
}

TEST(AnthropicStream, AThoughtAtTheEndIsSignedToo) {
  const auto out = writer(true);
  static_cast<void>(out->thinking(0, "hm"));
  EXPECT_EQ(out->finish(0, StopReason::kMaxTokens, ""),
            "event: content_block_delta\n"
            "data: {\"type\":\"content_block_delta\",\"index\":0,"
            "\"delta\":{\"type\":\"signature_delta\",\"signature\":\"unsigned\"}}\n\n"
            "event: content_block_stop\n"
            "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n");
}

TEST(AnthropicStream, HiddenThoughtsAreBlocksWithoutText) {
  const auto out = writer(true, true);
  const std::string first = out->thinking(0, "secret");
  EXPECT_NE(first.find("content_block_start"), std::string::npos);
  EXPECT_EQ(first.find("secret"), std::string::npos);
  EXPECT_EQ(out->thinking(0, "secret"), "");
}

TEST(AnthropicStream, EveryReasonHasItsWord) {
  struct Row {
    StopReason reason;
    std::string_view json;
  };
  for (const Row& row :
       {Row{StopReason::kEnd, R"("stop_reason":"end_turn","stop_sequence":null)"},
        Row{StopReason::kStopSequence, R"("stop_reason":"stop_sequence","stop_sequence":"d")"},
        Row{StopReason::kMaxTokens, R"("stop_reason":"max_tokens","stop_sequence":null)"},
        Row{StopReason::kContextFull,
            R"("stop_reason":"model_context_window_exceeded","stop_sequence":null)"},
        Row{StopReason::kToolCalls, R"("stop_reason":"tool_use","stop_sequence":null)"}}) {
    for (const bool is_stream : {true, false}) {
      const auto out = writer(is_stream);
      static_cast<void>(out->finish(0, row.reason, "d"));
      const std::string last = out->end({});
      EXPECT_NE(last.find(row.json), std::string::npos) << last;
    }
  }
}

TEST(AnthropicStream, AnErrorIsAnEventInTheEnvelope) {
  EXPECT_EQ(writer(true)->error(make_api_error(529, "full")),
            "event: error\n"
            "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
            "\"message\":\"full\",\"code\":null,\"param\":null},\"request_id\":\"req_1\"}\n\n");
}

TEST(AnthropicWhole, TheBodyComesAtTheEnd) {
  const auto out = writer(false);
  EXPECT_EQ(out->begin({}), "");
  EXPECT_EQ(out->ping(), "");
  EXPECT_EQ(out->thinking(0, "hm"), "");
  EXPECT_EQ(out->text(0, "Hi", {}), "");
  EXPECT_EQ(out->text(0, " you", {}), "");
  EXPECT_EQ(out->tool_call(0, 0, "toolu_1", "f"), "");
  EXPECT_EQ(out->tool_arguments(0, 0, "{\"x\": "), "");
  EXPECT_EQ(out->tool_arguments(0, 0, "1}"), "");
  EXPECT_EQ(out->tool_call(0, 1, "toolu_2", "g"), "");
  EXPECT_EQ(out->finish(0, StopReason::kToolCalls, ""), "");
  EXPECT_EQ(out->end(usage()),
            R"({"id":"msg_1","type":"message","role":"assistant","model":"m","content":[)"
            R"({"type":"thinking","thinking":"hm","signature":"unsigned"},)"
            R"({"type":"text","text":"Hi you"},)"
            R"({"type":"tool_use","id":"toolu_1","name":"f","input":{"x":1}},)"
            R"({"type":"tool_use","id":"toolu_2","name":"g","input":{}}],)"
            R"("stop_reason":"tool_use","stop_sequence":null,)"
            R"("usage":{"input_tokens":11,"output_tokens":6,"cache_creation_input_tokens":5,)"
            R"("cache_read_input_tokens":4,"cache_creation":{"ephemeral_5m_input_tokens":3,)"
            R"("ephemeral_1h_input_tokens":2},"service_tier":"standard",)"
            R"("output_tokens_details":{"thinking_tokens":1},"layer_zeroed":"rel_pos_proj"}})");
}

TEST(AnthropicWhole, BrokenArgumentsAreKeptAsText) {
  const auto out = writer(false);
  static_cast<void>(out->tool_call(0, 0, "t", "f"));
  static_cast<void>(out->tool_arguments(0, 0, "{\"x"));
  static_cast<void>(out->finish(0, StopReason::kMaxTokens, ""));
  EXPECT_NE(out->end({}).find(R"("input":{"INVALID_JSON":"{\"x"})"), std::string::npos);
}

TEST(AnthropicWhole, HiddenThoughtsAreEmpty) {
  const auto out = writer(false, true);
  static_cast<void>(out->thinking(0, "secret"));
  EXPECT_NE(out->end({}).find(R"([{"type":"thinking","thinking":"","signature":"unsigned"}])"),
            std::string::npos);
}

TEST(Usage, ArchitectureDetailsAreSaidWhereTheyAreSet) {
  Usage with_details = usage();
  with_details.details = ArchitectureDetails{500000.0, {"rel_pos_proj"}};
  constexpr std::string_view kDetails =
      R"("architecture_details":{"rope_base_freq":500000,"zeroed_layers":["rel_pos_proj"]})";
  for (const bool is_stream : {true, false}) {
    EXPECT_NE(writer(is_stream)->end(with_details).find(kDetails), std::string::npos);
    EXPECT_EQ(writer(is_stream)->end(usage()).find("architecture_details"), std::string::npos);
  }
  EXPECT_NE(writer(true)->begin(with_details).find(kDetails), std::string::npos);
}

TEST(Usage, TheHeaderCountsTokens) {
  EXPECT_EQ(token_counts(usage()),
            R"({"prompt_tokens":20,"completion_tokens":6,"total_tokens":26})");
}

TEST(Frames, LineEndsOfUnicodeAreEscaped) {
  EXPECT_EQ(data_frame("\"a\u2028b\u2029c\u0085d\u00e9\u2026\""),
            "data: \"a\\u2028b\\u2029c\\u0085d\u00e9\u2026\"\n\n");
}

}  // namespace
}  // namespace cicada::api
