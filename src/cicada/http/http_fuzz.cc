// Fuzzes RequestReader: the first byte says how the rest is cut into pieces. Any bytes give
// requests within the limits or a refusal in words, and a request that is read in pieces is the one
// that is read in one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/check.h"
#include "cicada/http/request_reader.h"

namespace {

using cicada::http::Request;
using cicada::http::RequestReader;

constexpr std::size_t kMaxHeaderBytes = 512;
constexpr std::size_t kMaxBodyBytes = 256;

void check_request(const Request& request) {
  CICADA_CHECK(request.body.size() <= kMaxBodyBytes, "the body is within its limit");
  CICADA_CHECK(request.path == "*" || request.path.starts_with('/'), "a path is a path");
  CICADA_CHECK(request.path.find('\0') == std::string::npos, "no NUL in a path");
  for (const auto& header : request.headers) {
    CICADA_CHECK(header.value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos,
                 "a header's value is one line");
  }
}

// Reads as a connection does: what is not taken comes again with the next piece in front.
std::vector<Request> read_all(std::string_view bytes, std::size_t piece_bytes) {
  std::vector<Request> requests;
  RequestReader reader(kMaxHeaderBytes, kMaxBodyBytes, "fuzz");
  std::string kept;
  while (!bytes.empty()) {
    kept += bytes.substr(0, piece_bytes);
    bytes.remove_prefix(std::min(piece_bytes, bytes.size()));
    while (!kept.empty()) {
      kept.erase(0, reader.read(kept));
      if (reader.state() != RequestReader::State::kComplete) break;
      static_cast<void>(reader.keep_alive());
      requests.push_back(reader.take_request());
      check_request(requests.back());
      reader = RequestReader(kMaxHeaderBytes, kMaxBodyBytes, "fuzz");
    }
    if (reader.state() == RequestReader::State::kRefused) {
      CICADA_CHECK(reader.status() >= 400 && !reader.sentence().empty(), "a refusal has words");
      break;
    }
    CICADA_CHECK(kept.size() <= kMaxHeaderBytes, "what waits is bounded");
  }
  return requests;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = read_all(bytes, bytes.size());
  const auto pieces = read_all(bytes, std::size_t{data[0]} % 32 + 1);
  CICADA_CHECK(whole.size() == pieces.size(), "cutting changes no number of requests");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CICADA_CHECK(whole[i].path == pieces[i].path && whole[i].body == pieces[i].body &&
                     whole[i].headers.size() == pieces[i].headers.size(),
                 "cutting changes no request");
  }
  return 0;
}
