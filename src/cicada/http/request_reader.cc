#include "cicada/http/request_reader.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>
#include <utility>

#include "cicada/http/ascii.h"
#include "cicada/http/target.h"

namespace cicada::http {
namespace {

namespace beast_http = boost::beast::http;
using BeastText = boost::beast::string_view;
using BeastError = boost::beast::error_code;

// The shortest end of a chunked body, "0\r\n\r\n".
constexpr std::size_t kMinChunkedRestBytes = 5;

std::string_view view(BeastText text) { return {text.data(), text.size()}; }

// What was wrong in the words of a client's developer.
std::string_view words(const BeastError& error) {
  using Kind = beast_http::error;
  if (error == Kind::bad_method) return "the method is not a word";
  if (error == Kind::bad_target) return "the URL has a character that is not allowed";
  if (error == Kind::bad_version) return "the request line does not end in HTTP/1.1 or HTTP/1.0";
  if (error == Kind::bad_field) return "a header's name is not a word";
  if (error == Kind::bad_value) return "a header's value has a character that is not allowed";
  if (error == Kind::bad_content_length) {
    return "content-length is not a number, or stands beside transfer-encoding";
  }
  if (error == Kind::multiple_content_length) return "content-length comes with different values";
  if (error == Kind::bad_transfer_encoding) {
    return "transfer-encoding comes twice, or beside content-length";
  }
  if (error == Kind::bad_chunk || error == Kind::bad_chunk_extension) {
    return "the chunked body is damaged";
  }
  return "it does not follow HTTP/1.1";
}

}  // namespace

class RequestReader::Parser final : public beast_http::basic_parser<true> {
 public:
  Parser(std::size_t max_header_bytes, std::size_t max_body_bytes, std::string peer)
      : max_header_bytes_(max_header_bytes) {
    request_.peer = std::move(peer);
    body_limit(std::uint64_t{max_body_bytes});
    // Ours is exact; this one would count the request line apart.
    header_limit(std::numeric_limits<std::uint32_t>::max());
    eager(false);
  }

  std::size_t read(std::string_view bytes);
  State state() const {
    if (status_ != 0) return State::kRefused;
    return is_done() ? State::kComplete : State::kNeedsMore;
  }
  bool has_begun() const { return has_begun_; }
  bool expects_continue() const { return expects_continue_; }
  bool is_http11() const { return version_ == 11; }
  Request& request() { return request_; }
  int status() const { return status_; }
  const std::string& sentence() const { return sentence_; }

 private:
  std::size_t skip_empty_lines(std::string_view bytes);
  std::size_t step(std::string_view bytes, bool& needs_more);
  void refuse(int status, std::string sentence);
  void refuse(int status, std::string sentence, BeastError& error);
  void refuse_for(const BeastError& error);
  void check_framing(BeastError& error);

  void on_request_impl(beast_http::verb, BeastText method, BeastText target, int version,
                       BeastError& error) override;
  void on_response_impl(int, BeastText, int, BeastError&) override {}
  void on_field_impl(beast_http::field name, BeastText name_text, BeastText value,
                     BeastError& error) override;
  void on_header_impl(BeastError& error) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>&, BeastError&) override {}
  std::size_t on_body_impl(BeastText body, BeastError&) override {
    request_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, BeastText, BeastError&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, BeastText body, BeastError&) override {
    request_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(BeastError&) override {}

  std::size_t max_header_bytes_;
  std::size_t header_bytes_ = 0;  // taken so far
  Request request_;
  int version_ = 11;
  bool has_begun_ = false;
  bool expects_continue_ = false;
  int num_hosts_ = 0;
  int num_codings_ = 0;   // transfer-encoding headers
  int num_lengths_ = 0;   // content-length headers
  std::string coding_;    // value of the last transfer-encoding
  std::string expected_;  // value of the last expect
  int status_ = 0;        // refused with it; 0: not
  std::string sentence_;
};

void RequestReader::Parser::refuse(int status, std::string sentence) {
  status_ = status;
  sentence_ = std::move(sentence);
}

// From inside the parser, which has to be told to stop.
void RequestReader::Parser::refuse(int status, std::string sentence, BeastError& error) {
  refuse(status, std::move(sentence));
  error = beast_http::error::bad_value;
}

void RequestReader::Parser::refuse_for(const BeastError& error) {
  if (status_ != 0) return;
  if (error == beast_http::error::body_limit) {
    refuse(413, "the request body is larger than this server takes");
  } else if (error == beast_http::error::header_limit) {
    refuse(431, "the request's headers are larger than this server takes");
  } else {
    refuse(400, "malformed request: " + std::string(words(error)));
  }
}

void RequestReader::Parser::on_request_impl(beast_http::verb, BeastText method, BeastText target,
                                            int version, BeastError& error) {
  request_.method = view(method);
  version_ = version;
  if (request_.method == "CONNECT") return refuse(501, "this server is no proxy", error);
  auto parsed = http::parse_target(view(target));
  if (!parsed) return refuse(400, "malformed request: " + parsed.error().message(), error);
  request_.path = std::move(parsed->path);
  request_.query = std::move(parsed->query);
}

void RequestReader::Parser::on_field_impl(beast_http::field name, BeastText name_text,
                                          BeastText value, BeastError&) {
  // Trailers of a chunked body could contradict what was decided by the head.
  if (is_header_done()) return;
  switch (name) {
    case beast_http::field::host:
      ++num_hosts_;
      break;
    case beast_http::field::transfer_encoding:
      ++num_codings_;
      coding_ = view(value);
      break;
    case beast_http::field::content_length:
      ++num_lengths_;
      break;
    case beast_http::field::expect:
      expected_ = view(value);
      break;
    default:
      break;
  }
  request_.headers.push_back({std::string(view(name_text)), std::string(view(value))});
}

// Two readings of where a body ends are how requests are smuggled past a proxy, so that anything
// but one plain framing is refused (RFC 9112, section 6).
void RequestReader::Parser::check_framing(BeastError& error) {
  if (num_codings_ == 0) return;
  if (num_lengths_ > 0) {
    return refuse(400, "malformed request: content-length and transfer-encoding together", error);
  }
  if (!is_http11()) {
    return refuse(400, "malformed request: transfer-encoding in HTTP/1.0", error);
  }
  if (num_codings_ > 1 || !equals_ignoring_case(coding_, "chunked")) {
    return refuse(501, "of transfer encodings, this server knows only chunked", error);
  }
}

void RequestReader::Parser::on_header_impl(BeastError& error) {
  check_framing(error);
  if (error) return;
  if (num_hosts_ > 1 || (num_hosts_ == 0 && is_http11())) {
    return refuse(400, "malformed request: it needs one host header", error);
  }
  if (expected_.empty() || !is_http11()) return;
  if (!equals_ignoring_case(expected_, "100-continue")) {
    return refuse(417, "of expectations, this server knows only 100-continue", error);
  }
  expects_continue_ = true;
}

// Some clients send an empty line behind a body; it belongs to no request.
std::size_t RequestReader::Parser::skip_empty_lines(std::string_view bytes) {
  std::size_t taken = 0;
  while (bytes.substr(taken).starts_with("\r\n")) taken += 2;
  const std::string_view rest = bytes.substr(taken);
  has_begun_ = !rest.empty() && rest != "\r";
  return taken;
}

// One call of Beast's parser, which goes over one part: a line, the headers, a chunk.
std::size_t RequestReader::Parser::step(std::string_view bytes, bool& needs_more) {
  const bool is_head = !is_header_done();
  // Beast 1.81 asserts that it never sees the beginning of the last chunk alone. A chunked body
  // that is not complete has at least this much to come, wherever it stands.
  if (!is_head && chunked() && bytes.size() < kMinChunkedRestBytes) {
    needs_more = true;
    return 0;
  }
  // The line of a chunk and the trailers may be as long as a head.
  if (!is_head && chunked()) bytes = bytes.substr(0, max_header_bytes_);
  BeastError error;
  const std::size_t taken = put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
  needs_more = error == beast_http::error::need_more;
  if (error && !needs_more) refuse_for(error);
  if (is_head) {
    header_bytes_ += taken;
    const std::size_t waiting_bytes = is_header_done() ? 0 : bytes.size() - taken;
    if (header_bytes_ + waiting_bytes > max_header_bytes_ && (needs_more || is_header_done())) {
      refuse_for(beast_http::error::header_limit);
    }
  } else if (needs_more && bytes.size() == max_header_bytes_) {
    refuse_for(beast_http::error::header_limit);
  }
  return taken;
}

std::size_t RequestReader::Parser::read(std::string_view bytes) {
  std::size_t taken = 0;
  if (!has_begun_) taken = skip_empty_lines(bytes);
  if (!has_begun_) return taken;
  bool needs_more = false;
  while (state() == State::kNeedsMore && !needs_more && taken < bytes.size()) {
    taken += step(bytes.substr(taken), needs_more);
  }
  return taken;
}

RequestReader::RequestReader(std::size_t max_header_bytes, std::size_t max_body_bytes,
                             std::string peer)
    : parser_(std::make_unique<Parser>(max_header_bytes, max_body_bytes, std::move(peer))) {}
RequestReader::RequestReader(RequestReader&&) noexcept = default;
RequestReader& RequestReader::operator=(RequestReader&&) noexcept = default;
RequestReader::~RequestReader() = default;

std::size_t RequestReader::read(std::string_view bytes) { return parser_->read(bytes); }
RequestReader::State RequestReader::state() const { return parser_->state(); }
bool RequestReader::has_begun() const { return parser_->has_begun(); }
bool RequestReader::has_head() const { return parser_->is_header_done(); }
bool RequestReader::expects_continue() const { return parser_->expects_continue(); }
bool RequestReader::keep_alive() const { return parser_->keep_alive(); }
bool RequestReader::is_http11() const { return parser_->is_http11(); }
const Request& RequestReader::request() const { return parser_->request(); }
Request RequestReader::take_request() { return std::move(parser_->request()); }
int RequestReader::status() const { return parser_->status(); }
const std::string& RequestReader::sentence() const { return parser_->sentence(); }

}  // namespace cicada::http
