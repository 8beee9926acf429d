#include "cicada/metrics/registry.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "cicada/base/check.h"
#include "cicada/metrics/text_format.h"

namespace cicada::metrics {
namespace {

template <typename Metric>
constexpr std::string_view kType = "counter";
template <>
constexpr std::string_view kType<Gauge> = "gauge";
template <>
constexpr std::string_view kType<Histogram> = "histogram";

std::vector<std::string> names_of(const Labels& labels) {
  std::vector<std::string> names;
  for (const auto& [name, value] : labels) {
    CICADA_CHECK(is_label_name(name), "a label's name");
    CICADA_CHECK(std::ranges::find(names, name) == names.end(), "labels have distinct names");
    names.push_back(name);
  }
  return names;
}

void check_name(std::string_view name, std::string_view type) {
  CICADA_CHECK(is_metric_name(name), "a family's name");
  CICADA_CHECK(type != "counter" || name.ends_with("_total"), "a counter's name ends in _total");
}

}  // namespace

struct Registry::Series {
  template <typename Metric, typename... Arguments>
  Series(std::in_place_type_t<Metric> type, std::string label_text, const Arguments&... arguments)
      : labels(std::move(label_text)), value(type, arguments...) {}

  const std::string labels;  // as they are written
  std::variant<Counter, Total, Gauge, Histogram> value;
};

struct Registry::Family {
  Description description;
  std::string_view type;
  std::vector<std::string> label_names;
  std::vector<std::unique_ptr<Series>> series;  // pointers, as callers keep references

  void write(std::string& out, const std::string& name) const {
    if (type == kType<Histogram> && name.ends_with("_total")) return write_untyped(out, name);
    write_head(out, name, description.help, type);
    for (const auto& one : series) {
      std::visit([&](const auto& metric) { write_series(out, name, one->labels, metric); },
                 one->value);
    }
  }

  // A histogram under a counter's name, as vLLM has one. Checkers refuse the two together, so the
  // text does not say that it is one: queries see the same series.
  void write_untyped(std::string& out, const std::string& name) const {
    std::string buckets;
    std::string sums;
    std::string counts;
    for (const auto& one : series) {
      write_parts({.buckets = buckets, .sums = sums, .counts = counts}, name, one->labels,
                  std::get<Histogram>(one->value));
    }
    for (const auto& [suffix, lines] :
         {std::pair("_bucket", &buckets), {"_sum", &sums}, {"_count", &counts}}) {
      write_help(out, name + suffix, description.help);
      out += *lines;
    }
  }
};

Registry::Registry() = default;
Registry::~Registry() = default;

Registry::Family& Registry::family_of(const Description& description, std::string_view type) {
  const auto has_name = [](const Family& family, const std::string& name) {
    const auto& aliases = family.description.aliases;
    return family.description.name == name || std::ranges::find(aliases, name) != aliases.end();
  };
  for (const auto& family : families_) {
    if (family->description.name == description.name) {
      CICADA_CHECK(family->type == type, "a family has one type");
      return *family;
    }
  }
  std::vector<std::string> names = description.aliases;
  names.push_back(description.name);
  for (const std::string& name : names) {
    check_name(name, type);
    CICADA_CHECK(std::ranges::count(names, name) == 1, "a family's names are distinct");
    for (const auto& family : families_) {
      CICADA_CHECK(!has_name(*family, name), "a name belongs to one family");
    }
  }
  families_.push_back(std::make_unique<Family>());
  families_.back()->description = description;
  families_.back()->type = type;
  return *families_.back();
}

template <typename Metric, typename... Arguments>
Metric& Registry::find_or_make(const Description& description, const Labels& labels,
                               const Arguments&... arguments) {
  const std::vector<std::string> names = names_of(labels);
  std::string text = label_text(labels);
  const std::scoped_lock lock(mutex_);
  Family& family = family_of(description, kType<Metric>);
  if (family.series.empty()) family.label_names = names;
  CICADA_CHECK(family.label_names == names, "series of a family have the same labels");
  auto found = std::ranges::find(family.series, text, [](const auto& one) { return one->labels; });
  if (found == family.series.end()) {
    family.series.push_back(
        std::make_unique<Series>(std::in_place_type<Metric>, std::move(text), arguments...));
    found = std::prev(family.series.end());
  }
  Metric* const metric = std::get_if<Metric>(&(*found)->value);
  CICADA_CHECK(metric != nullptr, "a series is counted or set, not both");
  return *metric;
}

Counter& Registry::counter(const Description& family, const Labels& labels) {
  return find_or_make<Counter>(family, labels);
}

Total& Registry::total(const Description& family, const Labels& labels) {
  return find_or_make<Total>(family, labels);
}

Gauge& Registry::gauge(const Description& family, const Labels& labels) {
  return find_or_make<Gauge>(family, labels);
}

Histogram& Registry::histogram(const Description& family, std::span<const double> bounds,
                               const Labels& labels) {
  Histogram& histogram = find_or_make<Histogram>(family, labels, bounds);
  CICADA_CHECK(std::ranges::equal(histogram.bounds(), bounds), "a series has one list of bounds");
  return histogram;
}

void Registry::before_text(std::function<void()> measure) {
  const std::scoped_lock lock(mutex_);
  measures_.push_back(std::move(measure));
}

std::string Registry::text() const {
  std::string out;
  const std::scoped_lock lock(mutex_);
  for (const auto& measure : measures_) measure();
  for (const auto& family : families_) {
    family->write(out, family->description.name);
    for (const std::string& alias : family->description.aliases) family->write(out, alias);
  }
  return out;
}

}  // namespace cicada::metrics
