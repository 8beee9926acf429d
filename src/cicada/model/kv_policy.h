// Which keys a query attends to: by default all that the model's layers see. Anything else is an
// approximation that someone asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cicada/base/result.h"

namespace cicada::model {

// Of layers that see all keys; layers with a window of their own keep it.
struct KvPolicy {
  std::int64_t window = 0;  // the latest keys, the query's own among them; 0: all
  std::int64_t sinks = 0;   // and the first ones of the sequence, with a window
  // Of rows of the decode role: pages of 64 keys that are read, the first and the last two among
  // them, the others by the bounds of their keys; 0: all.
  std::int64_t pages = 0;

  bool operator==(const KvPolicy&) const = default;
  // The first key of the window of a query, sinks aside.
  std::int64_t first_key(std::int64_t position) const {
    return window == 0 || position < window ? 0 : position - window + 1;
  }
};

// The window that keeps exactly the keys j of a query i that the rule "drop j when
// abs((i - j) / theta * 2 * pi) > tau" keeps: distances up to ⌊tau * theta / 2 pi⌋, and the query's
// own key. The rule knows nothing of what keys hold (docs/claims.md, C038). tau and theta are
// positive and finite; at most kMostWindow.
std::int64_t window_of_angle(double tau, double theta);
inline constexpr std::int64_t kMostWindow = std::int64_t{1} << 30;
inline constexpr std::int64_t kLeastPages = 4;  // three that are always read, and one to choose

// Reads "all", "window:4096", "window:4096,sinks:4", "angle:0.1", "angle:0.1,theta:500000", sinks
// with either, and "pages:32". Errors: kInvalidArgument names the part and what is allowed.
Result<KvPolicy> parse_kv_policy(std::string_view text);

// "all", "window:4096", "window:4096,sinks:4", "pages:32".
std::string kv_policy_name(const KvPolicy& policy);

}  // namespace cicada::model
