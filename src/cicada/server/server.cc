#include "cicada/server/server.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cicada/http/loop.h"
#include "cicada/http/server.h"
#include "cicada/server/app.h"
#include "cicada/server/generation.h"
#include "cicada/server/routes.h"

namespace cicada::server {
namespace {

// How often a stopping server looks whether it is done.
constexpr std::chrono::milliseconds kDrainLook{20};

}  // namespace

struct Server::Impl {
  Impl(ServerConfig config, EngineStarter starter, const tokenizer::Tokenizer& tokenizer,
       const chat::ChatTemplate& chat_template, ServerNotices own_notices)
      : notices(std::move(own_notices)),
        log(config.log_level,
            [this](std::string_view line) {
              if (notices.log) notices.log(line);
            }),
        telemetry(log),
        hub(loop, std::move(starter),
            {.log = [this](const std::string& text) { log.message(LogLevel::kWarning, text); },
             .on_stats = [this](const messages::Stats& stats) { telemetry.note_stats(stats); },
             .on_restart = [this](std::size_t replayed) { telemetry.note_restart(replayed); }}),
        app(loop, std::move(config), hub, telemetry, tokenizer, chat_template) {}

  void listen();
  void stop();
  void look_if_done();
  void end_with(const Error& error);
  void end_all();

  ServerNotices notices;
  Log log;
  Telemetry telemetry;
  http::Loop loop;
  EngineHub hub;
  App app;
  std::unique_ptr<http::Server> http;
  std::optional<Error> failure;
  std::unique_ptr<http::Timer> drain_timer;
  std::chrono::steady_clock::time_point drain_end;
};

Server::Server(ServerConfig config, EngineStarter starter, const tokenizer::Tokenizer& tokenizer,
               const chat::ChatTemplate& chat_template, ServerNotices notices)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(starter), tokenizer, chat_template,
                                   std::move(notices))) {}

Server::~Server() = default;

Result<void> Server::run() {
  impl_->loop.post([this] {
    impl_->hub.start([this] { impl_->listen(); },
                     [this](const Error& error) { impl_->end_with(error); });
  });
  impl_->loop.run();
  if (auto failure = std::move(impl_->failure)) return fail(std::move(*failure));
  return {};
}

void Server::stop() {
  impl_->loop.post([this] { impl_->stop(); });
}

void Server::Impl::listen() {
  auto listening = http::Server::listen(
      loop, app.config.http,
      [this](std::shared_ptr<http::Exchange> exchange) { route(app, std::move(exchange)); },
      [this](int status, std::string_view sentence, const http::Request& request) {
        return refuse(app, status, sentence, request);
      });
  if (!listening) {
    failure = std::move(listening).error();
    loop.stop();
    return;
  }
  http = std::move(*listening);
  if (app.config.has_metrics) {
    telemetry.start(hub.hello(), app.config.model_names.front(), route_names());
  }
  if (notices.on_ready) notices.on_ready(hub.hello(), http->address());
}

void Server::Impl::stop() {
  if (app.is_draining || http == nullptr) {
    end_all();
    return;
  }
  app.is_draining = true;
  http->drain();
  drain_end = std::chrono::steady_clock::now() + app.config.drain_time;
  log.message(LogLevel::kInfo,
              fmt::format("stopping: {} answers are being finished", app.generations.size()));
  look_if_done();
}

void Server::Impl::look_if_done() {
  const bool is_late = std::chrono::steady_clock::now() >= drain_end;
  if (http->num_busy() == 0 && app.generations.empty()) {
    loop.stop();
  } else if (is_late) {
    end_all();
  } else {
    drain_timer = loop.after(kDrainLook, [this] { look_if_done(); });
  }
}

// There is no model to serve, or no longer.
void Server::Impl::end_with(const Error& error) {
  failure = error;
  app.is_draining = true;
  if (http != nullptr) http->drain();
  end_all();
}

// What still runs is told so; then a moment for the words to leave.
void Server::Impl::end_all() {
  const auto running = app.generations;
  for (const auto& generation : running) {
    generation->end_with(api::make_api_error(529, "the server is stopping"));
  }
  drain_timer =
      loop.after(std::chrono::milliseconds(running.empty() ? 0 : 100), [this] { loop.stop(); });
}

}  // namespace cicada::server
