// The adapter to the Rust bridge: a compiled template as a C++ value, statuses as errors.
// Threads: const members may be called from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cicada/base/result.h"

struct CicadaTemplate;

namespace cicada::chat {

// Of one rendering. The bridge adds its own on steps, depth and sizes of lists.
struct RenderLimits {
  std::uint64_t max_output_bytes = std::uint64_t{8} << 20;
  std::uint64_t max_memory_bytes = std::uint64_t{48} << 20;  // beside messages and output
  std::uint64_t max_time_ms = 800;                           // of this thread's processor time
};

class BridgeTemplate {
 public:
  // Errors: kInvalidArgument with line and reason when it cannot be parsed; kDeadlineExceeded when
  // it is too long (1 MiB).
  static Result<BridgeTemplate> compile(std::string_view source);

  // `variables` is a JSON object; `now_unix_s` what strftime_now() reads, as UTC.
  // Errors: kInvalidArgument with the template's own words when it calls raise_exception (or that
  // it gave none), or with line and reason when it fails otherwise; kDeadlineExceeded when it
  // exceeds a limit.
  Result<std::string> render(std::string_view variables, const RenderLimits& limits,
                             std::int64_t now_unix_s) const;

 private:
  struct Free {
    void operator()(CicadaTemplate* compiled) const;
  };
  explicit BridgeTemplate(CicadaTemplate* compiled) : compiled_(compiled) {}

  std::unique_ptr<CicadaTemplate, Free> compiled_;  // owned
};

}  // namespace cicada::chat
