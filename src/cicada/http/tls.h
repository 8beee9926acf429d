// TLS as a filter over bytes: what came from the network in, plain text out, and the other way.
// Does no I/O, so that a TLS connection is read, written and watched like any other.
// Hides OpenSSL.
// Threads: a filter belongs to one thread; a context may be shared by filters of one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cicada/base/result.h"

namespace cicada::http {

class TlsContext {
 public:
  // PEM files: a certificate, followed by those that lead to its authority, and its key without a
  // passphrase. TLS 1.2 and 1.3. Errors: kInvalidArgument with the file and OpenSSL's words.
  static Result<std::unique_ptr<TlsContext>> load(const std::string& certificate_path,
                                                  const std::string& key_path);
  struct Impl;
  explicit TlsContext(std::unique_ptr<Impl> impl);  // use load()
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// The server's side of one connection.
class TlsFilter {
 public:
  // The context must outlive the filter.
  explicit TlsFilter(TlsContext& context);
  ~TlsFilter();
  TlsFilter(const TlsFilter&) = delete;
  TlsFilter& operator=(const TlsFilter&) = delete;

  enum class State : std::uint8_t {
    kHandshake,
    kOpen,
    kEnded,   // the client said that it sends no more
    kFailed,  // the bytes were no TLS, or the two could not agree
  };

  // Takes bytes of the network; appends plain text to `plain` and what has to be sent for it
  // (handshake, alerts) to `to_send`.
  State open(std::string_view received, std::string& plain, std::string& to_send);
  // Appends what has to be sent for `plain`. In state kOpen and kEnded only.
  void seal(std::string_view plain, std::string& to_send);
  // Says that nothing more comes. Nothing can be sealed afterwards.
  void end(std::string& to_send);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cicada::http
