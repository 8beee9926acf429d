#include "cicada/api/frames.h"

#include <cstddef>

namespace cicada::api {
namespace {

// Some clients split lines as Unicode does: what ends a line there is escaped. In JSON these
// characters stand inside strings only.
void append_line(std::string& out, std::string_view json) {
  std::size_t pos = 0;
  while (pos < json.size()) {
    const std::size_t at = json.find_first_of("\xC2\xE2", pos);
    if (at == json.npos) break;
    out += json.substr(pos, at - pos);
    const std::string_view rest = json.substr(at);
    if (rest.starts_with("\xC2\x85")) {
      out += "\\u0085";
      pos = at + 2;
    } else if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) {
      out += rest[2] == '\xA8' ? "\\u2028" : "\\u2029";
      pos = at + 3;
    } else {
      out += json[at];
      pos = at + 1;
    }
  }
  out += json.substr(pos);
}

}  // namespace

std::string event_frame(std::string_view name, std::string_view json) {
  std::string frame = "event: ";
  frame += name;
  frame += '\n';
  return frame += data_frame(json);
}

std::string data_frame(std::string_view json) {
  std::string frame = "data: ";
  append_line(frame, json);
  return frame += "\n\n";
}

std::string comment_frame() { return ": ping\n\n"; }

}  // namespace cicada::api
