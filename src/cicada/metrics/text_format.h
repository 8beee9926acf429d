// The pieces of Prometheus' text exposition format 0.0.4. Internal to metrics.
// Source: prometheus.io, "Exposition formats", text-based format.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cicada/metrics/metrics.h"
#include "cicada/metrics/registry.h"

namespace cicada::metrics {

// [a-zA-Z_:][a-zA-Z0-9_:]*
bool is_metric_name(std::string_view name);
// [a-zA-Z_][a-zA-Z0-9_]*, not beginning with "__", and not "le".
bool is_label_name(std::string_view name);

// `name="value",name="value"`, with what needs it escaped.
std::string label_text(const Labels& labels);

// The shortest text that reads as this number; never that of no number.
std::string number_text(double value);
// The same for a bound of a bucket, in the form of Prometheus' Python client ("1.0", "1e+06"), with
// which queries for a bound are written.
std::string bound_text(double bound);

// "# HELP".
void write_help(std::string& out, std::string_view name, std::string_view help);
// "# HELP" and "# TYPE".
void write_head(std::string& out, std::string_view name, std::string_view help,
                std::string_view type);

// The lines of one series; `labels` as label_text() made them.
void write_series(std::string& out, std::string_view name, const std::string& labels,
                  const Counter& counter);
void write_series(std::string& out, std::string_view name, const std::string& labels,
                  const Gauge& gauge);
void write_series(std::string& out, std::string_view name, const std::string& labels,
                  const Histogram& histogram);

// The lines of a histogram by their suffixes: what is written apart is of one moment all the same.
struct HistogramParts {
  std::string& buckets;
  std::string& sums;
  std::string& counts;
};
void write_parts(const HistogramParts& out, std::string_view name, const std::string& labels,
                 const Histogram& histogram);

}  // namespace cicada::metrics
