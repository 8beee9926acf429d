#include <gtest/gtest.h>

#include "cicada/api/anthropic.h"
#include "cicada/api/parsed_for_test.h"

namespace cicada::api {
namespace {

constexpr std::string_view kGood =
    R"({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]})";

GenerateRequest good(std::string_view more) {
  const auto parsed = parse_messages(more.empty() ? std::string(kGood) : with(kGood, more));
  EXPECT_EQ(refusal(parsed), "");
  return parsed.value_or(GenerateRequest{});
}

GenerateRequest conversation(std::string_view messages, std::string_view more = {}) {
  std::string body = R"({"model": "m", "max_tokens": 5, "messages": )";
  body.append(messages).append(more).append("}");
  const auto parsed = parse_messages(body);
  EXPECT_EQ(refusal(parsed), "") << body;
  return parsed.value_or(GenerateRequest{});
}

// "role:content" of each message.
std::vector<std::string> turns(const GenerateRequest& request) {
  std::vector<std::string> out;
  for (const chat::Message& message : request.messages) {
    out.push_back(message.role + ":" + message.content);
  }
  return out;
}

using Turns = std::vector<std::string>;

TEST(AnthropicRequest, TheLeastThatIsNeeded) {
  const GenerateRequest request = good("");
  EXPECT_EQ(request.dialect, Dialect::kAnthropic);
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.max_tokens, 5U);
  EXPECT_EQ(turns(request), (Turns{"user:hi"}));
  EXPECT_FALSE(request.continues_last);
  EXPECT_FALSE(request.is_stream);
  EXPECT_FALSE(request.is_thinking);
  EXPECT_FALSE(request.has_temperature || request.has_top_p || request.has_top_k ||
               request.has_seed);
  EXPECT_TRUE(request.cache_marks.empty());
}

TEST(AnthropicRequest, SamplingFieldsAreTakenAndMarkedAsGiven) {
  const GenerateRequest request = good(
      R"("temperature": 0.5, "top_p": 0.25, "top_k": 3, "min_p": 0.125, "seed": -1,
         "presence_penalty": -2, "frequency_penalty": 2, "repetition_penalty": 1.5,
         "logit_bias": {"7": -100, "3": 1.5}, "stream": true)");
  EXPECT_TRUE(request.has_temperature && request.has_top_p && request.has_top_k &&
              request.has_seed);
  EXPECT_EQ(request.sampling.temperature, 0.5F);
  EXPECT_EQ(request.sampling.top_p, 0.25F);
  EXPECT_EQ(request.sampling.top_k, 3U);
  EXPECT_EQ(request.sampling.min_p, 0.125F);
  EXPECT_EQ(request.sampling.seed, UINT64_MAX);
  EXPECT_EQ(request.sampling.presence_penalty, -2.0F);
  EXPECT_EQ(request.sampling.frequency_penalty, 2.0F);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5F);
  EXPECT_EQ(request.logit_bias,
            (std::vector<std::pair<std::int64_t, float>>{{3, 1.5F}, {7, -100}}));
  EXPECT_TRUE(request.is_stream);
}

TEST(AnthropicRequest, EdgesOfRangesAreInside) {
  EXPECT_EQ(good(R"("temperature": 20)").sampling.temperature, 20.0F);
  EXPECT_EQ(good(R"("temperature": 1e-9)").sampling.temperature, 1e-9F);
  EXPECT_EQ(good(R"("top_p": 0)").sampling.top_p, 0.0F);
  EXPECT_EQ(good(R"("top_p": 1)").sampling.top_p, 1.0F);
  EXPECT_EQ(good(R"("min_p": 1)").sampling.min_p, 1.0F);
  EXPECT_EQ(good(R"("top_k": 0)").sampling.top_k, 0U);
  EXPECT_EQ(good(R"("top_k": -1)").sampling.top_k, 0U);
  EXPECT_EQ(good(R"("seed": 18446744073709551615)").sampling.seed, UINT64_MAX);
}

TEST(AnthropicRequest, NullAndUnknownFieldsAreIgnored) {
  const GenerateRequest request =
      good(R"("temperature": null, "stop_sequences": null, "system": null, "tools": null,
              "thinking": null, "container": "c", "inference_geo": "eu", "diagnostics": {},
              "speed": "fast", "service_tier": "auto", "output_config": {"effort": "high"},
              "x": [1], "thread": null, "buffer_hint": null, "tool_choice": null)");
  EXPECT_FALSE(request.has_temperature);
  EXPECT_EQ(request.messages.size(), 1U);
}

TEST(AnthropicRequest, StopSequences) {
  EXPECT_EQ(good(R"("stop_sequences": ["a", " \n"])").stop, (Turns{"a", " \n"}));
  std::string list = R"("stop_sequences": ["x")";
  for (int i = 1; i < 64; ++i) list += R"(,"x")";
  EXPECT_EQ(good(list + "]").stop.size(), 64U);
  EXPECT_EQ(refusal(parse_messages(with(kGood, list + R"(,"x"])"))),
            "stop_sequences: found 65 strings, allowed at most 64");
}

TEST(AnthropicRequest, SystemComesFirstAndItsBlocksAreJoined) {
  constexpr std::string_view kHi = R"([{"role": "user", "content": "hi"}])";
  EXPECT_EQ(turns(conversation(kHi, R"(, "system": "be brief")")),
            (Turns{"system:be brief", "user:hi"}));
  EXPECT_EQ(turns(conversation(kHi, R"(, "system": [{"type": "text", "text": "a"},
                                                    {"type": "text", "text": "b"}])")),
            (Turns{"system:a\nb", "user:hi"}));
}

TEST(AnthropicRequest, NeighboursOfOneRoleAreJoined) {
  EXPECT_EQ(turns(conversation(R"([{"role": "user", "content": "a"},
                                   {"role": "user", "content": [{"type": "text", "text": "b"},
                                                                {"type": "text", "text": "c"}]},
                                   {"role": "system", "content": "s"},
                                   {"role": "assistant", "content": "x"},
                                   {"role": "assistant", "content": "y"},
                                   {"role": "user", "content": "d"}])")),
            (Turns{"user:a\nb\nc", "system:s", "assistant:xy", "user:d"}));
}

TEST(AnthropicRequest, ALastMessageOfTheAssistantIsContinued) {
  EXPECT_TRUE(conversation(R"([{"role": "user", "content": "a"},
                               {"role": "assistant", "content": "{"}])")
                  .continues_last);
  EXPECT_FALSE(conversation(R"([{"role": "assistant", "content": "a"},
                                {"role": "user", "content": "b"}])")
                   .continues_last);
}

TEST(AnthropicRequest, TheBillingHashIsTakenOutOfTheFirstBlock) {
  const auto system = [](std::string_view json) {
    return conversation(R"([{"role": "user", "content": "hi"}])",
                        std::string(R"(, "system": )").append(json))
        .messages.front()
        .content;
  };
  EXPECT_EQ(system(R"([{"type": "text",
                        "text": "x-anthropic-billing-header: cc_version=2.1; cch=a1b2c; e=1"},
                       {"type": "text", "text": "x-anthropic-billing-header: cch=kept"}])"),
            "x-anthropic-billing-header: cc_version=2.1; cch=0; e=1\n"
            "x-anthropic-billing-header: cch=kept");
  EXPECT_EQ(system(R"("x-anthropic-billing-header: cch=ffff")"),
            "x-anthropic-billing-header: cch=0");
  EXPECT_EQ(system(R"("say cch=ffff")"), "say cch=ffff");
  EXPECT_EQ(system(R"("x-anthropic-billing-header: none")"), "x-anthropic-billing-header: none");
}

TEST(AnthropicRequest, ToolCallsAndResultsBecomeMessages) {
  const GenerateRequest request = conversation(R"([
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": [
      {"type": "thinking", "thinking": "hm", "signature": "s"},
      {"type": "redacted_thinking", "data": "x"},
      {"type": "text", "text": "let me see"},
      {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1, "y": "é"}},
      {"type": "tool_use", "id": "t2", "name": "g", "input": {}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"},
      {"type": "tool_result", "tool_use_id": "t2", "is_error": true,
       "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"type": "text", "text": "so?"}]}])");
  EXPECT_EQ(turns(request), (Turns{"user:weather?", "assistant:let me see", "tool:sunny",
                                   "tool:Error: a\nb", "user:so?"}));
  const chat::Message& assistant = request.messages[1];
  EXPECT_EQ(assistant.thinking, "hm");
  ASSERT_EQ(assistant.tool_calls.size(), 2U);
  EXPECT_EQ(assistant.tool_calls[0].id, "t1");
  EXPECT_EQ(assistant.tool_calls[0].name, "f");
  EXPECT_EQ(assistant.tool_calls[0].arguments, R"({"x":1,"y":"é"})");
  EXPECT_EQ(assistant.tool_calls[1].arguments, "{}");
  EXPECT_EQ(request.messages[2].tool_call_id, "t1");
  EXPECT_EQ(request.messages[3].tool_call_id, "t2");
  EXPECT_FALSE(request.continues_last);
}

TEST(AnthropicRequest, ToolsAreOfferedUnlessTheChoiceIsNone) {
  constexpr std::string_view kTools =
      R"("tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"},
                    "strict": true},
                   {"type": "custom", "name": "g", "input_schema": {}}])";
  const GenerateRequest request = good(kTools);
  ASSERT_EQ(request.tools.size(), 2U);
  EXPECT_EQ(request.tools[0].name, "f");
  EXPECT_EQ(request.tools[0].description, "d");
  EXPECT_EQ(request.tools[0].parameters, R"({"type":"object"})");
  EXPECT_EQ(request.tools[1].parameters, "{}");
  const auto choice = [&](std::string_view json) {
    return good(std::string(kTools).append(R"(, "tool_choice": )").append(json));
  };
  EXPECT_EQ(choice(R"({"type": "auto"})").tools.size(), 2U);
  EXPECT_FALSE(choice(R"({"type": "auto"})").is_one_call_at_most);
  EXPECT_TRUE(choice(R"({"type": "auto", "disable_parallel_tool_use": true})").is_one_call_at_most);
  EXPECT_TRUE(choice(R"({"type": "none"})").tools.empty());
}

TEST(AnthropicRequest, Thinking) {
  EXPECT_EQ(good(R"("thinking": {"type": "enabled", "budget_tokens": 1024})").is_thinking, true);
  EXPECT_EQ(good(R"("thinking": {"type": "disabled"})").is_thinking, false);
  EXPECT_FALSE(good(R"("thinking": {"type": "adaptive"})").is_thinking);
  EXPECT_FALSE(good(R"("thinking": {"type": "adaptive"})").hides_thinking);
  EXPECT_TRUE(good(R"("thinking": {"type": "adaptive", "display": "omitted"})").hides_thinking);
}

TEST(AnthropicRequest, BufferHints) {
  using Unit = BufferHint::Unit;
  struct Row {
    std::string_view json;
    Unit unit;
    std::uint32_t amount;
  };
  for (const Row& row : {Row{"1024", Unit::kBytes, 1024}, Row{"0", Unit::kBytes, 0},
                         Row{R"("token")", Unit::kToken, 0}, Row{R"("word")", Unit::kWord, 0},
                         Row{R"("20ms")", Unit::kMilliseconds, 20}}) {
    const auto hint = good(std::string(R"("buffer_hint": )").append(row.json)).buffer_hint;
    ASSERT_TRUE(hint) << row.json;
    EXPECT_EQ(hint->unit, row.unit) << row.json;
    EXPECT_EQ(hint->amount, row.amount) << row.json;
  }
}

TEST(AnthropicRequest, MetadataNamesTheUser) {
  EXPECT_EQ(good(R"("metadata": {"user_id": "u"})").user, "u");
}

std::vector<std::pair<std::size_t, bool>> marks(const GenerateRequest& request) {
  std::vector<std::pair<std::size_t, bool>> out;
  for (const CacheMark& mark : request.cache_marks) {
    out.emplace_back(mark.message, mark.is_one_hour);
  }
  return out;
}

using Marks = std::vector<std::pair<std::size_t, bool>>;

TEST(AnthropicRequest, CacheMarksAreOnTheMessagesOfTheirBlocks) {
  EXPECT_EQ(marks(conversation(
                R"([{"role": "user", "content": [
                      {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
                      {"type": "text", "text": "b",
                       "cache_control": {"type": "ephemeral", "ttl": "1h"}}]},
                    {"role": "assistant", "content": "x"},
                    {"role": "user", "content": [
                      {"type": "tool_result", "tool_use_id": "t",
                       "cache_control": {"type": "ephemeral", "ttl": "5m"}},
                      {"type": "text", "text": "c"}]}])",
                R"(, "system": [{"type": "text", "text": "s",
                                 "cache_control": {"type": "ephemeral"}}])")),
            (Marks{{0, false}, {1, true}, {3, false}}));
}

TEST(AnthropicRequest, OfTwoCacheMarksOnAMessageTheLongerCounts) {
  EXPECT_EQ(marks(conversation(R"([{"role": "user", "content": [
                {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
                {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]}])")),
            (Marks{{0, true}}));
}

TEST(AnthropicRequest, ATopLevelCacheMarkIsOnTheLastMessage) {
  EXPECT_EQ(marks(conversation(R"([{"role": "user", "content": "a"},
                                   {"role": "assistant", "content": "b"},
                                   {"role": "user", "content": "c"}])",
                               R"(, "cache_control": {"type": "ephemeral", "ttl": "1h"})")),
            (Marks{{2, true}}));
}

TEST(AnthropicRequest, ACacheMarkOnToolsIsOnTheFirstMessage) {
  constexpr std::string_view kTools =
      R"(, "system": "s", "cache_control": {"type": "ephemeral"},
           "tools": [{"name": "f", "input_schema": {},
                      "cache_control": {"type": "ephemeral", "ttl": "1h"}}])";
  EXPECT_EQ(marks(conversation(R"([{"role": "user", "content": "a"}])", kTools)),
            (Marks{{0, true}, {1, false}}));
}

TEST(AnthropicRequest, CountingNeedsNoMaxTokens) {
  constexpr std::string_view kBody =
      R"({"model": "m", "messages": [{"role": "user", "content": "hi"}]})";
  EXPECT_EQ(refusal(parse_count_tokens(kBody)), "");
  EXPECT_EQ(refusal(parse_messages(kBody)),
            "max_tokens: found nothing, allowed an integer of at least 1");
  EXPECT_EQ(count_tokens_body(12), R"({"input_tokens":12})");
}

TEST(AnthropicRequest, AThreadIsRefusedWithTheCodeThatMakesClientsReplay) {
  const auto parsed = parse_messages(with(kGood, R"("thread": {"type": "create"})"));
  EXPECT_EQ(refusal(parsed),
            "thread: this server holds no threads; send the whole conversation in messages");
  EXPECT_EQ(parsed.error().details_code, "thread_unsupported_request");
}

TEST(AnthropicRequest, BodiesAreBounded) {
  const auto parsed = parse_messages(kGood, {.max_bytes = 10, .max_depth = 64});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().status, 413);
  EXPECT_EQ(parsed.error().type, "request_too_large");
  EXPECT_EQ(parsed.error().message, "the body: found 80 bytes, allowed at most 10");
  EXPECT_EQ(refusal(parse_messages(kGood, {.max_bytes = 1000, .max_depth = 2})),
            "the body: JSON nested deeper than 2 levels");
  std::string many = std::string(kGood.substr(0, kGood.size() - 1));
  for (int i = 0; i < 1000; ++i) many += R"(,"x":1)";
  EXPECT_EQ(refusal(parse_messages(many + "}")),
            "the body: found an object of 1003 members, allowed at most 1000");
  EXPECT_EQ(refusal(parse_messages("[]")), "the body: found an array, allowed an object");
  EXPECT_TRUE(refusal(parse_messages("{")).starts_with("the body: not valid JSON: "));
}

// Each follows a good body: `"x": 1` replaces nothing there.
TEST(AnthropicRequest, FieldsOutOfRangeAreNamedWithWhatIsAllowed) {
  for (const Refusal& row : {
           Refusal{R"("temperature": -1)", "temperature: found -1, allowed a number from 0 to 100"},
           Refusal{R"("temperature": "hot")",
                   "temperature: found \"hot\", allowed a number from 0 to 100"},
           Refusal{R"("temperature": 101)",
                   "temperature: found 101, allowed a number from 0 to 100"},
           Refusal{R"("top_p": 1.5)", "top_p: found 1.5, allowed a number from 0 to 1"},
           Refusal{R"("top_k": -2)", "top_k: found -2, allowed an integer from -1 to 4294967295"},
           Refusal{R"("top_k": 1.5)", "top_k: found 1.5, allowed an integer from -1 to 4294967295"},
           Refusal{R"("min_p": -0.5)", "min_p: found -0.5, allowed a number from 0 to 1"},
           Refusal{R"("presence_penalty": 3)",
                   "presence_penalty: found 3, allowed a number from -2 to 2"},
           Refusal{R"("frequency_penalty": -3)",
                   "frequency_penalty: found -3, allowed a number from -2 to 2"},
           Refusal{R"("repetition_penalty": 0)",
                   "repetition_penalty: found 0, allowed a number from 0.001 to 1000"},
           Refusal{R"("seed": "a")", "seed: found \"a\", allowed an integer of at most 64 bits"},
           Refusal{R"("seed": 1.5)", "seed: found 1.5, allowed an integer of at most 64 bits"},
           Refusal{R"("logit_bias": [])", "logit_bias: found an array, allowed an object"},
           Refusal{R"("logit_bias": {"a\nc": 1})",
                   R"(logit_bias: found the key "a\nc", allowed the decimal number of a token)"},
           Refusal{R"("logit_bias": {"7": 1e9})",
                   "logit_bias.7: found 1000000000.0, allowed a number from -100 to 100"},
           Refusal{R"("logit_bias": {"7": null})",
                   "logit_bias.7: found null, allowed a number from -100 to 100"},
           Refusal{R"("logit_bias": {"7": 1, "07": 1})",
                   "logit_bias: found token 7 twice, allowed each token once"},
           Refusal{R"("stream": 1)", "stream: found 1, allowed true or false"},
           Refusal{R"("stop_sequences": [""])",
                   "stop_sequences.0: found an empty string, allowed 1 to 4096 bytes"},
           Refusal{R"("stop_sequences": ["a", 1])", "stop_sequences.1: found 1, allowed a string"},
           Refusal{R"("stop_sequences": 1)",
                   "stop_sequences: found 1, allowed a string or an array of strings"},
           Refusal{R"("buffer_hint": -1)",
                   "buffer_hint: found -1, allowed bytes from 0 to 1048576, \"token\", \"word\", "
                   "or a time as \"20ms\" up to \"60000ms\""},
           Refusal{R"("metadata": 1)", "metadata: found 1, allowed an object"},
           Refusal{R"("system": 1)",
                   "system: found 1, allowed a string or an array of text blocks"},
           Refusal{R"("system": [{"type": "image"}])",
                   "system.0.type: found \"image\", allowed text: this server reads text alone"},
           Refusal{R"("thinking": {"type": "deep"})",
                   "thinking.type: found \"deep\", allowed enabled, disabled, adaptive"},
           Refusal{R"("thinking": {"type": "enabled", "budget_tokens": 0})",
                   "thinking.budget_tokens: found 0, allowed an integer from 1 to 4294967295"},
           Refusal{R"("cache_control": {"type": "x"})",
                   "cache_control.type: found \"x\", allowed ephemeral"},
           Refusal{R"("cache_control": {"type": "ephemeral", "ttl": "2h"})",
                   "cache_control.ttl: found \"2h\", allowed 5m, 1h"},
       }) {
    EXPECT_EQ(refusal(parse_messages(with(kGood, row.body))), row.message) << row.body;
  }
}

TEST(AnthropicRequest, WhatCannotBeMetIsRefused) {
  constexpr std::string_view kUnconstrained =
      ": answers of a given form are not available yet; leave it out";
  for (const Refusal& row : {
           Refusal{R"("output_config": {"format": {"type": "json_schema"}})",
                   "output_config.format"},
           Refusal{R"("output_format": {"type": "json_schema"})", "output_format"},
       }) {
    EXPECT_EQ(refusal(parse_messages(with(kGood, row.body))),
              std::string(row.message).append(kUnconstrained));
  }
  for (const Refusal& row : {
           Refusal{R"("tool_choice": {"type": "any"})",
                   "tool_choice.type: found \"any\", allowed auto, none: a forced call is not "
                   "available yet"},
           Refusal{R"("tool_choice": {"type": "tool", "name": "f"})",
                   "tool_choice.type: found \"tool\", allowed auto, none: a forced call is not "
                   "available yet"},
           Refusal{R"("tool_choice": {"type": "x"})",
                   "tool_choice.type: found \"x\", allowed auto, any, tool, none"},
           Refusal{R"("tools": [{"type": "web_search_20250305", "name": "web_search"}])",
                   "tools.0.type: found \"web_search_20250305\", allowed custom: this server has "
                   "no tools of its own"},
           Refusal{R"("tools": [{"name": "f"}])",
                   "tools.0.input_schema: found nothing, allowed an object"},
           Refusal{R"("tools": [{"name": "", "input_schema": {}}])",
                   "tools.0.name: found an empty string, allowed a string of 1 to 256 bytes"},
           Refusal{R"("mcp_servers": [{"url": "x"}])",
                   "mcp_servers: this server connects to no others; leave it out"},
       }) {
    EXPECT_EQ(refusal(parse_messages(with(kGood, row.body))), row.message) << row.body;
  }
}

TEST(AnthropicRequest, FaultsInMessagesAreNamedByTheirPlace) {
  for (const Refusal& row : {
           Refusal{"[]",
                   "messages: found an empty array, allowed an array of 1 to 100000 messages"},
           Refusal{"1", "messages: found 1, allowed an array of 1 to 100000 messages"},
           Refusal{"null", "messages: found nothing, allowed an array of 1 to 100000 messages"},
           Refusal{"[1]", "messages.0: found 1, allowed an object"},
           Refusal{R"([{"content": "a"}])", "messages.0.role: found nothing, allowed a string"},
           Refusal{R"([{"role": "robot", "content": "a"}])",
                   "messages.0.role: found \"robot\", allowed user, assistant, system"},
           Refusal{R"([{"role": "user"}])",
                   "messages.0.content: found nothing, allowed a string or an array of blocks"},
           Refusal{R"([{"role": "user", "content": "a"}, {"role": "user", "content": 2}])",
                   "messages.1.content: found 2, allowed a string or an array of blocks"},
           Refusal{R"([{"role": "user", "content": [{"type": "image", "source": {}}]}])",
                   "messages.0.content.0.type: found \"image\", allowed text, tool_result: this "
                   "server reads text alone"},
           Refusal{R"([{"role": "user", "content": [{"type": "text", "text": "a"},
                                                    {"type": "document"}]}])",
                   "messages.0.content.1.type: found \"document\", allowed text, tool_result: "
                   "this server reads text alone"},
           Refusal{R"([{"role": "user", "content": [{"type": "tool_use"}]}])",
                   "messages.0.content.0.type: found \"tool_use\" here, allowed text, "
                   "tool_result"},
           Refusal{R"([{"role": "system", "content": [{"type": "tool_result"}]}])",
                   "messages.0.content.0.type: found \"tool_result\" here, allowed text"},
           Refusal{R"([{"role": "assistant", "content": [{"type": "tool_result"}]}])",
                   "messages.0.content.0.type: found \"tool_result\" here, allowed text, "
                   "tool_use, thinking, redacted_thinking"},
           Refusal{R"([{"role": "user", "content": [{"type": "text"}]}])",
                   "messages.0.content.0.text: found nothing, allowed a string"},
           Refusal{R"([{"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "t",
                         "content": [{"type": "image"}]}]}])",
                   "messages.0.content.0.content.0.type: found \"image\", allowed text: this "
                   "server reads text alone"},
           Refusal{R"([{"role": "user", "content": [{"type": "tool_result"}]}])",
                   "messages.0.content.0.tool_use_id: found nothing, allowed a string of 1 to 256 "
                   "bytes"},
           Refusal{R"([{"role": "assistant", "content": [
                        {"type": "tool_use", "id": "t", "name": "f", "input": "x"}]}])",
                   "messages.0.content.0.input: found \"x\", allowed an object"},
           Refusal{R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": [
                        {"type": "tool_use", "id": "t", "name": "f", "input": {}}]}])",
                   "messages: the last one calls tools; allowed is one with their tool_result "
                   "blocks behind it"},
       }) {
    const std::string body =
        std::string(R"({"model": "m", "max_tokens": 5, "messages": )").append(row.body).append("}");
    EXPECT_EQ(refusal(parse_messages(body)), row.message) << row.body;
  }
}

TEST(AnthropicRequest, NeededFieldsAreNeeded) {
  for (const Refusal& row : {
           Refusal{R"({"max_tokens": 5, "messages": [{"role": "user", "content": "a"}]})",
                   "model: found nothing, allowed a string of 1 to 256 bytes"},
           Refusal{R"({"model": 7, "max_tokens": 5,
                       "messages": [{"role": "user", "content": "a"}]})",
                   "model: found 7, allowed a string"},
       }) {
    EXPECT_EQ(refusal(parse_messages(row.body)), row.message);
  }
  for (const std::string_view count : {"0", "-5", "1.5", "\"5\"", "true", "4294967296"}) {
    const std::string body = std::string(R"({"model": "m", "messages": [{"role": "user",
                                             "content": "a"}], "max_tokens": )")
                                 .append(count)
                                 .append("}");
    EXPECT_EQ(refusal(parse_messages(body)),
              std::string("max_tokens: found ")
                  .append(count)
                  .append(", allowed an integer from 1 to 4294967295"));
  }
}

TEST(AnthropicRequest, NumbersBeyondAllNumbersAreRefused) {
  EXPECT_NE(refusal(parse_messages(with(kGood, R"("temperature": 1e999)"))), "");
  EXPECT_NE(refusal(parse_messages(with(kGood, R"("seed": 36893488147419103232)"))), "");
}

TEST(AnthropicRequest, ThereAreFourCacheMarksAtMost) {
  std::string messages = "[";
  for (int i = 0; i < 5; ++i) {
    messages.append(i == 0 ? "" : ",").append(R"({"role": "user", "content": [{"type": "text",
        "text": "a", "cache_control": {"type": "ephemeral"}}]})");
  }
  const std::string body = R"({"model": "m", "max_tokens": 5, "messages": )" + messages + "]}";
  EXPECT_EQ(refusal(parse_messages(body)),
            "messages.4.content.0.cache_control: found 5 of them, allowed at most 4");
}

}  // namespace
}  // namespace cicada::api
