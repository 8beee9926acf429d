// Frames of server-sent events.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace cicada::api {

// "event: {name}\ndata: {json}\n\n". `json` is one line, as json::Writer writes it.
std::string event_frame(std::string_view name, std::string_view json);
// "data: {json}\n\n"
std::string data_frame(std::string_view json);
// ": ping\n\n": a comment, which clients skip.
std::string comment_frame();

}  // namespace cicada::api
