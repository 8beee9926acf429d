#include "cicada/metrics/text_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace cicada::metrics {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string escaped(std::string_view text, bool with_quotes) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
      continue;
    }
    if (c == '\\' || (with_quotes && c == '"')) result += '\\';
    result += c;
  }
  return result;
}

// `name{labels} value`, without the brackets where there are no labels.
void write_line(std::string& out, std::string_view name, std::string_view suffix,
                std::string_view labels, std::string_view value) {
  const auto end = std::back_inserter(out);
  if (labels.empty()) {
    fmt::format_to(end, "{}{} {}\n", name, suffix, value);
  } else {
    fmt::format_to(end, "{}{}{{{}}} {}\n", name, suffix, labels, value);
  }
}

}  // namespace

bool is_metric_name(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c) || c == ':'; });
}

bool is_label_name(std::string_view name) {
  return is_metric_name(name) && name.find(':') == std::string_view::npos &&
         !name.starts_with("__") && name != "le";
}

std::string label_text(const Labels& labels) {
  std::string result;
  for (const auto& [name, value] : labels) {
    fmt::format_to(std::back_inserter(result), "{}{}=\"{}\"", result.empty() ? "" : ",", name,
                   escaped(value, true));
  }
  return result;
}

std::string number_text(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string bound_text(double bound) {
  constexpr double kFirstWithExponent = 1e6;
  constexpr double kLastWithoutOwnExponent = 1e15;
  if (std::trunc(bound) != bound || std::abs(bound) > kLastWithoutOwnExponent) {
    return number_text(bound);
  }
  std::string text = fmt::format("{:.0f}", bound);
  if (bound < kFirstWithExponent) return text + ".0";
  const std::size_t exponent = text.size() - 1;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.size() > 1) text.insert(1, ".");
  return fmt::format("{}e+{:02}", text, exponent);
}

void write_help(std::string& out, std::string_view name, std::string_view help) {
  fmt::format_to(std::back_inserter(out), "# HELP {} {}\n", name, escaped(help, false));
}

void write_head(std::string& out, std::string_view name, std::string_view help,
                std::string_view type) {
  write_help(out, name, help);
  fmt::format_to(std::back_inserter(out), "# TYPE {} {}\n", name, type);
}

void write_series(std::string& out, std::string_view name, const std::string& labels,
                  const Counter& counter) {
  write_line(out, name, "", labels, fmt::format("{}", counter.value()));
}

void write_series(std::string& out, std::string_view name, const std::string& labels,
                  const Gauge& gauge) {
  write_line(out, name, "", labels, number_text(gauge.value()));
}

void write_series(std::string& out, std::string_view name, const std::string& labels,
                  const Histogram& histogram) {
  write_parts({.buckets = out, .sums = out, .counts = out}, name, labels, histogram);
}

void write_parts(const HistogramParts& out, std::string_view name, const std::string& labels,
                 const Histogram& histogram) {
  const std::string before = labels.empty() ? "" : labels + ",";
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) {
    count += histogram.count_in(i);
    const bool is_last = i == histogram.bounds().size();
    const std::string bound = is_last ? "+Inf" : bound_text(histogram.bounds()[i]);
    write_line(out.buckets, name, "_bucket", fmt::format("{}le=\"{}\"", before, bound),
               fmt::format("{}", count));
  }
  write_line(out.sums, name, "_sum", labels, number_text(histogram.sum()));
  write_line(out.counts, name, "_count", labels, fmt::format("{}", count));
}

}  // namespace cicada::metrics
