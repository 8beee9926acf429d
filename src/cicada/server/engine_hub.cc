#include "cicada/server/engine_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cicada::server {

using messages::RequestId;

EngineHub::EngineHub(http::Loop& loop, EngineStarter starter, HubOptions options)
    : loop_(&loop), starter_(std::move(starter)), options_(std::move(options)) {}

EngineHub::~EngineHub() = default;

void EngineHub::log(const std::string& sentence) const {
  if (options_.log) options_.log(sentence);
}

void EngineHub::start(std::function<void()> on_ready, std::function<void(const Error&)> on_failed) {
  on_ready_ = std::move(on_ready);
  on_failed_ = std::move(on_failed);
  start_engine();
}

void EngineHub::start_engine() {
  const std::uint64_t generation = ++generation_;
  start_failure_.reset();
  const std::weak_ptr<bool> alive = is_alive_;
  EngineEvents events;
  events.on_messages = [this, alive, generation](std::vector<messages::ToFront> messages) {
    loop_->post([this, alive, generation, messages = std::move(messages)] {
      if (!alive.expired()) on_messages(generation, messages);
    });
  };
  events.on_closed = [this, alive, generation](const std::string& reason) {
    loop_->post([this, alive, generation, reason] {
      if (!alive.expired()) on_closed(generation, reason);
    });
  };
  auto port = starter_(std::move(events));
  if (!port) {
    on_closed(generation, port.error().to_string());
    return;
  }
  port_ = std::move(*port);
}

void EngineHub::on_closed(std::uint64_t generation, const std::string& reason) {
  if (generation != generation_) return;
  ++generation_;
  const bool was_ready = std::exchange(is_ready_, false);
  port_.reset();
  const Error start_failure =
      start_failure_.value_or(Error(Code::kInternal, reason).with_context("engine"));
  if (!hello_) {
    if (on_failed_) on_failed_(start_failure);
    return;
  }
  if (was_ready) {
    log(fmt::format("the engine is gone ({}): another is started for {} running requests", reason,
                    active_.size()));
    failed_starts_ = 0;
    std::vector<RequestId> guilty;
    for (auto& [id, active] : active_) {
      if (++active.deaths >= options_.most_deaths) guilty.push_back(id);
    }
    for (const RequestId id : guilty) {
      fail(id, Code::kInternal, "the engine ended again and again while this request was computed");
    }
    interrupt_all();
  } else {
    log(fmt::format("the engine did not start: {}", start_failure.to_string()));
    ++failed_starts_;
  }
  const auto backoff =
      failed_starts_ == 0
          ? std::chrono::milliseconds(0)
          : std::min(options_.most_backoff,
                     std::chrono::milliseconds(250) * (1U << std::min(failed_starts_, 8U)));
  restart_timer_ = loop_->after(backoff, [this] { start_engine(); });
}

void EngineHub::on_hello(const messages::Hello& hello) {
  const bool is_first = !hello_.has_value();
  const bool is_same = is_first || hello_->numerics_id == hello.numerics_id;
  if (!is_same) return end_as_another(hello);
  hello_ = hello;
  is_ready_ = true;
  failed_starts_ = 0;
  if (is_first) {
    if (on_ready_) on_ready_();
    return;
  }
  std::vector<messages::ToEngine> again;
  for (const auto& [id, active] : active_) {
    again.emplace_back(active.submit);
    if (active.is_paused) again.emplace_back(messages::Pause{.id = id});
  }
  if (options_.on_restart) options_.on_restart(active_.size());
  log(fmt::format("the engine is back, {} requests go on", active_.size()));
  if (!again.empty()) port_->send(std::move(again));
}

// Neither running answers nor the front's own view of the model (its tokens, its template) fit.
void EngineHub::end_as_another(const messages::Hello& hello) {
  while (!active_.empty()) {
    fail(active_.begin()->first, Code::kInternal,
         "the engine came back with another model, in which this answer cannot go on");
  }
  if (!on_failed_) return;
  on_failed_(Error(Code::kInternal,
                   fmt::format("the engine came back with another model: it is {}, it was {}; was "
                               "the file replaced? Start the server again",
                               hello.numerics_id, hello_->numerics_id)));
}

void EngineHub::on_messages(std::uint64_t generation,
                            const std::vector<messages::ToFront>& messages) {
  if (generation != generation_) return;
  for (const messages::ToFront& message : messages) handle(message);
}

// Each once. A listener may end, and take others with it, when it is told: each is looked up again.
void EngineHub::interrupt_all() {
  std::vector<EngineListener*> listeners;
  for (const auto& [id, active] : active_) listeners.push_back(active.listener);
  std::sort(listeners.begin(), listeners.end());
  listeners.erase(std::unique(listeners.begin(), listeners.end()), listeners.end());
  for (EngineListener* listener : listeners) {
    const bool is_there = std::any_of(active_.begin(), active_.end(), [&](const auto& entry) {
      return entry.second.listener == listener;
    });
    if (is_there) listener->on_interrupted();
  }
}

void EngineHub::handle(const messages::ToFront& message) {
  if (const auto* hello = std::get_if<messages::Hello>(&message)) return on_hello(*hello);
  if (const auto* stats = std::get_if<messages::Stats>(&message)) {
    if (options_.on_stats) options_.on_stats(*stats);
    return;
  }
  const auto* last_words = std::get_if<messages::Failed>(&message);
  if (last_words != nullptr && last_words->id == 0) {
    start_failure_ = Error(last_words->code, last_words->message);
    return;
  }
  const RequestId id = std::visit(
      [](const auto& what) -> RequestId {
        if constexpr (requires { what.id; }) return what.id;
        return 0;
      },
      message);
  const auto found = active_.find(id);
  if (found == active_.end()) return;  // cancelled meanwhile
  Active& active = found->second;
  EngineListener& listener = *active.listener;
  if (const auto* started = std::get_if<messages::Started>(&message)) {
    listener.on_started(*started);
  } else if (const auto* token = std::get_if<messages::Token>(&message)) {
    active.submit.emitted.push_back(token->token);
    active.deaths = 0;
    listener.on_token(*token);
  } else if (const auto* finished = std::get_if<messages::Finished>(&message)) {
    const messages::Finished copy = *finished;
    erase(found);
    listener.on_finished(copy);
  } else if (const auto* failed = std::get_if<messages::Failed>(&message)) {
    const messages::Failed copy = *failed;
    erase(found);
    listener.on_failed(copy);
  }
}

void EngineHub::erase(Actives::iterator active) {
  prompt_tokens_ -= active->second.submit.prompt.size();
  active_.erase(active);
}

void EngineHub::fail(RequestId id, Code code, std::string message) {
  const auto found = active_.find(id);
  if (found == active_.end()) return;
  EngineListener& listener = *found->second.listener;
  erase(found);
  listener.on_failed({.id = id, .code = code, .message = std::move(message)});
}

void EngineHub::submit(messages::Submit submit, EngineListener& listener) {
  const RequestId id = submit.id;
  prompt_tokens_ += submit.prompt.size();
  const auto [active, is_new] =
      active_.emplace(id, Active{.submit = std::move(submit), .listener = &listener});
  if (is_ready_) port_->send({active->second.submit});
}

void EngineHub::cancel(RequestId id) {
  const auto found = active_.find(id);
  if (found == active_.end()) return;
  erase(found);
  if (is_ready_) port_->send({messages::Cancel{.id = id}});
}

void EngineHub::pause(RequestId id, bool is_paused) {
  const auto found = active_.find(id);
  if (found == active_.end() || found->second.is_paused == is_paused) return;
  found->second.is_paused = is_paused;
  if (is_ready_) port_->send({messages::Pause{.id = id, .is_paused = is_paused}});
}

}  // namespace cicada::server
