#include "cicada/http/reply_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>
#include <iterator>

#include "cicada/http/ascii.h"

namespace cicada::http {
namespace {

constexpr std::array<std::string_view, 5> kServersOwn = {"content-length", "transfer-encoding",
                                                         "connection", "keep-alive", "date"};

bool is_control(char c) { return (c >= 0 && c < ' ' && c != '\t') || c == '\x7f'; }

bool is_sendable(const Header& header) {
  return is_token(header.name) && std::ranges::none_of(header.value, is_control) &&
         std::ranges::none_of(kServersOwn, [&](std::string_view name) {
           return equals_ignoring_case(name, header.name);
         });
}

std::string_view reason(int status) {
  // 529 is no standard status; Anthropic's API has it.
  if (status == 529) return "Overloaded";
  const auto text = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(static_cast<unsigned>(status)));
  return {text.data(), text.size()};
}

}  // namespace

std::string http_date(std::chrono::system_clock::time_point time) {
  constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                     "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  return fmt::format(
      "{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[std::chrono::weekday(day).c_encoding()],
      static_cast<unsigned>(date.day()), kMonths[static_cast<unsigned>(date.month()) - 1],
      static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
      clock.seconds().count());
}

bool has_body(int status) { return status != 204 && status != 304; }

std::string reply_head(int status, const std::vector<Header>& headers, const Framing& framing,
                       std::chrono::system_clock::time_point now) {
  std::string head;
  const auto out = std::back_inserter(head);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\ndate: {}\r\n", status, reason(status), http_date(now));
  if (framing.content_length)
    fmt::format_to(out, "content-length: {}\r\n", *framing.content_length);
  if (framing.is_chunked) head += "transfer-encoding: chunked\r\n";
  if (framing.connection == Framing::Connection::kClose) head += "connection: close\r\n";
  if (framing.connection == Framing::Connection::kKeepAlive) head += "connection: keep-alive\r\n";
  for (const Header& header : headers) {
    if (is_sendable(header)) fmt::format_to(out, "{}: {}\r\n", header.name, header.value);
  }
  head += "\r\n";
  return head;
}

}  // namespace cicada::http
