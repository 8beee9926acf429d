#include "cicada/base/error.h"

namespace cicada {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kNotFound:
      return "not found";
    case Code::kIo:
      return "io";
    case Code::kOutOfMemory:
      return "out of memory";
    case Code::kOutOfCapacity:
      return "out of capacity";
    case Code::kOverloaded:
      return "overloaded";
    case Code::kCancelled:
      return "cancelled";
    case Code::kDeadlineExceeded:
      return "deadline exceeded";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

Error Error::with_context(std::string context) && {
  context_.push_back(std::move(context));
  return std::move(*this);
}

std::string Error::to_string() const {
  std::string line;
  for (auto it = context_.rbegin(); it != context_.rend(); ++it) {
    line += *it;
    line += ": ";
  }
  return line + message_;
}

}  // namespace cicada
