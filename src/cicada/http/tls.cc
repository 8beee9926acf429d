#include "cicada/http/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace cicada::http {
namespace {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

// OpenSSL's words for what went wrong first; empties its list.
std::string take_openssl_words() {
  const unsigned long error = ERR_get_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  std::string words = reason == nullptr ? "no reason given" : reason;
  ERR_clear_error();
  return words;
}

// Without it OpenSSL would ask for the passphrase on the terminal.
int no_passphrase(char*, int, int, void*) { return 0; }

int int_size(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

}  // namespace

struct TlsContext::Impl {
  std::unique_ptr<SSL_CTX, FreeContext> context;
};

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsContext::~TlsContext() = default;

Result<std::unique_ptr<TlsContext>> TlsContext::load(const std::string& certificate_path,
                                                     const std::string& key_path) {
  ERR_clear_error();
  std::unique_ptr<SSL_CTX, FreeContext> context(SSL_CTX_new(TLS_server_method()));
  if (!context) return fail(Code::kInternal, "TLS cannot be set up: {}", take_openssl_words());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Many connections wait idle for long.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(context.get(), no_passphrase);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_path.c_str()) != 1) {
    return fail(Code::kInvalidArgument, "certificate {}: {}; a PEM file is needed",
                certificate_path, take_openssl_words());
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_path.c_str(), SSL_FILETYPE_PEM) != 1) {
    return fail(Code::kInvalidArgument,
                "key {}: {}; a PEM file without passphrase that belongs to {} is needed", key_path,
                take_openssl_words(), certificate_path);
  }
  return std::make_unique<TlsContext>(std::make_unique<Impl>(Impl{.context = std::move(context)}));
}

struct TlsFilter::Impl {
  std::unique_ptr<SSL, FreeSsl> ssl;
  BIO* received = nullptr;  // owned by ssl
  BIO* to_send = nullptr;   // owned by ssl
  State state = State::kHandshake;

  void take_sent(std::string& sink) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(to_send, &data);
    if (size > 0) sink.append(data, static_cast<std::size_t>(size));
    static_cast<void>(BIO_reset(to_send));
  }

  // The state after a call that returned `code`.
  State after(int code, State if_waiting) {
    switch (SSL_get_error(ssl.get(), code)) {
      case SSL_ERROR_NONE:
        return State::kOpen;
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return if_waiting;
      case SSL_ERROR_ZERO_RETURN:
        return State::kEnded;
      default:
        return State::kFailed;
    }
  }
};

TlsFilter::TlsFilter(TlsContext& context) : impl_(std::make_unique<Impl>()) {
  ERR_clear_error();
  impl_->ssl.reset(SSL_new(context.impl().context.get()));
  impl_->received = BIO_new(BIO_s_mem());
  impl_->to_send = BIO_new(BIO_s_mem());
  if (!impl_->ssl || impl_->received == nullptr || impl_->to_send == nullptr) {
    // Out of memory: the connection fails, the server stays.
    BIO_free(impl_->received);
    BIO_free(impl_->to_send);
    impl_->received = nullptr;
    impl_->to_send = nullptr;
    impl_->state = State::kFailed;
    return;
  }
  SSL_set_bio(impl_->ssl.get(), impl_->received, impl_->to_send);
  SSL_set_accept_state(impl_->ssl.get());
}

TlsFilter::~TlsFilter() = default;

TlsFilter::State TlsFilter::open(std::string_view received, std::string& plain,
                                 std::string& to_send) {
  Impl& impl = *impl_;
  if (impl.state == State::kFailed || impl.state == State::kEnded) return impl.state;
  ERR_clear_error();
  if (BIO_write(impl.received, received.data(), int_size(received.size())) !=
      int_size(received.size())) {
    return impl.state = State::kFailed;
  }
  if (impl.state == State::kHandshake) {
    impl.state = impl.after(SSL_do_handshake(impl.ssl.get()), State::kHandshake);
  }
  std::array<char, 16 << 10> piece{};
  while (impl.state == State::kOpen) {
    const int size = SSL_read(impl.ssl.get(), piece.data(), int_size(piece.size()));
    if (size > 0) {
      plain.append(piece.data(), static_cast<std::size_t>(size));
      continue;
    }
    impl.state = impl.after(size, State::kOpen);
    break;
  }
  impl.take_sent(to_send);
  return impl.state;
}

void TlsFilter::seal(std::string_view plain, std::string& to_send) {
  Impl& impl = *impl_;
  ERR_clear_error();
  while (!plain.empty() && (impl.state == State::kOpen || impl.state == State::kEnded)) {
    const int size = SSL_write(impl.ssl.get(), plain.data(), int_size(plain.size()));
    // Memory takes all there is, so that only a broken session says no.
    if (size <= 0) {
      impl.state = State::kFailed;
      break;
    }
    plain.remove_prefix(static_cast<std::size_t>(size));
  }
  impl.take_sent(to_send);
}

void TlsFilter::end(std::string& to_send) {
  Impl& impl = *impl_;
  if (impl.state != State::kOpen && impl.state != State::kEnded) return;
  ERR_clear_error();
  SSL_shutdown(impl.ssl.get());
  ERR_clear_error();
  impl.take_sent(to_send);
}

}  // namespace cicada::http
