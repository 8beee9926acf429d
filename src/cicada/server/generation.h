// An answer on its way: from the parsed request to the last byte of the reply.
//
// Prepares the prompt off the loop, submits one engine request a choice, turns the tokens that come
// back into text, and the text into the reply of the client's API. Ends when the reply is complete,
// when the engine cannot serve it, or when the client goes away: then what runs is cancelled.
// Threads: the loop's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cicada/api/reply.h"
#include "cicada/api/request.h"
#include "cicada/chat/answer_text.h"
#include "cicada/server/app.h"
#include "cicada/server/call.h"
#include "cicada/server/engine_hub.h"
#include "cicada/server/stream_buffer.h"

namespace cicada::server {

class Generation : public EngineListener, public std::enable_shared_from_this<Generation> {
 public:
  // Answers the call, now or later.
  static void start(std::shared_ptr<Call> call, api::GenerateRequest request);

  Generation(std::shared_ptr<Call> call, api::GenerateRequest request);
  ~Generation() override;

  // Ends a stream that cannot go on with an error of its API; a reply that has not begun gets it as
  // its status.
  void end_with(const api::ApiError& error);

 private:
  struct Choice {
    chat::AnswerText text;
    std::size_t prompt = 0;      // index into the prepared ones
    messages::RequestId id = 0;  // 0: the engine is done with it
    std::uint64_t tokens = 0;
    std::uint64_t thinking_tokens = 0;
    bool is_capped = false;  // the request's own limit is below the context's room
    bool is_finished = false;
    std::uint64_t cached_tokens = 0;
    bool has_started = false;
    // As seen here, so that an answer that goes on in another engine is one, and one that a stop
    // string ended has its times too.
    std::chrono::steady_clock::time_point submitted, started, first_token, last_token;
  };

  void on_started(const messages::Started& started) override;
  void on_token(const messages::Token& token) override;
  void on_finished(const messages::Finished& finished) override;
  void on_failed(const messages::Failed& failed) override;
  void on_interrupted() override;

  // A callback that does nothing once this is gone: `work` gets this, and what the caller gives.
  template <class Work>
  auto while_alive(Work work) {
    return [weak = weak_from_this(), work](auto... given) {
      if (const auto self = weak.lock()) work(*self, std::move(given)...);
    };
  }

  void prepare();
  void on_prepared(api::Parsed<Prepared> prepared);
  std::optional<api::ApiError> check_lengths(const Prepared& prepared) const;
  void submit();
  messages::Submit make_submit(std::size_t choice, const std::vector<TokenId>& prompt,
                               std::uint64_t seed) const;

  std::size_t index_of(messages::RequestId id) const;
  void begin_reply();
  void add_pieces(std::size_t index, const std::vector<chat::ReplyPiece>& pieces,
                  std::span<const api::TokenLogprob> logprobs);
  api::TokenLogprob logprob_of(const messages::Token& token) const;
  void finish_choice(std::size_t index, api::StopReason reason, std::string_view stop);
  bool is_complete() const;  // every choice is finished
  void complete();
  void cancel(Choice& choice);
  void pause(bool is_paused);
  void send(std::string_view bytes);
  void send_text(std::string_view bytes, std::string_view text);
  void send_held();
  void flush();
  void keep_alive();
  api::Usage usage() const;
  // The end of everything: cancels what runs, gives the places back, and says how it went.
  void close();
  void note_token(Choice& choice);
  metrics::FinishedRequest summary() const;

  std::shared_ptr<Call> call_;
  App& app_;
  const std::shared_ptr<const api::GenerateRequest> request_;  // read while it is prepared, too
  std::size_t places_ = 0;                                     // in the queue
  Prepared prepared_;
  std::vector<Choice> choices_;
  std::unique_ptr<api::ReplyWriter> writer_;
  StreamBuffer buffer_;
  bool has_begun_ = false;
  bool is_closed_ = false;
  bool is_paused_ = false;
  bool has_failed_ = false;
  bool has_token_ = false;
  api::StopReason stop_reason_ = api::StopReason::kEnd;  // of the choice that ended last
  bool has_written_ = false;                             // since the last time of keep_alive()
  std::unique_ptr<http::Timer> timer_;
  std::unique_ptr<http::Timer> flush_timer_;
};

}  // namespace cicada::server
