#include "cicada/http/server.h"

#include <boost/system/system_error.hpp>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "cicada/http/listener_impl.h"
#include "cicada/http/session_impl.h"

namespace cicada::http {
namespace {

// Beyond them and the limit, connections are closed without a word.
constexpr std::size_t kMaxSurplus = 64;
// Until the next attempt, when the system lets none be accepted (it is out of file descriptors).
constexpr std::chrono::milliseconds kAcceptPause{50};

void accept_next(const std::shared_ptr<ServerState>& state,
                 const std::shared_ptr<Listener>& listener);

void serve(const std::shared_ptr<ServerState>& state, Session::Socket socket) {
  const std::size_t num_served = state->sessions.size() - state->num_surplus;
  const auto kind =
      num_served < state->limits.max_connections ? Session::Kind::kServed : Session::Kind::kSurplus;
  if (kind == Session::Kind::kSurplus && state->num_surplus >= kMaxSurplus) return;
  boost::system::error_code error;
  const auto peer = socket.remote_endpoint(error);
  if (error) return;  // it has gone already
  std::make_shared<Session>(state, std::move(socket), address_text(peer), kind)->start();
}

void pause_accepting(const std::shared_ptr<ServerState>& state,
                     const std::shared_ptr<Listener>& listener) {
  listener->pause.expires_after(kAcceptPause);
  listener->pause.async_wait([state, listener](boost::system::error_code error) {
    if (!error) accept_next(state, listener);
  });
}

void accept_next(const std::shared_ptr<ServerState>& state,
                 const std::shared_ptr<Listener>& listener) {
  if (!listener->acceptor.is_open()) return;
  listener->acceptor.async_accept(
      [state, listener](boost::system::error_code error, Session::Socket socket) {
        if (!listener->acceptor.is_open()) return;
        if (error) return pause_accepting(state, listener);
        serve(state, std::move(socket));
        accept_next(state, listener);
      });
}

class HttpServer final : public Server {
 public:
  HttpServer(std::shared_ptr<ServerState> state, Listeners listeners)
      : state_(std::move(state)), listeners_(std::move(listeners)) {
    for (const auto& listener : listeners_) accept_next(state_, listener);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  ~HttpServer() override {
    stop_listening();
    for (const auto& session : sessions()) session->close();
  }

  std::string address() const override {
    const Listener& first = *listeners_.front();
    if (!first.unix_path.empty()) return "unix:" + first.unix_path;
    return (state_->tls ? "https://" : "http://") + first.host + ":" + std::to_string(first.port);
  }
  std::uint16_t port() const override { return listeners_.front()->port; }

  void drain() override {
    stop_listening();
    state_->is_draining = true;
    for (const auto& session : sessions()) session->close_if_idle();
  }

  std::size_t num_busy() const override {
    std::size_t num_busy = 0;
    for (const auto& session : state_->sessions) num_busy += session->is_busy() ? 1U : 0U;
    return num_busy;
  }
  std::size_t num_connections() const override { return state_->sessions.size(); }

 private:
  void stop_listening() {
    for (const auto& listener : listeners_) listener->close();
  }
  // A copy, as sessions leave the list when they close.
  std::vector<std::shared_ptr<Session>> sessions() const {
    return {state_->sessions.begin(), state_->sessions.end()};
  }

  std::shared_ptr<ServerState> state_;
  Listeners listeners_;
};

Result<std::unique_ptr<Server>> make_server(Loop& loop, const ServerOptions& options,
                                            Handler handler, Server::Refuse refuse) {
  if (options.certificate_path.empty() != options.key_path.empty()) {
    return fail(Code::kInvalidArgument,
                "TLS needs a certificate and a key, but there is only the {}",
                options.key_path.empty() ? "certificate" : "key");
  }
  std::unique_ptr<TlsContext> tls;
  if (!options.certificate_path.empty()) {
    CICADA_ASSIGN(tls, TlsContext::load(options.certificate_path, options.key_path));
  }
  auto& context = loop.impl().context;
  CICADA_ASSIGN(Listeners listeners, options.unix_path.empty()
                                         ? listen_tcp(context, options.host, options.port)
                                         : listen_unix(context, options.unix_path));
  auto state = std::make_shared<ServerState>(ServerState{.loop = loop,
                                                         .limits = options.limits,
                                                         .handler = std::move(handler),
                                                         .refuse = std::move(refuse),
                                                         .tls = std::move(tls)});
  return std::make_unique<HttpServer>(std::move(state), std::move(listeners));
}

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(Loop& loop, const ServerOptions& options,
                                               Handler handler, Refuse refuse) {
  // The one place where Asio may throw: its services are made with the first socket and timer.
  try {
    return make_server(loop, options, std::move(handler), std::move(refuse));
  } catch (const boost::system::system_error& error) {
    return fail(Code::kIo, "cannot listen: {}", error.code().message());
  } catch (const std::exception& error) {
    return fail(Code::kInternal, "cannot listen: {}", error.what());
  }
}

}  // namespace cicada::http
