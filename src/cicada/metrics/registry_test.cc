#include "cicada/metrics/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <string>
#include <thread>

#include "cicada/metrics/text_format.h"

namespace cicada::metrics {
namespace {

TEST(Registry, TextIsThatOfTheFormat) {
  Registry registry;
  const Description requests{.name = "app:requests_total", .help = "Requests."};
  registry.counter(requests, {{"code", "200"}}).add(3);
  Histogram& seconds = registry.histogram({.name = "seconds", .help = "Time."},
                                          std::array{0.25, 1.0, 1e6}, {{"a", "b"}});
  registry.gauge({.name = "load", .help = "Load."}).set(0.5);
  registry.counter(requests, {{"code", "500"}}).add(1);  // joins its family
  registry.total({.name = "cpu_total", .help = "CPU."}).set(1.75);
  seconds.observe(0.25);
  seconds.observe(7);
  seconds.observe(2e6);
  EXPECT_EQ(registry.text(),
            "# HELP app:requests_total Requests.\n"
            "# TYPE app:requests_total counter\n"
            "app:requests_total{code=\"200\"} 3\n"
            "app:requests_total{code=\"500\"} 1\n"
            "# HELP seconds Time.\n"
            "# TYPE seconds histogram\n"
            "seconds_bucket{a=\"b\",le=\"0.25\"} 1\n"
            "seconds_bucket{a=\"b\",le=\"1.0\"} 1\n"
            "seconds_bucket{a=\"b\",le=\"1e+06\"} 2\n"
            "seconds_bucket{a=\"b\",le=\"+Inf\"} 3\n"
            "seconds_sum{a=\"b\"} 2000007.25\n"
            "seconds_count{a=\"b\"} 3\n"
            "# HELP load Load.\n"
            "# TYPE load gauge\n"
            "load 0.5\n"
            "# HELP cpu_total CPU.\n"
            "# TYPE cpu_total counter\n"
            "cpu_total 1.75\n");
}

TEST(Registry, HistogramWithoutLabelsHasOnlyItsBound) {
  Registry registry;
  registry.histogram({.name = "h", .help = "H."}, std::array{1.0});
  EXPECT_EQ(registry.text(),
            "# HELP h H.\n# TYPE h histogram\n"
            "h_bucket{le=\"1.0\"} 0\nh_bucket{le=\"+Inf\"} 0\nh_sum 0\nh_count 0\n");
}

TEST(Registry, HistogramWithTheNameOfACounterHasNoType) {
  Registry registry;
  const Description family{.name = "h_total", .help = "H.", .aliases = {"x_h_total"}};
  registry.histogram(family, std::array{1.0}, {{"a", "1"}}).observe(0.5);
  registry.histogram(family, std::array{1.0}, {{"a", "2"}}).observe(3);
  const std::string text = registry.text();
  EXPECT_EQ(text.substr(0, text.find("# HELP x_")),
            "# HELP h_total_bucket H.\n"
            "h_total_bucket{a=\"1\",le=\"1.0\"} 1\nh_total_bucket{a=\"1\",le=\"+Inf\"} 1\n"
            "h_total_bucket{a=\"2\",le=\"1.0\"} 0\nh_total_bucket{a=\"2\",le=\"+Inf\"} 1\n"
            "# HELP h_total_sum H.\nh_total_sum{a=\"1\"} 0.5\nh_total_sum{a=\"2\"} 3\n"
            "# HELP h_total_count H.\nh_total_count{a=\"1\"} 1\nh_total_count{a=\"2\"} 1\n");
  EXPECT_NE(text.find("x_h_total_count{a=\"2\"} 1\n"), std::string::npos);
  EXPECT_EQ(text.find("# TYPE"), std::string::npos);
}

TEST(Registry, AliasesShowTheSameSeries) {
  Registry registry;
  registry
      .counter(
          {.name = "vllm:x_total", .help = "X.", .aliases = {"cicada:x_total", "vllm_x_total"}})
      .add(2);
  EXPECT_EQ(registry.text(),
            "# HELP vllm:x_total X.\n# TYPE vllm:x_total counter\nvllm:x_total 2\n"
            "# HELP cicada:x_total X.\n# TYPE cicada:x_total counter\ncicada:x_total 2\n"
            "# HELP vllm_x_total X.\n# TYPE vllm_x_total counter\nvllm_x_total 2\n");
}

TEST(Registry, ValuesOfLabelsAndHelpAreEscaped) {
  Registry registry;
  registry.gauge({.name = "g", .help = "a \"b\" \\ c\nd"}, {{"l", "\\ \" \n é"}}).set(1);
  EXPECT_EQ(registry.text(),
            "# HELP g a \"b\" \\\\ c\\nd\n# TYPE g gauge\ng{l=\"\\\\ \\\" \\n é\"} 1\n");
}

// A value with quotes must not be read as another series.
TEST(Registry, LabelsThatLookLikeOthersAreOtherSeries) {
  Registry registry;
  const Description family{.name = "x_total", .help = "X."};
  Counter& one = registry.counter(family, {{"a", "1\",b=\"2"}, {"b", ""}});
  Counter& other = registry.counter(family, {{"a", "1"}, {"b", "2\",b=\""}});
  EXPECT_NE(&one, &other);
}

TEST(Registry, SameLabelsAreTheSameSeriesAndHandlesStay) {
  Registry registry;
  const Description family{.name = "x_total", .help = "X."};
  Counter& first = registry.counter(family, {{"i", "0"}});
  for (int i = 1; i < 200; ++i) registry.counter(family, {{"i", std::to_string(i)}});
  EXPECT_EQ(&registry.counter(family, {{"i", "0"}}), &first);
  first.add(5);
  EXPECT_NE(registry.text().find("x_total{i=\"0\"} 5\n"), std::string::npos);
}

TEST(Registry, MeasuresAreTakenBeforeEachText) {
  Registry registry;
  Gauge& gauge = registry.gauge({.name = "g", .help = "G."});
  double next = 1;
  registry.before_text([&] { gauge.set(next++); });
  EXPECT_NE(registry.text().find("\ng 1\n"), std::string::npos);
  EXPECT_NE(registry.text().find("\ng 2\n"), std::string::npos);
}

TEST(Registry, IsWrittenWhileSeriesAreMadeAndUsed) {
  Registry registry;
  std::atomic<bool> is_over{false};
  std::thread maker([&] {
    for (int i = 0; i < 200; ++i) {
      const std::string name = "f" + std::to_string(i % 20) + "_total";
      registry.counter({.name = name, .help = "F."}, {{"i", std::to_string(i)}}).add();
    }
    is_over = true;
  });
  while (!is_over) EXPECT_TRUE(registry.text().empty() || registry.text().ends_with(" 1\n"));
  maker.join();
  const std::string text = registry.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 200 + 2 * 20);
}

TEST(RegistryDeathTest, NamesThatTheFormatForbidsAreOurFault) {
  Registry registry;
  const auto counter = [&](const char* name, const Labels& labels = {}) {
    registry.counter({.name = name, .help = "X."}, labels);
  };
  EXPECT_DEATH(counter("x"), "ends in _total");
  EXPECT_DEATH(counter("1x_total"), "family's name");
  EXPECT_DEATH(counter("x-y_total"), "family's name");
  EXPECT_DEATH(counter("x_total", {{"le", "1"}}), "label's name");
  EXPECT_DEATH(counter("x_total", {{"a:b", "1"}}), "label's name");
  EXPECT_DEATH(counter("x_total", {{"a", "1"}, {"a", "2"}}), "distinct names");
  counter("y_total", {{"a", "1"}});
  EXPECT_DEATH(counter("y_total", {{"b", "1"}}), "same labels");
  EXPECT_DEATH(registry.gauge({.name = "y_total", .help = "Y."}), "one type");
  EXPECT_DEATH(registry.gauge({.name = "z", .help = "Z.", .aliases = {"y_total"}}),
               "belongs to one family");
  EXPECT_DEATH(Histogram(std::array{1.0, 1.0}), "ascend");
}

TEST(TextFormat, BoundsAreWrittenAsPythonDoes) {
  EXPECT_EQ(bound_text(0.3), "0.3");
  EXPECT_EQ(bound_text(1), "1.0");
  EXPECT_EQ(bound_text(-5), "-5.0");
  EXPECT_EQ(bound_text(7680), "7680.0");
  EXPECT_EQ(bound_text(500000), "500000.0");
  EXPECT_EQ(bound_text(1000000), "1e+06");
  EXPECT_EQ(bound_text(1250000), "1.25e+06");
  EXPECT_EQ(bound_text(20000000000), "2e+10");
}

TEST(TextFormat, NumbersReadBackAsTheyWere) {
  for (const double value : {0.0, 0.1, 1e-300, 123456789.125, -2.5, 1e22}) {
    EXPECT_EQ(std::stod(number_text(value)), value);
  }
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "+Inf");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-Inf");
}

}  // namespace
}  // namespace cicada::metrics
