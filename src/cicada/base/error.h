// Errors as values: a code, one sentence that names the thing, what was found and what is allowed,
// and the context added on the way up (outermost last).
// Threads: values; no shared state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cicada {

enum class Code : std::uint8_t {
  kInvalidArgument,   // the caller asked for something that makes no sense
  kUnsupported,       // sensible, but this build or machine cannot do it
  kCorrupt,           // a file or message breaks its own format
  kNotFound,          // a file, name or key does not exist
  kIo,                // the operating system refused
  kOutOfMemory,       // an allocation would not fit
  kOutOfCapacity,     // a bounded resource of ours (context, pool) is too small for the request
  kOverloaded,        // a bounded queue is full
  kCancelled,         // the user stopped it
  kDeadlineExceeded,  // a time or work limit ran out
  kInternal,          // our fault
};

// The name of a code as it appears in logs, e.g. "corrupt".
std::string_view code_name(Code code);

class [[nodiscard]] Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // Adds where the error happened; called on the way up, outermost last.
  Error with_context(std::string context) &&;

  // "outer: inner: message", one line.
  std::string to_string() const;

 private:
  Code code_;
  std::string message_;
  std::vector<std::string> context_;
};

}  // namespace cicada
