#include <gtest/gtest.h>

#include "cicada/api/openai.h"
#include "cicada/api/parsed_for_test.h"

namespace cicada::api {
namespace {

constexpr std::string_view kChat = R"({"messages": [{"role": "user", "content": "hi"}]})";
constexpr std::string_view kCompletion = R"({"prompt": "once"})";

GenerateRequest chat(std::string_view more) {
  const auto parsed = parse_chat_completions(more.empty() ? std::string(kChat) : with(kChat, more));
  EXPECT_EQ(refusal(parsed), "") << more;
  return parsed.value_or(GenerateRequest{});
}

GenerateRequest completion(std::string_view more) {
  const auto parsed =
      parse_completions(more.empty() ? std::string(kCompletion) : with(kCompletion, more));
  EXPECT_EQ(refusal(parsed), "") << more;
  return parsed.value_or(GenerateRequest{});
}

std::string messages_body(std::string_view messages) {
  return std::string(R"({"messages": )").append(messages).append("}");
}

std::string prompt_body(std::string_view prompt) {
  return std::string(R"({"prompt": )").append(prompt).append("}");
}

TEST(OpenAiRequest, TheLeastThatIsNeeded) {
  const GenerateRequest request = chat("");
  EXPECT_EQ(request.dialect, Dialect::kOpenAiChat);
  EXPECT_EQ(request.model, "");
  EXPECT_FALSE(request.max_tokens);
  EXPECT_EQ(request.n, 1U);
  EXPECT_FALSE(request.is_stream || request.include_usage || request.wants_logprobs ||
               request.has_temperature || request.ignores_end || request.is_one_call_at_most);
  EXPECT_EQ(completion("").dialect, Dialect::kOpenAiCompletion);
  EXPECT_EQ(completion("").prompts.at(0).text, "once");
}

TEST(OpenAiRequest, CommonFieldsAreTakenByBothEndpoints) {
  constexpr std::string_view kFields =
      R"("model": "m", "max_tokens": 7, "n": 3, "stop": "x", "temperature": 2, "top_k": -1,
         "seed": 5, "stream": true, "stream_options": {"include_usage": true}, "user": "u",
         "priority": 4, "ignore_eos": true, "buffer_hint": "word", "best_of": 3,
         "prompt_cache_key": "k", "store": true, "suffix": "", "response_format": {"type": "text"})";
  for (const GenerateRequest& request : {chat(kFields), completion(kFields)}) {
    EXPECT_EQ(request.model, "m");
    EXPECT_EQ(request.max_tokens, 7U);
    EXPECT_EQ(request.n, 3U);
    EXPECT_EQ(request.stop, std::vector<std::string>{"x"});
    EXPECT_EQ(request.sampling.temperature, 2.0F);
    EXPECT_TRUE(request.has_top_k);
    EXPECT_EQ(request.sampling.top_k, 0U);
    EXPECT_EQ(request.sampling.seed, 5U);
    EXPECT_TRUE(request.is_stream && request.include_usage && request.ignores_end);
    EXPECT_EQ(request.user, "u");
    EXPECT_EQ(request.priority, -4);
    ASSERT_TRUE(request.buffer_hint);
    EXPECT_EQ(request.buffer_hint->unit, BufferHint::Unit::kWord);
  }
}

TEST(OpenAiRequest, TheNewerNameOfMaxTokensWins) {
  EXPECT_EQ(chat(R"("max_tokens": 7, "max_completion_tokens": 9)").max_tokens, 9U);
  EXPECT_EQ(chat(R"("max_completion_tokens": 9)").max_tokens, 9U);
  EXPECT_EQ(chat(R"("max_tokens": 7, "max_completion_tokens": null)").max_tokens, 7U);
}

TEST(OpenAiRequest, RolesAndContents) {
  const auto parsed = parse_chat_completions(messages_body(R"([
    {"role": "developer", "content": "d"},
    {"role": "system", "content": "s", "name": "n"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "user", "content": ""},
    {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
      {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}},
      {"id": "c2", "function": {"name": "g", "arguments": ""}},
      {"function": {"name": "h", "arguments": {"y": 2}}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "r"},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}])"));
  ASSERT_EQ(refusal(parsed), "");
  const auto& messages = parsed->messages;
  ASSERT_EQ(messages.size(), 7U);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].content, "s");
  EXPECT_EQ(messages[2].content, "a\nb");
  EXPECT_EQ(messages[3].role, "user");
  EXPECT_EQ(messages[4].thinking, "hm");
  ASSERT_EQ(messages[4].tool_calls.size(), 3U);
  EXPECT_EQ(messages[4].tool_calls[0].id, "c1");
  EXPECT_EQ(messages[4].tool_calls[0].arguments, R"({"x": 1})");
  EXPECT_EQ(messages[4].tool_calls[1].arguments, "{}");
  EXPECT_EQ(messages[4].tool_calls[2].arguments, R"({"y":2})");
  EXPECT_EQ(messages[5].role, "tool");
  EXPECT_EQ(messages[5].tool_call_id, "c1");
  EXPECT_EQ(messages[6].content, "no");
  EXPECT_FALSE(parsed->continues_last);
}

TEST(OpenAiRequest, AnAnswerGoesOnOnlyWhenAsked) {
  constexpr std::string_view kBody =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";
  EXPECT_FALSE(parse_chat_completions(kBody)->continues_last);
  EXPECT_TRUE(
      parse_chat_completions(with(kBody, R"("continue_final_message": true)"))->continues_last);
}

TEST(OpenAiRequest, Tools) {
  constexpr std::string_view kTools =
      R"("tools": [{"type": "function", "function": {"name": "f", "description": "d",
                    "parameters": {"type": "object"}, "strict": true}},
                   {"type": "function", "function": {"name": "g"}}])";
  const GenerateRequest request = chat(kTools);
  ASSERT_EQ(request.tools.size(), 2U);
  EXPECT_EQ(request.tools[0].name, "f");
  EXPECT_EQ(request.tools[0].description, "d");
  EXPECT_EQ(request.tools[0].parameters, R"({"type":"object"})");
  EXPECT_EQ(request.tools[1].parameters, "");
  const std::string tools(kTools);
  EXPECT_EQ(chat(tools + R"(, "tool_choice": "auto")").tools.size(), 2U);
  EXPECT_TRUE(chat(tools + R"(, "tool_choice": "none")").tools.empty());
  EXPECT_TRUE(chat(tools + R"(, "parallel_tool_calls": false)").is_one_call_at_most);
}

TEST(OpenAiRequest, ThinkingIsAnOptionOfTheTemplate) {
  EXPECT_EQ(chat(R"("chat_template_kwargs": {"enable_thinking": false})").is_thinking, false);
  EXPECT_EQ(chat(R"("chat_template_kwargs": {"enable_thinking": true})").is_thinking, true);
  EXPECT_FALSE(chat(R"("chat_template_kwargs": {})").is_thinking);
}

TEST(OpenAiRequest, LogprobsOfBothEndpoints) {
  EXPECT_TRUE(chat(R"("logprobs": true)").wants_logprobs);
  EXPECT_EQ(chat(R"("logprobs": true, "top_logprobs": 20)").top_logprobs, 20U);
  EXPECT_FALSE(chat(R"("logprobs": false, "top_logprobs": 0)").wants_logprobs);
  EXPECT_TRUE(completion(R"("logprobs": 0)").wants_logprobs);
  EXPECT_EQ(completion(R"("logprobs": 5)").top_logprobs, 5U);
  EXPECT_FALSE(completion(R"("logprobs": null)").wants_logprobs);
}

TEST(OpenAiRequest, PromptsAreTextsOrIdsOrListsOfThese) {
  const auto prompts = [](std::string_view json) {
    const auto parsed = parse_completions(prompt_body(json));
    EXPECT_EQ(refusal(parsed), "") << json;
    return parsed.value_or(GenerateRequest{}).prompts;
  };
  EXPECT_EQ(prompts(R"("")").at(0).text, "");
  EXPECT_EQ(prompts(R"(["a", "b"])").at(1).text, "b");
  const auto ids = prompts("[-1, 1099511627776]");
  ASSERT_EQ(ids.size(), 1U);
  EXPECT_TRUE(ids[0].is_ids);
  EXPECT_EQ(ids[0].ids, (std::vector<std::int64_t>{-1, 1099511627776}));
  const auto mixed = prompts(R"([[1, 2], "a", [3]])");
  ASSERT_EQ(mixed.size(), 3U);
  EXPECT_EQ(mixed[0].ids, (std::vector<std::int64_t>{1, 2}));
  EXPECT_FALSE(mixed[1].is_ids);
  EXPECT_TRUE(completion(R"("echo": true)").echo);
}

TEST(OpenAiRequest, ChoicesOfAllPromptsAreBounded) {
  const auto list = [](int count) {
    std::string out = R"(["a")";
    for (int i = 1; i < count; ++i) out += R"(,"a")";
    return out + "]";
  };
  EXPECT_EQ(refusal(parse_completions(prompt_body(list(128)))), "");
  EXPECT_EQ(refusal(parse_completions(prompt_body(list(129)))),
            "prompt: found 129 prompts, allowed a string, an array of token numbers, or an array "
            "of up to 128 of these");
  EXPECT_EQ(refusal(parse_completions(with(prompt_body(list(65)), R"("n": 2)"))),
            "n: found 130 choices of all prompts, allowed at most 128");
}

TEST(OpenAiRequest, FieldsOutOfRangeAreNamedOnBothEndpoints) {
  for (const Refusal& row : {
           Refusal{R"("max_tokens": -5)",
                   "max_tokens: found -5, allowed an integer from 1 to 4294967295"},
           Refusal{R"("max_completion_tokens": 0)",
                   "max_completion_tokens: found 0, allowed an integer from 1 to 4294967295"},
           Refusal{R"("n": 0)", "n: found 0, allowed an integer from 1 to 128"},
           Refusal{R"("n": 129)", "n: found 129, allowed an integer from 1 to 128"},
           Refusal{R"("best_of": 2)",
                   "best_of: found 2, allowed no more than n: choices are not ranked here"},
           Refusal{R"("temperature": "1")",
                   "temperature: found \"1\", allowed a number from 0 to 100"},
           Refusal{R"("model": "")",
                   "model: found an empty string, allowed a string of 1 to 256 bytes"},
           Refusal{R"("stop": ["a", ""])",
                   "stop.1: found an empty string, allowed 1 to 4096 bytes"},
           Refusal{R"("stop": "")", "stop: found an empty string, allowed 1 to 4096 bytes"},
           Refusal{R"("stop": [1,1,1])", "stop.0: found 1, allowed a string"},
           Refusal{
               R"("stop": ["1","1","1","1","1","1","1","1","1","1","1","1","1","1","1","1","1"])",
               "stop: found 17 strings, allowed at most 16"},
           Refusal{R"("stream_options": 1)", "stream_options: found 1, allowed an object"},
           Refusal{R"("priority": 1.5)",
                   "priority: found 1.5, allowed an integer from -2147483647 to 2147483647"},
           Refusal{R"("logit_bias": {"abc": 1})",
                   "logit_bias: found the key \"abc\", allowed the decimal number of a token"},
           Refusal{R"("user": 1)", "user: found 1, allowed a string"},
       }) {
    EXPECT_EQ(refusal(parse_chat_completions(with(kChat, row.body))), row.message) << row.body;
    EXPECT_EQ(refusal(parse_completions(with(kCompletion, row.body))), row.message) << row.body;
  }
}

TEST(OpenAiRequest, WhatCannotBeMetIsRefusedOnBothEndpoints) {
  constexpr std::string_view kLeaveOut = "is not available on this server; leave it out";
  constexpr std::string_view kForm = "answers of a given form are not available yet; leave it out";
  struct Row {
    std::string_view field;
    std::string_view message;
  };
  for (const Row& row :
       {Row{R"("suffix": "x")", kLeaveOut}, Row{R"("min_tokens": 3)", kLeaveOut},
        Row{R"("stop_token_ids": [1])", kLeaveOut}, Row{R"("bad_words": ["x"])", kLeaveOut},
        Row{R"("use_beam_search": true)", kLeaveOut}, Row{R"("prompt_logprobs": 1)", kLeaveOut},
        Row{R"("truncate_prompt_tokens": 1)", kLeaveOut},
        Row{R"("web_search_options": {})", kLeaveOut}, Row{R"("guided_json": {})", kForm},
        Row{R"("guided_regex": "a")", kForm}, Row{R"("guided_choice": ["a"])", kForm},
        Row{R"("guided_grammar": "a")", kForm}, Row{R"("structured_outputs": {})", kForm}}) {
    const std::string_view name = row.field.substr(1, row.field.find('"', 1) - 1);
    const std::string message = std::string(name).append(": ").append(row.message);
    EXPECT_EQ(refusal(parse_chat_completions(with(kChat, row.field))), message);
    EXPECT_EQ(refusal(parse_completions(with(kCompletion, row.field))), message);
  }
  for (const std::string_view type : {"json_object", "json_schema", "x"}) {
    const std::string field =
        std::string(R"("response_format": {"type": ")").append(type).append("\"}");
    EXPECT_EQ(refusal(parse_chat_completions(with(kChat, field))),
              std::string("response_format.type: found \"")
                  .append(type)
                  .append("\", allowed text: answers of a given form are not available yet"));
  }
}

TEST(OpenAiRequest, FaultsOfChatsAreNamed) {
  for (const Refusal& row : {
           Refusal{R"("top_logprobs": 1)",
                   "top_logprobs: found 1, allowed 0 unless logprobs is true"},
           Refusal{R"("logprobs": true, "top_logprobs": 21)",
                   "top_logprobs: found 21, allowed an integer from 0 to 20"},
           Refusal{R"("logprobs": 1)", "logprobs: found 1, allowed true or false"},
           Refusal{R"("tool_choice": "required")",
                   "tool_choice: found \"required\", allowed auto, none: a forced call is not "
                   "available yet"},
           Refusal{R"("tool_choice": {"type": "function", "function": {"name": "f"}})",
                   "tool_choice: found an object, allowed auto, none: a forced call is not "
                   "available yet"},
           Refusal{R"("tools": [{"type": "custom"}])",
                   "tools.0.type: found \"custom\", allowed function"},
           Refusal{R"("tools": [{"type": "function", "function": {"name": "f", "parameters": 1}}])",
                   "tools.0.function.parameters: found 1, allowed an object"},
           Refusal{R"("functions": [{"name": "f"}])", "functions: is not available; use tools"},
           Refusal{R"("modalities": ["text", "audio"])",
                   "modalities.1: found \"audio\", allowed text"},
           Refusal{R"("continue_final_message": true)",
                   "continue_final_message: found true, allowed where the last message is an "
                   "assistant's text"},
       }) {
    EXPECT_EQ(refusal(parse_chat_completions(with(kChat, row.body))), row.message) << row.body;
  }
  EXPECT_EQ(chat(R"("functions": [{"name": "f"}], "function_call": "none")").tools.size(), 0U);
}

TEST(OpenAiRequest, FaultsInMessagesAreNamedByTheirPlace) {
  for (const Refusal& row : {
           Refusal{"[]",
                   "messages: found an empty array, allowed an array of 1 to 100000 messages"},
           Refusal{R"([{"role": "robot", "content": "a"}])",
                   "messages.0.role: found \"robot\", allowed system, developer, user, assistant, "
                   "tool"},
           Refusal{R"([{"role": "user"}])",
                   "messages.0.content: found nothing, allowed a string or an array of text parts"},
           Refusal{R"([{"role": "user", "content": [{"type": "image_url"}]}])",
                   "messages.0.content.0.type: found \"image_url\", allowed text: this server "
                   "reads text alone"},
           Refusal{R"([{"role": "assistant", "tool_calls": [
                        {"function": {"name": "f", "arguments": "[1]"}}]}])",
                   "messages.0.tool_calls.0.function.arguments: found \"[1]\", allowed the JSON "
                   "text of an object"},
           Refusal{R"([{"role": "assistant", "tool_calls": [
                        {"function": {"name": "f", "arguments": "{\"x\": "}}]}])",
                   "messages.0.tool_calls.0.function.arguments: found \"{\\\"x\\\": \", allowed "
                   "the JSON text of an object"},
           Refusal{R"([{"role": "assistant", "tool_calls": [{"id": "a"}]}])",
                   "messages.0.tool_calls.0.function: found nothing, allowed an object"},
       }) {
    EXPECT_EQ(refusal(parse_chat_completions(messages_body(row.body))), row.message) << row.body;
  }
}

TEST(OpenAiRequest, FaultsOfPromptsAreNamed) {
  constexpr std::string_view kAllowed =
      ", allowed a string, an array of token numbers, or an array of up to 128 of these";
  EXPECT_EQ(refusal(parse_completions("{}")),
            std::string("prompt: found nothing").append(kAllowed));
  EXPECT_EQ(refusal(parse_completions(prompt_body("[]"))),
            std::string("prompt: found an empty array").append(kAllowed));
  EXPECT_EQ(refusal(parse_completions(prompt_body("[[]]"))),
            std::string("prompt.0: found an empty array").append(kAllowed));
  EXPECT_EQ(refusal(parse_completions(prompt_body("7"))),
            std::string("prompt: found 7").append(kAllowed));
  EXPECT_EQ(refusal(parse_completions(prompt_body(R"(["a", {}])"))),
            std::string("prompt.1: found an object").append(kAllowed));
  EXPECT_EQ(refusal(parse_completions(prompt_body("[1, 2.5]"))),
            "prompt.1: found 2.5, allowed the number of a token");
  EXPECT_EQ(refusal(parse_completions(prompt_body("[1, \"a\"]"))),
            "prompt.1: found \"a\", allowed the number of a token");
  EXPECT_EQ(refusal(parse_completions(with(kCompletion, R"("logprobs": 21)"))),
            "logprobs: found 21, allowed an integer from 0 to 20");
  EXPECT_EQ(refusal(parse_completions(with(kCompletion, R"("logprobs": 1, "echo": true)"))),
            "logprobs: found with echo, allowed without: those of a prompt are not available");
}

TEST(Tokenize, TextsAndChatsInEitherShape) {
  const auto vllm = parse_tokenize(R"({"model": "m", "prompt": "a", "return_token_strs": true})");
  ASSERT_EQ(refusal(vllm), "");
  EXPECT_FALSE(vllm->is_chat);
  EXPECT_EQ(vllm->request.model, "m");
  EXPECT_EQ(vllm->request.prompts.at(0).text, "a");
  EXPECT_TRUE(vllm->add_special_tokens && vllm->return_token_strings);
  EXPECT_FALSE(
      parse_tokenize(R"({"prompt": "a", "add_special_tokens": false})")->add_special_tokens);

  const auto llama = parse_tokenize(R"({"content": "b"})");
  ASSERT_EQ(refusal(llama), "");
  EXPECT_EQ(llama->request.prompts.at(0).text, "b");
  EXPECT_FALSE(llama->add_special_tokens);
  EXPECT_TRUE(parse_tokenize(R"({"content": "b", "add_special": true})")->add_special_tokens);

  const auto talk = parse_tokenize(kChat);
  ASSERT_EQ(refusal(talk), "");
  EXPECT_TRUE(talk->is_chat && talk->request.opens_answer);
  EXPECT_FALSE(talk->add_special_tokens);
  EXPECT_EQ(talk->request.messages.at(0).content, "hi");
  EXPECT_FALSE(
      parse_tokenize(with(kChat, R"("add_generation_prompt": false)"))->request.opens_answer);

  EXPECT_EQ(refusal(parse_tokenize("{}")), "prompt: found nothing, allowed a string");
  EXPECT_EQ(refusal(parse_tokenize(R"({"prompt": [1]})")),
            "prompt: found an array, allowed a string");
}

TEST(Tokenize, Replies) {
  const std::vector<TokenId> tokens = {TokenId(3), TokenId(4)};
  const std::vector<std::string> strings = {"a", "\xF0\x9F"};
  EXPECT_EQ(tokenize_body(tokens, 64, {}),
            R"({"count":2,"max_model_len":64,"tokens":[3,4],"token_strs":null})");
  EXPECT_EQ(
      tokenize_body(tokens, 64, strings),
      "{\"count\":2,\"max_model_len\":64,\"tokens\":[3,4],\"token_strs\":[\"a\",\"\uFFFD\"]}");
}

TEST(Detokenize, TokensComeUncheckedAndTextGoesInBothShapes) {
  const auto parsed = parse_detokenize(R"({"model": "m", "tokens": [1, -1]})");
  ASSERT_EQ(refusal(parsed), "");
  EXPECT_EQ(parsed->model, "m");
  EXPECT_EQ(parsed->tokens, (std::vector<std::int64_t>{1, -1}));
  EXPECT_EQ(refusal(parse_detokenize("{}")),
            "tokens: found nothing, allowed an array of token "
            "numbers");
  EXPECT_EQ(refusal(parse_detokenize(R"({"tokens": [1, "a"]})")),
            "tokens.1: found \"a\", allowed the number of a token");
  EXPECT_EQ(detokenize_body("a\n"), R"({"prompt":"a\n","content":"a\n"})");
}

}  // namespace
}  // namespace cicada::api
