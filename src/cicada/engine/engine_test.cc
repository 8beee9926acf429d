#include "cicada/engine/engine.h"

#include <gtest/gtest.h>

#include <map>

#include "cicada/engine/generator.h"
#include "cicada/model/test_model.h"

namespace cicada::engine {
namespace {

using Ids = std::vector<TokenId>;
using messages::Finish;

struct Outcome {
  Ids tokens;
  std::vector<messages::Token> events;
  std::optional<messages::Finished> finished;
  std::optional<messages::Failed> failed;
  std::size_t cached = 0;
  std::size_t starts = 0;
};

class EngineTest : public testing::TestWithParam<platform::IsaLevel> {
 protected:
  EngineTest()
      : pool_(2), model_(model::load_test_model(model::test_file({}), pool_, GetParam())) {}

  std::unique_ptr<Engine> engine(const EngineOptions& options) {
    auto made = Engine::create(*model_, pool_, options);
    EXPECT_TRUE(made.has_value()) << made.error().to_string();
    return std::move(*made);
  }

  static Ids prompt(std::size_t length, std::size_t salt = 31) {
    Ids ids;
    for (std::size_t i = 0; i < length; ++i) {
      ids.emplace_back(static_cast<std::int32_t>((i * salt + salt / 7) % model::kTestVocab));
    }
    return ids;
  }

  static messages::Submit request(messages::RequestId id, Ids prompt, std::uint32_t max_tokens,
                                  float temperature = 1.0F) {
    return {.id = id,
            .prompt = std::move(prompt),
            .max_tokens = max_tokens,
            .sampling = {.temperature = temperature, .seed = 9}};
  }

  // What `run` would have said.
  Ids alone(const messages::Submit& submit, std::size_t context = 256) {
    auto generator = Generator::create(*model_, pool_, {.context = context, .chunk = 16});
    EXPECT_TRUE(generator.has_value());
    auto result = (*generator)
                      ->generate(submit.prompt,
                                 {.max_tokens = submit.max_tokens,
                                  .sampler = {.temperature = submit.sampling.temperature,
                                              .seed = submit.sampling.seed}},
                                 [](TokenId) { return true; });
    EXPECT_TRUE(result.has_value());
    return result->tokens;
  }

  void take(const Engine::Events& events) {
    for (const messages::ToFront& event : events) {
      if (const auto* started = std::get_if<messages::Started>(&event)) {
        outcomes_[started->id].cached = started->cached_tokens;
        ++outcomes_[started->id].starts;
      } else if (const auto* token = std::get_if<messages::Token>(&event)) {
        outcomes_[token->id].tokens.push_back(token->token);
        outcomes_[token->id].events.push_back(*token);
      } else if (const auto* finished = std::get_if<messages::Finished>(&event)) {
        outcomes_[finished->id].finished = *finished;
      } else if (const auto* failed = std::get_if<messages::Failed>(&event)) {
        outcomes_[failed->id].failed = *failed;
      }
    }
  }

  void send(Engine& engine, messages::ToEngine message) {
    Engine::Events events;
    engine.receive(std::move(message), events);
    take(events);
  }

  bool step(Engine& engine) {
    Engine::Events events;
    const bool any = engine.step(events);
    take(events);
    return any;
  }

  void run(Engine& engine) {
    for (int i = 0; step(engine); ++i) ASSERT_LT(i, 100000);
    EXPECT_EQ(engine.take_stats().running + engine.take_stats().waiting, 0U);
    engine.check_pages();
  }

  platform::ThreadPool pool_;
  std::unique_ptr<model::Model> model_;
  std::map<messages::RequestId, Outcome> outcomes_;
};

TEST_P(EngineTest, ManyTogetherSayWhatEachSaysAlone) {
  auto engine = this->engine({.context = 256, .max_running = 5, .budget = {.max_rows = 24}});
  std::map<messages::RequestId, Ids> expected;
  for (messages::RequestId id = 1; id <= 9; ++id) {
    messages::Submit submit =
        request(id, prompt(5 + 13 * id, 17 + 6 * id), static_cast<std::uint32_t>(4 + 5 * id),
                id % 3 == 0 ? 0.0F : 1.0F);
    expected[id] = alone(submit);
    send(*engine, std::move(submit));
    step(*engine);
  }
  run(*engine);
  for (const auto& [id, tokens] : expected) {
    EXPECT_EQ(outcomes_[id].tokens, tokens) << id;
    EXPECT_EQ(outcomes_[id].finished->reason, Finish::kLength);
  }
}

TEST_P(EngineTest, AReplayAtAnyTokenGoesOnAsIfNothingHadHappened) {
  const messages::Submit whole = request(1, prompt(40), 30);
  const Ids expected = alone(whole);
  for (const std::size_t at : {0U, 1U, 2U, 17U, 29U, 30U}) {
    outcomes_.clear();
    auto engine = this->engine({.context = 256, .max_running = 3, .budget = {.max_rows = 8}});
    messages::Submit submit = whole;
    submit.emitted.assign(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(at));
    send(*engine, request(7, prompt(9, 5), 50));
    send(*engine, submit);
    run(*engine);
    Ids all = submit.emitted;
    all.insert(all.end(), outcomes_[1].tokens.begin(), outcomes_[1].tokens.end());
    EXPECT_EQ(all, expected) << "replayed after " << at;
    EXPECT_EQ(outcomes_[1].finished->reason, Finish::kLength);
  }
}

TEST_P(EngineTest, PreemptedAnswersSayTheSame) {
  // Room for about half of what the four need.
  auto engine = this->engine({.context = 128,
                              .max_running = 4,
                              .budget = {.max_rows = 16},
                              .page_tokens = 16,
                              .pool_pages = 12});
  std::map<messages::RequestId, Ids> expected;
  for (messages::RequestId id = 1; id <= 4; ++id) {
    messages::Submit submit = request(id, prompt(20, 17 + 6 * id), 80);
    expected[id] = alone(submit, 128);
    send(*engine, std::move(submit));
  }
  run(*engine);
  EXPECT_GT(engine->take_stats().preemptions, 0U);
  for (const auto& [id, tokens] : expected) {
    EXPECT_EQ(outcomes_[id].tokens, tokens) << id;
  }
}

TEST_P(EngineTest, ASharedPromptIsComputedOnce) {
  auto engine = this->engine(
      {.context = 256, .max_running = 4, .budget = {.max_rows = 16}, .page_tokens = 16});
  const Ids ids = prompt(100);
  for (messages::RequestId id = 1; id <= 3; ++id) {
    messages::Submit submit = request(id, ids, 4);
    submit.choice = id;
    send(*engine, std::move(submit));
  }
  run(*engine);
  EXPECT_EQ(outcomes_[1].cached, 0U);
  EXPECT_EQ(outcomes_[2].cached, 96U);
  EXPECT_EQ(outcomes_[3].cached, 96U);
  EXPECT_LE(engine->take_stats().prefill_tokens, 100U + 2 * 4);
  EXPECT_NE(outcomes_[2].tokens, outcomes_[3].tokens) << "choices draw their own numbers";
}

TEST_P(EngineTest, AnotherSaltSharesNothing) {
  auto engine = this->engine({.context = 256, .max_running = 4, .page_tokens = 16});
  send(*engine, request(1, prompt(100), 1));
  run(*engine);
  messages::Submit other = request(2, prompt(100), 1);
  other.salt = "another key";
  send(*engine, other);
  send(*engine, request(3, prompt(100), 1));
  run(*engine);
  EXPECT_EQ(outcomes_[2].cached, 0U);
  EXPECT_EQ(outcomes_[3].cached, 96U);
}

TEST_P(EngineTest, ACancelEndsARequestInEveryStateWithinAStep) {
  auto engine = this->engine({.context = 256, .max_running = 2, .budget = {.max_rows = 8}});
  messages::Submit neighbour = request(9, prompt(20), 60);
  const Ids expected = alone(neighbour);
  send(*engine, neighbour);
  for (int i = 0; i < 5; ++i) step(*engine);
  send(*engine, request(1, prompt(200), 5));  // being read
  step(*engine);
  send(*engine, request(2, prompt(20), 5));  // queued
  step(*engine);
  for (const messages::RequestId id : {2U, 1U}) {
    send(*engine, messages::Cancel{.id = id});
    EXPECT_EQ(outcomes_[id].finished->reason, Finish::kCancelled);
  }
  EXPECT_EQ(engine->take_stats().waiting, 0U);
  EXPECT_EQ(engine->take_stats().running, 1U);
  send(*engine, request(3, prompt(3), 100));
  for (int i = 0; i < 5; ++i) step(*engine);
  send(*engine, messages::Cancel{.id = 3});  // answering
  const std::size_t tokens = outcomes_[3].tokens.size();
  EXPECT_GT(tokens, 0U);
  run(*engine);
  EXPECT_EQ(outcomes_[3].tokens.size(), tokens);
  EXPECT_EQ(outcomes_[9].tokens, expected) << "the neighbour is undisturbed";
  send(*engine, messages::Cancel{.id = 77});
  EXPECT_FALSE(outcomes_.contains(77));
}

TEST_P(EngineTest, RefusesWhatItCannotServeAndServesTheRest) {
  auto engine = this->engine({.context = 64, .max_running = 2});
  send(*engine, request(1, {}, 5));
  send(*engine, request(2, prompt(64), 5));
  messages::Submit bad_id = request(3, prompt(5), 5);
  bad_id.prompt[2] = TokenId(model::kTestVocab);
  send(*engine, bad_id);
  messages::Submit bad_option = request(4, prompt(5), 5);
  bad_option.sampling.top_p = 2.0F;
  send(*engine, bad_option);
  messages::Submit bad_bias = request(5, prompt(5), 5);
  bad_bias.sampling.logit_bias = {{TokenId(-1), 1.0F}};
  send(*engine, bad_bias);
  send(*engine, request(6, prompt(63), 5));
  run(*engine);
  EXPECT_EQ(outcomes_[1].failed->code, Code::kInvalidArgument);
  EXPECT_EQ(outcomes_[2].failed->message,
            "the prompt has 64 tokens, the context of 64 leaves room for 63 and one to answer");
  EXPECT_EQ(outcomes_[3].failed->code, Code::kInvalidArgument);
  EXPECT_EQ(outcomes_[4].failed->code, Code::kInvalidArgument);
  EXPECT_EQ(outcomes_[5].failed->message.substr(0, 20), "logit_bias: token -1");
  EXPECT_EQ(outcomes_[6].tokens.size(), 1U);
}

TEST_P(EngineTest, BiasAndPenaltiesChangeWhatIsSaid) {
  auto engine = this->engine({.context = 128, .max_running = 4});
  messages::Submit biased = request(1, prompt(10), 6, 0.0F);
  biased.sampling.logit_bias = {{TokenId(5), 100.0F}};
  send(*engine, biased);
  messages::Submit penalised = biased;
  penalised.id = 2;
  penalised.sampling.frequency_penalty = 2.0F;
  penalised.sampling.logit_bias = {{TokenId(5), 100.0F}, {TokenId(6), 99.0F}};
  send(*engine, penalised);
  run(*engine);
  EXPECT_EQ(outcomes_[1].tokens, Ids(6, TokenId(5)));
  EXPECT_NE(std::count(outcomes_[2].tokens.begin(), outcomes_[2].tokens.end(), TokenId(6)), 0);
}

TEST_P(EngineTest, LogprobsAreThoseOfTheModel) {
  auto engine = this->engine({.context = 128, .max_running = 4});
  messages::Submit submit = request(1, prompt(10), 5, 0.0F);
  submit.wants_logprobs = true;
  submit.top_logprobs = model::kTestVocab;
  send(*engine, submit);
  run(*engine);
  ASSERT_EQ(outcomes_[1].events.size(), 5U);
  for (const messages::Token& token : outcomes_[1].events) {
    ASSERT_EQ(token.top.size(), static_cast<std::size_t>(model::kTestVocab));
    EXPECT_EQ(token.top[0].token, token.token);
    EXPECT_EQ(token.top[0].logprob, token.logprob);
    double total = 0;
    for (std::size_t i = 0; i < token.top.size(); ++i) {
      total += std::exp(static_cast<double>(token.top[i].logprob));
      if (i > 0) {
        EXPECT_LE(token.top[i].logprob, token.top[i - 1].logprob);
      }
    }
    EXPECT_NEAR(total, 1.0, 1e-4);
  }
}

TEST_P(EngineTest, AnEndTokenEndsAndIsNoPartOfTheAnswer) {
  auto engine = this->engine({.context = 128, .max_running = 4});
  messages::Submit submit = request(1, prompt(10), 20);
  const Ids tokens = alone(submit);
  submit.end_tokens = {tokens[7]};
  send(*engine, submit);
  run(*engine);
  EXPECT_LE(outcomes_[1].tokens.size(), 7U);
  EXPECT_EQ(outcomes_[1].finished->reason, Finish::kStop);
}

INSTANTIATE_TEST_SUITE_P(engine, EngineTest, testing::ValuesIn([] {
                           std::vector<platform::IsaLevel> list;
                           for (const platform::IsaLevel level : kernels::runnable_levels()) {
                             if (level == kernels::best_level() || platform::has_tiles(level)) {
                               list.push_back(level);
                             }
                           }
                           return list;
                         }()),
                         [](const auto& p) { return std::string(platform::name(p.param)); });

}  // namespace
}  // namespace cicada::engine
