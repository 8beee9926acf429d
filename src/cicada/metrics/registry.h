// All counters, gauges and histograms of a process, and their text form: Prometheus' text
// exposition format 0.0.4.
//
// A family is a name with a meaning; its series differ in the values of their labels. Names and
// label names are the program's own, so that bad ones are broken invariants; values of labels may
// hold any text in UTF-8.
// Threads: any. Making a series and writing the text take a lock, using a series does not.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cicada/metrics/metrics.h"

namespace cicada::metrics {

// The content type of Registry::text().
inline constexpr std::string_view kTextContentType = "text/plain; version=0.0.4; charset=utf-8";

struct Description {
  // Of letters, digits, '_' and ':'. A counter's ends in "_total"; a histogram that ends so is
  // written without its type.
  std::string name;
  std::string help;
  // Further names under which the same series are written.
  std::vector<std::string> aliases;
};

// In the order in which they are written; names distinct.
using Labels = std::vector<std::pair<std::string, std::string>>;

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The series of a family with these labels, made at the first call; valid as long as the
  // registry. The first call for a name describes the family: kind, bounds and names of labels are
  // the same in later ones.
  Counter& counter(const Description& family, const Labels& labels = {});
  Total& total(const Description& family, const Labels& labels = {});
  Gauge& gauge(const Description& family, const Labels& labels = {});
  Histogram& histogram(const Description& family, std::span<const double> bounds,
                       const Labels& labels = {});

  // Called before each text(), one after the other, to set what is only measured when somebody
  // looks. By one thread at a time, under the lock: must not use the registry.
  void before_text(std::function<void()> measure);

  // Families in the order in which they were made, each under its name and then its aliases.
  // Series change meanwhile: a histogram's count is always the sum of its buckets, its sum may be
  // of an observation more or less.
  std::string text() const;

 private:
  struct Family;
  struct Series;

  template <typename Metric, typename... Arguments>
  Metric& find_or_make(const Description& description, const Labels& labels,
                       const Arguments&... arguments);
  Family& family_of(const Description& description, std::string_view type);

  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Family>> families_;
  std::vector<std::function<void()>> measures_;
};

}  // namespace cicada::metrics
