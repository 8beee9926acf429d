// Hostile templates: each is refused quickly, with an error, in bounded memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/chat/bridge_template.h"
#include "cicada/chat/chat_template.h"

namespace cicada::chat {
namespace {

std::string repeat(std::string_view text, int count) {
  std::string repeated;
  for (int i = 0; i < count; ++i) repeated += text;
  return repeated;
}

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

long peak_rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

struct Hostile {
  std::string name;
  std::string source;
  Code code = Code::kDeadlineExceeded;
};

// What compiling or rendering gives.
Result<std::string> outcome(const std::string& source) {
  CICADA_ASSIGN(const ChatTemplate compiled, ChatTemplate::compile(source, "<s>", "</s>"));
  return compiled.render({{"user", "hello"}}, {});
}

void expect_refused(const Hostile& hostile) {
  SCOPED_TRACE(hostile.name);
  const double begin_s = thread_cpu_s();
  const auto result = outcome(hostile.source);
  EXPECT_LT(thread_cpu_s() - begin_s, 1.0);
  ASSERT_FALSE(result.has_value()) << "rendered " << result->size() << " bytes";
  EXPECT_EQ(result.error().code(), hostile.code) << result.error().to_string();
  EXPECT_FALSE(result.error().message().empty());
  EXPECT_LT(result.error().message().size(), 1100U);
}

void expect_all_refused(const std::vector<Hostile>& all) {
  const long before_mib = peak_rss_mib();
  for (const Hostile& hostile : all) expect_refused(hostile);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::printf(
      "not checked: resident memory, in which a sanitizer's shadow and freed memory stay\n");
  static_cast<void>(before_mib);
#else
  EXPECT_LT(peak_rss_mib() - before_mib, 200);
#endif
}

TEST(Limits, EndlessWorkRunsOutOfSteps) {
  expect_all_refused({
      {"nested loops",
       "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"},
      {"range", "{{ range(10**9) }}"},
      {"range list", "{{ range(10**9)|list|length }}"},
      {"lazy repetition", "{% set n = 10**9 %}{{ 2 in [1] * n }}"},
  });
}

// Steps that are few but long.
TEST(Limits, ProcessorTimeIsBounded) {
  for (const char* source : {
           "{% set n = 4000000 %}{% set a = 'ab' * n %}{% set b = a ~ '' %}"
           "{% for i in range(100000) %}{% if a == b %}{% if a in b %}{% endif %}{% endif %}"
           "{% endfor %}",
           "{% set a = range(100000)|list %}"
           "{{ a|select('in', range(100000, 200000)|list)|list }}",
           "{% set n = 4000000 %}{% set a = 'ab' * n %}{% for i in range(100000) %}"
           "{{ a.find('q') }}{{ a[-1] }}{% endfor %}",
       }) {
    const auto compiled = BridgeTemplate::compile(source);
    ASSERT_TRUE(compiled.has_value()) << compiled.error().to_string();
    const double begin_s = thread_cpu_s();
    const auto result = compiled->render("{}", {.max_time_ms = 30}, 0);
    EXPECT_LT(thread_cpu_s() - begin_s, 0.5);
    ASSERT_FALSE(result.has_value()) << source;
    EXPECT_EQ(result.error().code(), Code::kDeadlineExceeded);
    EXPECT_EQ(result.error().message(), "chat template: line 1: the template takes too long");
  }
}

TEST(Limits, TextBombsAreRefused) {
  expect_all_refused({
      {"constant repetition", "{{ 'x' * 10**9 }}", Code::kInvalidArgument},
      {"constant repetition in steps", "{{ 'x' * 1000 * 1000 * 1000 }}", Code::kInvalidArgument},
      {"repetition", "{% set n = 10**9 %}{{ 'x' * n }}"},
      {"repetition from the left", "{% set n = 10**9 %}{{ n * 'x' }}"},
      {"huge repetition", "{% set n = 10**18 %}{{ 'xx' * n }}"},
      {"doubling by ~", "{% set x = 'xxxxxxxx' %}" + repeat("{% set x = x ~ x %}", 40)},
      {"doubling by +", "{% set x = 'xxxxxxxx' %}" + repeat("{% set x = x + x %}", 40)},
      {"doubling by capture",
       "{% set x = 'xxxxxxxx' %}" + repeat("{% set x %}{{ x }}{{ x }}{% endset %}", 40)},
      {"doubling in a loop",
       "{% set ns = namespace(x='x') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}"
       "{% endfor %}"},
      {"many large values", "{% set n = 4000000 %}" +
                                []() {
                                  std::string all;
                                  for (int i = 0; i < 500; ++i) {
                                    all += "{% set v" + std::to_string(i) + " = 'xx' * n %}";
                                  }
                                  return all;
                                }()},
      {"captured raw text", "{% set x %}{% for i in range(100000) %}" + std::string(100000, 'r') +
                                "{% endfor %}{% endset %}"},
  });
}

TEST(Limits, ReplacingAndJoiningBombsAreRefused) {
  expect_all_refused({
      {"replace", "{% set n = 4000 %}{{ ('x' * n).replace('x', 'y' * n) }}"},
      {"replace nothing", "{% set n = 4000 %}{{ ('x' * n)|replace('', 'y' * n) }}"},
      {"nested replace",
       "{% set x = 'xxxxxxxxxx' %}" + repeat("{% set x = x.replace('x', 'xxxxxxxxxx') %}", 20)},
      {"join", "{% set n = 5000 %}{{ (['x'] * n)|join('y' * n) }}"},
      {"nested join", "{% set x = 'x' %}" + repeat("{% set x = x.join([x] * 100) %}", 10)},
      {"join of one large text",
       "{% set n = 4000000 %}{% set t = 'x' * n %}{{ ([t] * 1000)|join }}"},
      {"map",
       "{% set n = 4000000 %}{% set t = 'x' * n %}{{ ([t] * 1000)|map('upper')|list|length }}"},
      {"sort", "{% set n = 4000000 %}{% set t = 'x' * n %}{{ ([t] * 1000)|sort|length }}"},
      {"strip", "{% set n = 4000000 %}{{ ('x' * n).strip('y' * n ~ 'x') }}"},
      {"trim", "{% set n = 4000000 %}{{ ('x' * n)|trim('y' * n ~ 'x') }}"},
  });
}

TEST(Limits, FormattingBombsAreRefused) {
  expect_all_refused({
      {"format width", "{{ '%1000000000s'|format('a') }}"},
      {"format argument width", "{{ '%*d'|format(1000000000, 1) }}", Code::kInvalidArgument},
      {"format many", "{% set n = 4000 %}{{ ('%s' * n)|format('y' * n) }}"},
      {"format method", "{{ '{:>1000000000}'.format('a') }}"},
      {"indent", "{% set n = 10**9 %}{{ 'a'|indent(n, true) }}"},
      {"indent by text", "{% set n = 4000 %}{{ ('\\n' * n)|indent('y' * n, blank=true) }}"},
      {"tojson indent", "{{ [1]|tojson(indent=1000000000) }}", Code::kInvalidArgument},
      {"raised", "{% set n = 10**7 %}{{ raise_exception('x' * n) }}"},
  });
}

TEST(Limits, ListBombsAreRefused) {
  const std::string graph = "{% set x = [1] %}" + repeat("{% set x = [x, x] %}", 40);
  expect_all_refused({
      {"repetition", "{% set n = 10**9 %}{{ ([1] * n)|length }}"},
      {"constant repetition", "{{ ([1] * 10**9)|length }}", Code::kInvalidArgument},
      {"constant comparison", "{{ [1] * 10**9 == [1] * 10**9 }}", Code::kInvalidArgument},
      {"doubling", "{% set x = [1] %}" + repeat("{% set x = x + x %}", 60)},
      {"shared graph", graph},
      {"mapping graph", "{% set x = {} %}" + repeat("{% set x = {1: x, 2: x} %}", 40)},
      {"depth",
       "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}"
       "{% endfor %}{{ ns.x }}"},
      {"depth of mappings",
       "{% set ns = namespace(x={}) %}{% for i in range(100000) %}{% set ns.x = {'a': ns.x} %}"
       "{% endfor %}"},
      {"depth by filters",
       "{% set ns = namespace(x=[1]) %}{% for i in range(100000) %}"
       "{% set ns.x = ns.x|batch(1)|list %}{% endfor %}"},
  });
}

TEST(Limits, SplittingBombsAreRefused) {
  expect_all_refused({
      {"batch", "{% set n = 10**9 %}{{ [1]|batch(n, 0)|list }}"},
      {"slice", "{% set n = 10**9 %}{{ [1]|slice(n)|list }}"},
      {"characters", "{% set n = 8000000 %}{{ ('x' * n)|list|length }}"},
      {"split", "{% set n = 8000000 %}{{ (',' * n).split(',')|length }}"},
      {"split from the right", "{% set n = 8000000 %}{{ (',' * n).rsplit(',', n)|length }}"},
      {"split at blanks", "{% set n = 4000000 %}{{ ('x ' * n).split()|length }}"},
      {"splitlines", "{% set n = 8000000 %}{{ ('\\n' * n).splitlines()|length }}"},
  });
}

TEST(Limits, WhatCouldHoldItselfIsRefused) {
  expect_all_refused({
      {"namespace in itself", "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
       Code::kInvalidArgument},
      {"namespace in a list", "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns }}",
       Code::kInvalidArgument},
      {"loop in itself", "{% for i in [1, 2] %}{{ loop.changed(loop) }}{% endfor %}",
       Code::kInvalidArgument},
      {"macro in a list", "{% macro m() %}{{ x }}{% endmacro %}{% set x = [m] %}",
       Code::kInvalidArgument},
  });
}

TEST(Limits, RecursionIsRefused) {
  expect_all_refused({
      {"macro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
      {"two macros",
       "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}"},
      {"macro twice", "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}"},
      {"caller",
       "{% macro m() %}{{ caller() }}{% call m() %}x{% endcall %}{% endmacro %}"
       "{% call m() %}x{% endcall %}"},
      {"loop", "{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}"},
  });
}

TEST(Limits, OutputIsBounded) {
  expect_all_refused({
      {"raw text", "{% for i in range(100000) %}" + std::string(1000, 'o') + "{% endfor %}"},
      {"expressions",
       "{% set n = 4000000 %}{% set x = 'x' * n %}{% for i in range(1000) %}{{ x }}{% endfor %}"},
      {"macro output", "{% macro m() %}{% for i in range(100000) %}" + std::string(1000, 'o') +
                           "{% endfor %}{% endmacro %}{{ m() }}"},
  });
}

TEST(Limits, SourcesThatAreHardToParseAreRefused) {
  expect_all_refused({
      {"too long", std::string((1U << 20) + 1, 'x')},
      {"not UTF-8", "abc\xff", Code::kInvalidArgument},
      {"long sum", "{{ 1" + repeat("+1", 500000) + " }}", Code::kInvalidArgument},
      {"long attribute chain", "{{ x" + repeat(".a", 400000) + " }}", Code::kInvalidArgument},
      {"long filter chain", "{{ x" + repeat("|e", 400000) + " }}", Code::kInvalidArgument},
      {"parentheses", "{{ " + repeat("(", 500000), Code::kInvalidArgument},
      {"brackets", "{{ " + repeat("[", 1000), Code::kInvalidArgument},
      {"not not not", "{{ " + repeat("not ", 200000) + "x }}", Code::kInvalidArgument},
      {"minus", "{{ " + repeat("-", 500000) + "1 }}", Code::kInvalidArgument},
      {"conditional chain", "{{ x" + repeat(" if a else b", 80000) + " }}", Code::kInvalidArgument},
      {"nested blocks", repeat("{% if x %}", 100000), Code::kInvalidArgument},
      {"elif chain", "{% if x %}" + repeat("{% elif x %}", 80000) + "{% endif %}",
       Code::kInvalidArgument},
      {"many long sums", repeat("{{ x" + repeat("+x", 700) + " }}", 700), Code::kInvalidArgument},
      {"include", "{% include 'x' %}", Code::kInvalidArgument},
  });
}

TEST(Limits, LargeHonestTemplatesAndChatsRender) {
  // The longest that is allowed of some of the above.
  const std::string sum = "{{ 1" + repeat("+x", 700) + " }}";
  const auto many = ChatTemplate::compile(
      "{% set x = 1 %}" + repeat(sum, 10) + "{% if a %}" + repeat("{% elif a %}", 400) +
          "{% endif %}{% for m in messages %}{% for n in messages[loop.index0:][:2] %}"
          "{{ n.content|trim }}{% endfor %}{% endfor %}",
      "", "");
  ASSERT_TRUE(many.has_value()) << many.error().to_string();
  const std::vector<Message> messages(300, {"user", std::string(2000, 'm')});
  const auto rendered = many->render(messages, {});
  ASSERT_TRUE(rendered.has_value()) << rendered.error().to_string();
  EXPECT_EQ(rendered->size(), 10U * 3 + 599U * 2000);
}

TEST(Limits, ARefusedRenderingLeavesTheTemplateUsable) {
  const auto compiled =
      ChatTemplate::compile("{% if messages[0].content == 'bomb' %}{% set x = 'xxxxxxxx' %}" +
                                repeat("{% set x = x ~ x %}", 40) + "{% endif %}fine",
                            "", "");
  ASSERT_TRUE(compiled.has_value());
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(compiled->render({{"user", "bomb"}}, {}).has_value());
    const auto good = compiled->render({{"user", "x"}}, {});
    ASSERT_TRUE(good.has_value()) << good.error().to_string();
    EXPECT_EQ(*good, "fine");
  }
}

}  // namespace
}  // namespace cicada::chat
